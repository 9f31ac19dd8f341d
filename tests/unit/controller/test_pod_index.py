from __future__ import annotations

from typing import Any

import pytest

from ballast.controller.pod_index import PodIndex
from ballast.kube.constraint_reader import REQUIRED
from ballast.kube.pods import Pod, PodReader
from tests.unit.kube.builders import CREATED, GATE, NOMINATED_BY_ANOTHER, NOMINATED_BY_US, executor, pinned_by_us, pod

LONG = {f"{prefix}/x{number}": "y" * 63 for number in range(500) for prefix in ("long.io", "ballast.dev")}


def kept(**changes: Any) -> dict[str, str]:
    raw = executor(**changes)
    raw["metadata"]["labels"] |= LONG | {"team": "blue", "ballast.dev/topology": "clicks"}
    index = PodIndex(notify=lambda: None, gated=lambda: None, failed=lambda _: None)
    return dict(index.slim(PodReader().read(raw)).labels)


@pytest.mark.parametrize("changes", [{}, {"gates": [GATE]}, {"node": None}], ids=["bound", "gated", "pending"])
def test_of_labels_longer_than_any_templates_only_those_that_ballast_or_spark_names_are_kept(
    changes: dict[str, Any],
) -> None:
    labels = kept(**changes)
    assert "team" not in labels
    assert not any(name.startswith(("long.io/", "ballast.dev/x")) for name in labels), "made up"
    assert labels["ballast.dev/topology"] == "clicks"
    assert labels["spark-role"] == "executor"


class Pods:
    """Those of one index, as the store brings them."""

    def __init__(self) -> None:
        self.index = PodIndex(notify=lambda: None, gated=lambda: None, failed=lambda _: None)
        self.known: list[Pod] = []
        self._reader = PodReader()

    def add(self, number: int, *, labels: dict[str, str] | None = None, **more: Any) -> Pod:
        raw = executor(number, gates=[GATE], **more)
        raw["metadata"]["labels"] |= labels or {}
        pod = self.index.slim(self._reader.read(raw))
        self.index.changed(None, pod)
        self.known.append(pod)
        return pod

    def clear(self) -> None:
        for each in self.known:
            self.index.changed(each, None)
        self.known.clear()


@pytest.mark.parametrize("first", ["owner", "executor"])
def test_the_pod_that_owns_an_executor_is_handed_to_a_pass_for_as_long_as_it_does(first: str) -> None:
    index = PodIndex(notify=lambda: None, gated=lambda: None, failed=lambda _: None)
    reader = PodReader()
    owners = [{"kind": "Pod", "name": "server", "uid": "uid-server", "controller": True}]
    server, worker = reader.read(pod("server", node="node-1")), reader.read(executor(1, node="node-1", owners=owners))
    for each in (server, worker) if first == "owner" else (worker, server):
        index.changed(None, each)
    assert {each.name for each in index.single()} == {"server", worker.name}
    assert index.others(["analytics"]).requested == {}
    index.changed(worker, None)
    assert index.single() == ()
    assert [each.name for each in index.others(["analytics"]).by_namespace["analytics"]] == ["server"]
    index.changed(server, None)
    assert index.others(["analytics"]).by_namespace == {}


def test_a_pass_is_due_when_kube_scheduler_finds_no_node_where_an_executor_is_pinned() -> None:
    told: list[None] = []
    index = PodIndex(notify=lambda: told.append(None), gated=lambda: None, failed=lambda _: None)
    refused = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    for pinned, notices in ((False, 1), (True, 2)):
        changes: dict[str, Any] = {"managed_fields": [pinned_by_us(CREATED)]} if pinned else {}
        more: list[dict[str, Any]] = [{}, {"status": refused}]
        waits, stuck = (PodReader().read(executor(1, **changes, **each)) for each in more)
        told.clear()
        index.changed(None, waits)
        index.changed(waits, stuck)
        assert len(told) == notices
        index.changed(stuck, None)


def test_executors_that_name_each_other_as_owners_stay_executors() -> None:
    index = PodIndex(notify=lambda: None, gated=lambda: None, failed=lambda _: None)
    names = [f"spark-1-exec-{number}" for number in (1, 2)]
    pods = [
        PodReader().read(executor(number, node="n", owners=[{"kind": "Pod", "name": name, "uid": f"uid-{name}"}]))
        for number, name in zip((1, 2), reversed(names), strict=True)
    ]
    for each in pods:
        index.changed(None, each)
    assert len(index.single()) == 2
    for each in pods:
        index.changed(each, None)
    assert index.single() == ()


