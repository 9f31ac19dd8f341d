"""What reading commands see of policies that can't be followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ballast.controller.viewer import NoPolicyError, NoSuchPolicyError, View, Viewer, look
from ballast.model import Snapshot
from tests.apiserver import Answer, ApiServer, Asked, scripted
from tests.unit.controller.stage import NAMESPACES, NOW
from tests.unit.kube.builders import GATE, driver, executor, node, pod

JSON = dict[str, Any]
IMPOSSIBLE = {"schedule": "0 8 * * *", "timeZone": "Mars/Olympus"}
WORDS = "BalancingPolicy broken: spec.moves.budgets[0].timeZone: 'Mars/Olympus': no such time zone"


def policy(name: str, pool: str, **budget: str) -> JSON:
    budgets = [{"moves": 0, "duration": "2h", **budget}] if budget else []
    spec = {"nodeSelector": {"matchLabels": {"pool": pool}}, "moves": {"mode": "Enforce", "budgets": budgets}}
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}, "spec": spec}


PODS = [executor(1, node="node-1"), executor(2, gates=[GATE])]


@contextmanager
def cluster(*policies: JSON, pods: Sequence[JSON] = PODS, no_volumes: bool = False) -> Iterator[ApiServer]:
    """Answers as its Prometheus, too: with no series."""
    lists: dict[str, list[JSON]] = {
        "balancingpolicies": list(policies),
        "nodes": [node("node-1", labels={"pool": "one"}), node("node-2", labels={"pool": "two"})],
        "namespaces": [{"metadata": {"name": name, "labels": labels}} for name, labels in NAMESPACES.items()],
        "pods": list(pods),
    }

    def answer(asked: Asked) -> Answer:
        kind = asked.path.split("?")[0].rsplit("/", 1)[-1]
        if asked.path.startswith("/api/v1/query"):
            return Answer(body={"status": "success", "data": {"resultType": "vector", "result": []}})
        if no_volumes and kind.startswith("persistentvolume"):
            return Answer(403, {"message": "no right to list them"})
        return Answer(body={"items": lists.get(kind, []), "metadata": {}})

    with scripted() as script:
        script.by = answer
        yield script


def view(folder: Path, policies: Sequence[JSON], *, only: str | None = None, pods: Sequence[JSON] = PODS) -> View:
    with cluster(*policies, pods=pods) as script:
        client = script.client(folder)
        viewer = Viewer(client, clock=lambda: NOW)
        try:
            return viewer.look(only)
        finally:
            viewer.close()
            client.close()


def test_a_policy_that_cannot_be_followed_is_a_problem_and_the_others_are_shown(tmp_path: Path) -> None:
    seen = view(tmp_path, [policy("broken", "one", **IMPOSSIBLE), policy("sound", "two")])
    assert [context.name for context in seen.contexts] == ["sound"]
    assert [problem for problem in seen.problems if problem.startswith(WORDS)]


@pytest.mark.parametrize(("condition", "shown"), [("NamespacesFollowed", 1), ("Balanced", 2)])
def test_a_namespace_with_which_passes_fail_is_left_out_and_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str, shown: int
) -> None:
    """Its policy says so; otherwise nothing is planned before a command does."""

    def fails(snapshot: Snapshot, *_: object) -> None:
        if any(each.namespace == "ads" for each in snapshot.executors):
            raise ZeroDivisionError

    monkeypatch.setattr("ballast.controller.viewer.plan", fails)
    monkeypatch.setitem(NAMESPACES, "ads", {"ballast.dev/gate": "enabled"})
    sound = policy("sound", "one")
    times = {"lastTransitionTime": "2026-11-21T10:00:00Z", "message": "", "reason": "PassFailed"}
    sound["status"] = {"conditions": [{"type": condition, "status": "False", **times}]}
    pods = [executor(1, node="node-1"), executor(1, namespace="ads", application="other", node="node-1")]
    seen = view(tmp_path, [sound], pods=pods)
    assert len(seen.contexts[0].snapshot.executors) == shown
    words = "BalancingPolicy sound: namespace ads is left out, since a pass fails with it: ZeroDivisionError: "
    assert (words in seen.problems) == (shown == 1)


def test_where_no_other_is_asked_for_its_problem_is_all_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoSuchPolicyError, match="Mars/Olympus"):
        view(tmp_path, [policy("broken", "one", **IMPOSSIBLE), policy("sound", "two")], only="broken")


def test_one_that_overlaps_as_well_says_so_first(tmp_path: Path) -> None:
    seen = view(tmp_path, [policy("sound", "two"), policy("young", "two", **IMPOSSIBLE)])
    (told,) = [problem for problem in seen.problems if "young" in problem]
    assert "overlap" in told


def test_who_asks_one_policy_for_an_executor_that_another_holds_is_told_which(tmp_path: Path) -> None:
    seen = view(tmp_path, [policy("old", "one"), policy("young", "two")], only="young")
    assert seen.why_absent("analytics", "spark-1-exec-2") == (
        "analytics/spark-1-exec-2: BalancingPolicy old answers for it; ask with --policy old"
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("absent", "analytics/absent: there is no such pod; say its namespace with -n"),
        ("spark-1-driver", "analytics/spark-1-driver is a driver: drivers are never placed or moved"),
        (
            "web-1",
            "analytics/web-1 is no Spark executor (label spark-role=executor): Ballast never touches it",
        ),
        (
            "spark-1-exec-1",
            "analytics/spark-1-exec-1: no policy's namespaceSelector and topologySelector include it",
        ),
    ],
)
def test_why_a_pod_is_in_no_pool_is_told_with_what_to_do(name: str, why: str, tmp_path: Path) -> None:
    elsewhere = policy("elsewhere", "one")
    elsewhere["spec"]["namespaceSelector"] = {"matchLabels": {"team": "ads"}}
    seen = view(tmp_path, [elsewhere], pods=[*PODS, driver(node="node-2"), pod("web-1", node="node-1")])
    assert seen.why_absent("analytics", name) == why


def test_without_any_policy_that_is_what_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoPolicyError, match="there is no BalancingPolicy yet"):
        view(tmp_path, [])


def test_a_policy_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(NoSuchPolicyError, match="there is no BalancingPolicy old; there are: one, two"):
        view(tmp_path, [policy("one", "one"), policy("two", "two")], only="old")


@pytest.mark.parametrize("known", [None, {"url": "http://127.0.0.1:1", "timeout": "2s"}], ids=["no other", "another"])
def test_who_names_a_prometheus_has_that_one_asked_instead_of_the_policys(known: JSON | None, tmp_path: Path) -> None:
    asking = policy("one", "one")
    asking["spec"]["metrics"] = {"prometheus": known} if known else {}
    with cluster(asking) as script:
        client = script.client(tmp_path)
        viewer = Viewer(client, clock=lambda: NOW, prometheus=script.url)
        (context,) = viewer.look().contexts
        viewer.close()
        client.close()
    assert context.reading.health.reason == "NoNodeMetrics", "it has answered"
    assert [asked for asked in script.asked if asked.path.startswith("/api/v1/query")]


CLAIM: JSON = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
LEFT_OUT = "volumes are left out, which may tie executors to zones: no right to list them"


def test_a_cluster_without_a_policy_is_seen_as_one_pool_by_the_defaults(tmp_path: Path) -> None:
    with cluster() as script:
        found = look(script.client(tmp_path), prometheus=None, rack_label=None, clock=lambda: NOW)
    assert [each.name for each in found.snapshot.nodes] == ["node-1", "node-2"]
    assert [each.name for each in found.snapshot.executors] == ["spark-1-exec-1", "spark-1-exec-2"]
    assert found.snapshot.metrics.reason == "NotConfigured"
    assert not [asked for asked in script.asked if "persistentvolume" in asked.path], "nothing mounts a claim"


def test_its_racks_and_its_prometheus_are_those_that_are_named(tmp_path: Path) -> None:
    with cluster() as script:
        found = look(script.client(tmp_path), prometheus=script.url, rack_label="example.org/rack", clock=lambda: NOW)
    assert [(each.label, each.distance) for each in found.policy.levels.ordered] == [
        ("topology.kubernetes.io/zone", 10.0),
        ("example.org/rack", 3.0),
        ("kubernetes.io/hostname", 1.0),
    ]
    assert found.snapshot.metrics.reason == "NoNodeMetrics"


@pytest.mark.parametrize(("forbidden", "problems"), [(True, (LEFT_OUT,)), (False, ())])
def test_volumes_that_may_not_be_listed_are_left_out_and_that_is_told(
    tmp_path: Path, *, forbidden: bool, problems: tuple[str, ...]
) -> None:
    with cluster(pods=[executor(1, node="node-1", **CLAIM)], no_volumes=forbidden) as script:
        found = look(script.client(tmp_path), prometheus=None, rack_label=None, clock=lambda: NOW)
    assert found.problems == problems
    assert len(found.snapshot.executors) == 1


def test_executors_that_opted_in_and_are_no_policys_are_a_problem(tmp_path: Path) -> None:
    other = policy("sound", "two")
    other["spec"]["namespaceSelector"] = {"matchLabels": {"team": "nobody"}}
    labeled = executor(3, node="node-1", labels={"ballast.dev/topology": "clicks"})
    seen = view(tmp_path, [other], pods=[labeled])
    assert [
        problem for problem in seen.problems if "PolicyMissing" in problem and "analytics/spark-1-exec-3" in problem
    ]
    assert not [problem for problem in view(tmp_path, [policy("sound", "two")]).problems if "PolicyMissing" in problem]