def affinity(number: int, *, kind: str = REQUIRED) -> dict[str, Any]:
    """About seven kilobytes, another one for each number."""
    expression = {
        "key": "kubernetes.io/hostname",
        "operator": "In",
        "values": [f"n{number}-{n:04}" for n in range(450)],
    }
    term = {"matchExpressions": [expression]}
    terms = {"nodeSelectorTerms": [term]} if kind == REQUIRED else [{"weight": 1, "preference": term}]
    return {"affinity": {"nodeAffinity": {kind: terms}}}


def test_of_one_namespace_so_much_that_is_demanded_of_nodes_is_read_each_template_once() -> None:
    pods = Pods()
    assert not any(pods.add(number, **affinity(1)).constraints.unread for number in range(1_000))
    unread = [bool(pods.add(number, **affinity(number)).constraints.unread) for number in range(1_000, 2_200)]
    assert 100 < unread.index(True) < 600
    assert all(unread[unread.index(True) :])
    assert not pods.add(2_202, namespace="other", **affinity(2_202)).constraints.unread
    pods.clear()
    assert not pods.add(2_203, **affinity(2_203)).constraints.unread


def test_templates_with_many_demands_count_as_more_than_their_length() -> None:
    """Each demand costs time in each pass."""
    pods = Pods()

    def many(number: int) -> dict[str, Any]:
        terms = [{"matchExpressions": [{"key": f"k{number}", "operator": "Exists"}]} for _ in range(95)]
        return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}

    unread = [bool(pods.add(number, **many(number)).constraints.unread) for number in range(300)]
    assert 30 < unread.index(True) < 80


def test_the_affinity_of_gated_pods_counts_likewise_and_nothing_is_written_into_what_is_not_kept() -> None:
    pods, preferred = Pods(), "preferredDuringSchedulingIgnoredDuringExecution"
    found = [pods.add(number, **affinity(number, kind=preferred)).held for number in range(1_200)]
    unread = [held is not None and held.unread and held.node_affinity is None for held in found]
    assert 100 < unread.index(True) < 600
    assert all(unread[unread.index(True) :])
    same = [pods.add(number, namespace="other", **affinity(0, kind=preferred)).held for number in range(2_000, 3_000)]
    assert len({id(held.node_affinity) for held in same if held is not None}) == 1


def test_a_nomination_of_ours_stays_ours_whatever_its_author_writes_into_managed_fields() -> None:
    """kube-scheduler keeps the room of its node from others, and Ballast clears its own alone."""
    index, reader = Pods().index, PodReader()

    def seen(node: str, by: dict[str, Any], before: Pod | None) -> Pod:
        raw = executor(1, status={"nominatedNodeName": node}, managed_fields=[by])
        pod = index.slim(reader.read(raw))
        index.changed(before, pod)
        return pod

    ours = seen("node-1", NOMINATED_BY_US, None)
    forged = seen("node-1", NOMINATED_BY_ANOTHER, ours)
    elsewhere = seen("node-2", NOMINATED_BY_ANOTHER, forged)
    assert [pod.nominated for pod in (ours, forged, elsewhere)] == ["node-1", "node-1", None]


@pytest.mark.parametrize(
    ("gates", "nominated"),
    [
        pytest.param([GATE], "node-1", id="gated: Ballast's, and its author has emptied managedFields"),
        pytest.param([], None, id="released: kube-scheduler's, which preempts others"),
    ],
)
def test_a_nomination_without_a_manager_is_ballasts_only_if_the_pod_was_gated(
    gates: list[dict[str, str]], nominated: str | None
) -> None:
    """If Ballast cleared it, kube-scheduler would preempt more pods, again and again."""
    index, reader = Pods().index, PodReader()
    before = index.slim(reader.read(executor(1, gates=gates)))
    index.changed(None, before)
    for fields in ([NOMINATED_BY_ANOTHER] if not gates else [NOMINATED_BY_US], []):
        now = index.slim(reader.read(executor(1, status={"nominatedNodeName": "node-1"}, managed_fields=fields)))
        index.changed(before, now)
        before = now
    assert before.nominated == nominated


@pytest.mark.parametrize(("nominated", "told"), [(True, 1), (False, 0)])
def test_a_pass_is_due_when_kube_scheduler_finds_no_node_for_a_nominated_executor(
    *, nominated: bool, told: int
) -> None:
    """kube-scheduler keeps the room of its node until the nomination is cleared."""
    notified: list[None] = []
    index = PodIndex(notify=lambda: notified.append(None), gated=lambda: None, failed=lambda _: None)
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"nominatedNodeName": "node-1"} if nominated else {}
    before, after = (
        index.slim(PodReader().read(executor(status={**status, "conditions": found}, managed_fields=[NOMINATED_BY_US])))
        for found in ([], [refused])
    )
    index.changed(None, before)
    notified.clear()
    index.changed(before, after)
    assert len(notified) == told
