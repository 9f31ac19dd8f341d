"""What the watches tell of the cluster is what its lists would."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.api.policy_status import PolicyStatus
from ballast.controller.cluster_objects import ClusterObjects
from ballast.controller.cluster_state import STALE_SECONDS, ClusterState
from ballast.controller.failures import Failure, Failures
from ballast.controller.gateclock import GateClock
from ballast.controller.observe import Lists, Pool, observe
from ballast.kube import kinds
from ballast.kube.errors import Unavailable
from ballast.kube.kinds import Kind
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.model import Policy
from tests.apiserver import Answer, ApiServer, Fault, scripted
from tests.testbed.waiting import wait_until
from tests.unit.controller.stage import move
from tests.unit.kube.builders import CREATED_AT, GATE, NOMINATED_BY_US, driver, executor, node, pod

JSON = dict[str, Any]
NODES = [node("node-1"), node("node-2", labels={"topology.kubernetes.io/zone": "b"})]
NAMESPACES: list[JSON] = [
    {"metadata": {"name": "analytics", "labels": {"ballast.dev/gate": "enabled"}}},
    {"metadata": {"name": "kafka"}},
]
CLICKS: JSON = {
    "metadata": {"name": "clicks", "namespace": "analytics", "generation": 1},
    "spec": {
        "components": [
            {"name": "kafka", "external": {"namespace": "kafka", "selector": {"matchLabels": {"app": "kafka"}}}},
            {"name": "ingest", "executors": 6},
        ]
    },
}
POLICY: JSON = {
    "metadata": {"name": "streaming", "generation": 1},
    "spec": {"nodeSelector": {}, "externalNamespaces": ["kafka"]},
}


def identified(item: JSON, version: int) -> JSON:
    metadata = item["metadata"]
    return {**item, "metadata": {"uid": f"uid-{metadata['name']}", **metadata, "resourceVersion": str(version)}}


@dataclass
class Observed:
    server: ApiServer
    state: ClusterState
    failures: list[Failure] = field(default_factory=list)
    noticed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    gated: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """What came to a gate is not in `noticed`."""
    now: float = 0.0

    def put(self, raw: JSON, version: int | None = None, *, plural: str = "pods") -> None:
        """`version`: that it gets, if another one than the next."""
        self.server.version = self.server.version if version is None else version - 1
        self.server.put(plural, raw)

    def gone(self, raw: JSON, *, plural: str = "pods") -> JSON:
        """Removes it. As it was."""
        metadata = raw["metadata"]
        place = (plural, metadata["name"], metadata.get("namespace", ""))
        last = self.server.one(*place)
        self.server.remove(*place)
        return last

    def await_notice(self) -> None:
        assert self.noticed.acquire(timeout=30)

    def await_gated(self) -> None:
        assert self.gated.acquire(timeout=30)

    def quiet(self) -> None:
        for each in (self.noticed, self.gated):
            while each.acquire(blocking=False):
                pass

    def pods(self) -> dict[str, tuple[str, ...]]:
        """Gates, by name."""
        return {pod.name: pod.gates for pod in self.state.look().lists.pods}


@contextmanager
def observed(*pods: JSON, **objects: list[JSON]) -> Iterator[Observed]:
    server = ApiServer(version=0)
    for plural, raws in {"pods": pods, "nodes": NODES, "namespaces": NAMESPACES, **objects}.items():
        server.put(plural, *raws)
    server.version = max(100, server.version)
    found = Observed(server, None)  # type: ignore[arg-type]
    found.state = ClusterState(
        server.client(),
        monotonic=lambda: found.now,
        notify=found.noticed.release,
        gated=found.gated.release,
        failed=found.failures.append,
    )
    found.state.start()
    try:
        found.state.look()
        found.quiet()
        yield found
    finally:
        found.state.stop()


def test_a_pod_that_the_watch_brings_is_noticed_and_seen() -> None:
    with observed() as found:
        found.put(executor(1, gates=[GATE]))
        found.await_gated()
        assert found.pods() == {"spark-1-exec-1": ("ballast.dev/placement",)}


def test_an_executor_at_its_gate_is_told_from_other_changes_which_may_be_a_flood() -> None:
    with observed(executor(1, gates=[GATE, {"name": "kueue.x-k8s.io/admission"}]), executor(2, gates=[GATE])) as found:
        found.put(executor(1, gates=[GATE]))
        found.await_gated()
        assert not found.noticed.acquire(blocking=False)
        found.put(executor(2))
        found.await_notice()
        assert not found.gated.acquire(blocking=False)


def test_other_pods_are_summed_up_by_node_and_wake_nothing() -> None:
    with observed(pod("web-1", node="node-1")) as found:
        found.put(pod("web-2", node="node-1"))
        found.gone(pod("web-1", node="node-1"))
        found.put(executor(1, gates=[GATE]))
        found.await_gated()
        others = found.state.look().lists.others
        assert {name: requested.pods for name, requested in others.requested.items()} == {"node-1": 1}
        assert not found.noticed.acquire(blocking=False)


def test_of_the_metadata_of_a_users_objects_only_what_is_used_is_kept() -> None:
    """A user who may create ExecutorMoves and SparkTopologies can fill a megabyte of each, and thousands of them."""
    asked, clicks = identified(move(1), 250), identified(CLICKS, 251)
    more = {
        "annotations": {"much": "x" * 1000},
        "managedFields": [{"manager": "kubectl"}],
        "finalizers": ["example.com/much"],
        "ownerReferences": [{"kind": "Pod", "name": "much", "uid": "u"}],
        "labels": {f"{number:05}": "" for number in range(2000)},
    }
    with observed() as found:
        for kind, raw in ((kinds.EXECUTOR_MOVE, asked), (kinds.SPARK_TOPOLOGY, clicks)):
            found.state.heard(kind, {**raw, "metadata": {**raw["metadata"], **more}})
        objects = found.state.look()
        assert objects.moves == (asked,)
        assert [read.raw for read in objects.topologies] == [{"metadata": clicks["metadata"]}]
        assert len(objects.topologies[0].resource.spec.components) == 2, "its spec is kept once"
        assert not objects.topologies[0].resource.metadata.annotations


def test_objects_of_other_kinds_namespaces_and_names_are_not_taken_for_each_other() -> None:
    first = move(1)
    elsewhere = {**first, "metadata": {**first["metadata"], "namespace": "other", "uid": "uid-elsewhere"}}
    other = {**first, "metadata": {**first["metadata"], "name": "m2", "uid": "uid-other"}}
    topology = {**CLICKS, "metadata": {**CLICKS["metadata"], "name": first["metadata"]["name"], "uid": "uid-clicks"}}
    again = {**first, "metadata": {**first["metadata"], "uid": "uid-again"}}
    with observed() as found:
        for version, raw in enumerate((first, elsewhere, other, again), 300):
            found.state.heard(kinds.EXECUTOR_MOVE, _at_version(raw, version))
        found.state.heard(kinds.SPARK_TOPOLOGY, _at_version(topology, 400))
        objects = found.state.look()
        assert sorted(raw["metadata"]["uid"] for raw in objects.moves) == ["uid-again", "uid-elsewhere", "uid-other"]
        assert len(objects.topologies) == 1


def _at_version(raw: JSON, version: int) -> JSON:
    return {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(version)}}


@pytest.mark.parametrize(
    ("change", "news"),
    [
        ({"deletionTimestamp": "2026-11-21T10:00:00Z"}, True),
        ({"generation": 2}, True),
        ({"annotations": {"a": "b"}}, False),
    ],
    ids=["its deletion", "another spec", "an annotation"],
)
def test_what_a_user_does_to_a_move_is_news(change: JSON, *, news: bool) -> None:
    first = _at_version(move(1), 300)
    with observed() as found:
        found.state.heard(kinds.EXECUTOR_MOVE, first)
        found.quiet()
        changed = {**first, "metadata": {**first["metadata"], **change, "resourceVersion": "301"}}
        found.state.heard(kinds.EXECUTOR_MOVE, changed)
        assert found.noticed.acquire(blocking=False) is news


def long(name: str, namespace: str = "analytics") -> JSON:
    """A topology of a megabyte."""
    values = [f"{number:063}" for number in range(20)]
    selector = {"matchExpressions": [{"key": f"k{n}", "operator": "In", "values": values} for n in range(8)]}
    components = [{"name": f"c{number}", "selector": selector} for number in range(95)]
    return {"metadata": {"name": name, "namespace": namespace, "generation": 1}, "spec": {"components": components}}


def test_topologies_of_which_nothing_can_be_kept_are_left_alone_until_others_are_deleted() -> None:
    flood = [long(f"long-{number}") for number in range(4)]
    others = long("other", "kafka")
    with observed(sparktopologies=[*flood, others]) as found:
        objects = found.state.look()
        assert named(objects) == ["long-0", "long-1", "other"]
        assert [str(each) for each in objects.excesses] == [
            (
                "sparktopologies in analytics beyond 2 MiB of what is kept of their specs are left alone, long-2 too: "
                "delete some"
            )
        ]
        found.state.heard(kinds.SPARK_TOPOLOGY, found.gone(flood[0], plural="sparktopologies"), deleted=True)
        found.state.verify()
        assert named(found.state.look()) == ["long-1", "long-2", "other"]
        assert [each.name for each in found.state.look().excesses] == ["long-3"]


def test_the_oldest_topologies_of_a_namespace_are_followed_and_the_others_are_named() -> None:
    def created(number: int) -> JSON:
        metadata = {
            "name": f"t-{number:03}",
            "namespace": "analytics",
            "creationTimestamp": f"{2200 - number}-01-01T00:00:00Z",
        }
        return {"metadata": metadata, "spec": {"components": [{"name": "a"}]}}

    with observed(sparktopologies=[created(number) for number in range(102)]) as found:
        objects = found.state.look()
    assert named(objects) == [f"t-{number:03}" for number in range(2, 102)]
    assert sorted((read.resource.metadata.name, str(limit)) for read, limit in objects.turned_away) == [
        ("t-000", "100 SparkTopologies"),
        ("t-001", "100 SparkTopologies"),
    ]


def test_open_moves_by_hand_beyond_their_limit_are_left_alone_and_the_operators_own_and_ended_ones_are_not() -> None:
    flood, own = [by_hand(number) for number in range(1000, 1052)], [move(number) for number in range(4000, 4100)]
    ended = [{**by_hand(number), "status": {"phase": "Succeeded"}} for number in range(5000, 5100)]
    with observed(executormoves=[*flood, *own, *ended]) as found:
        assert len(found.state.look().moves) == 250
        assert [str(each) for each in found.state.look().excesses] == [
            "executormoves in analytics beyond 50 open ExecutorMoves by hand are left alone, m1050 too: delete some"
        ]
        found.state.heard(kinds.EXECUTOR_MOVE, found.gone(flood[0], plural="executormoves"), deleted=True)
        assert "m1050" in {each["metadata"]["name"] for each in found.state.look().moves}


def by_hand(number: int) -> JSON:
    order = move(number)
    return {**order, "spec": {key: value for key, value in order["spec"].items() if key != "reason"}}


def named(objects: ClusterObjects) -> list[str]:
    return [read.resource.metadata.name for read in objects.topologies]


def test_labels_by_which_a_policy_chooses_topologies_are_kept() -> None:
    chosen = identified({**CLICKS, "metadata": {**CLICKS["metadata"], "labels": {"team": "a"}}}, 251)
    with observed() as found:
        found.state.heard(kinds.SPARK_TOPOLOGY, chosen)
        (read,) = found.state.look().topologies
        assert read.resource.metadata.labels == {"team": "a"}


def test_a_released_executor_is_not_released_again_before_its_event_comes() -> None:
    with observed(executor(1, gates=[GATE])) as found:
        uid = "uid-spark-1-exec-1"
        found.state.wrote(kinds.POD, {"metadata": {"uid": uid, "name": "x", "resourceVersion": "300"}})
        assert found.pods() == {"spark-1-exec-1": ()}
        assert found.state.gated() == []
        found.put(executor(1, gates=[GATE]), 299)
        found.quiet()
        found.put(executor(2))
        found.await_notice()
        assert found.pods() == {"spark-1-exec-1": (), "spark-1-exec-2": ()}


def test_an_executor_that_was_only_nominated_is_still_gated() -> None:
    """The answer to a write of a pod's status has all of the pod; that to the removal of a gate has its metadata."""
    with observed(executor(1, gates=[GATE])) as found:
        found.state.wrote(kinds.POD, identified(executor(1, gates=[GATE]), 300))
        assert [pod.name for pod in found.state.gated()] == ["spark-1-exec-1"]


def test_an_executor_that_was_nominated_and_released_before_any_event_came_is_nominated_by_ballast() -> None:
    """Whose the nomination is can't be told from a pod that a user has written to."""
    nominated = {"nominatedNodeName": "node-1"}
    with observed(executor(1, gates=[GATE])) as found:
        ours = executor(1, gates=[GATE], status=nominated, managed_fields=[NOMINATED_BY_US])
        found.state.wrote(kinds.POD, identified(ours, 300))
        uid = ours["metadata"]["uid"]
        found.state.wrote(kinds.POD, {"metadata": {"uid": uid, "name": "x", "resourceVersion": "301"}})
        found.quiet()
        found.put(executor(1, status=nominated), 302)
        found.put(executor(2))
        found.await_notice()
        assert [pod.nominated for pod in found.state.look().lists.pods] == ["node-1", None]


@pytest.mark.parametrize(
    ("application", "asked"),
    [
        ("spark-1", ("/api/v1/namespaces/analytics/pods", ["spark-app-selector=spark-1"])),
        ("", ("/api/v1/namespaces/analytics/pods/spark-1-exec-1", None)),
    ],
)
def test_what_a_move_is_about_is_read_from_the_server_and_no_more_than_that(
    application: str, asked: tuple[str, list[str] | None], tmp_path: Path
) -> None:
    one = executor(1)
    with scripted(Answer(body={**one, "items": [one]}), Answer(404)) as script:
        client = script.client(tmp_path)
        state = ClusterState(client, monotonic=lambda: 0.0, notify=_nothing, gated=_nothing, failed=_fail)
        assert [pod.name for pod in state.reread("analytics", application, "spark-1-exec-1")] == ["spark-1-exec-1"]
        path, _, parameters = script.asked[0].path.partition("?")
        assert (path, parse_qs(parameters).get("labelSelector")) == asked
        if not application:
            assert state.reread("analytics", "", "spark-1-exec-1") == [], "it is gone"


def _nothing() -> None:
    """Something changed."""


def _fail(failure: Failure) -> None:
    pytest.fail(str(failure))


def labeled(raw: JSON, label: str) -> JSON:
    return {**raw, "metadata": {**raw["metadata"], "labels": {**raw["metadata"].get("labels", {}), label: "new"}}}


@pytest.mark.parametrize(("plural", "raw"), [("nodes", NODES[0]), ("namespaces", NAMESPACES[0])])
def test_news_of_a_node_or_a_namespace_that_change_nothing_a_pass_reads_wake_nothing(plural: str, raw: JSON) -> None:
    """A kubelet reports its node every ten seconds."""
    heartbeat = (
        {**raw, "metadata": {**raw["metadata"], "annotations": {"heartbeat": "2"}}} if plural != "nodes" else raw
    )
    with observed() as found:
        found.put(heartbeat, plural=plural)
        found.put(labeled(raw, "example.org/new"), plural=plural)
        found.await_notice()
        lists = found.state.look().lists
        known = {node.name: node.labels for node in lists.nodes} | dict(lists.namespaces)
        assert known[raw["metadata"]["name"]]["example.org/new"] == "new"
        assert not found.noticed.acquire(blocking=False)


def test_a_move_that_this_process_made_is_in_the_next_objects_whatever_kopf_has_heard() -> None:
    with observed() as found:
        found.state.wrote(kinds.EXECUTOR_MOVE, identified(move(1), 300))
        found.state.heard(kinds.EXECUTOR_MOVE, identified(move(1), 250))
        [known] = found.state.look().moves
        assert known["metadata"]["resourceVersion"] == "300"


@pytest.mark.parametrize(("kind", "raw"), [(kinds.BALANCING_POLICY, POLICY), (kinds.EXECUTOR_MOVE, move(1))])
def test_a_write_of_status_is_no_news_and_a_change_of_spec_is(kind: Kind, raw: JSON) -> None:
    with observed(**{kind.plural: [raw]}) as found:
        found.state.heard(kind, identified({**raw, "status": {"message": "ours"}}, 300))
        assert not found.noticed.acquire(blocking=False)
        found.state.heard(kind, identified({**raw, "metadata": {**raw["metadata"], "generation": 2}}, 301))
        found.await_notice()


def test_what_kopf_has_missed_is_found_by_a_list() -> None:
    with observed(balancingpolicies=[POLICY]) as found:
        found.put(CLICKS, plural="balancingpolicies")
        missed = found.state.verify()
        assert missed.keys() == {"uid-clicks"}
        assert found.state.unheard(missed)
        found.state.heard(kinds.BALANCING_POLICY, identified(CLICKS, missed["uid-clicks"]))
        assert not found.state.unheard(missed)


def test_after_etcd_was_restored_from_a_backup_our_own_kinds_are_as_they_are_listed() -> None:
    """The watch of pods finds out, and what kopf has told of has versions that are still to come."""
    with observed(balancingpolicies=[POLICY]) as found:
        (listed,) = found.server.all("balancingpolicies")
        found.state.heard(kinds.BALANCING_POLICY, identified(POLICY | {"spec": {"interval": "30s"}}, 95))
        assert not found.state.restored()
        found.server.next_watch(3)
        found.server.version = 60
        found.server.strike(Fault.SILENT)
        found.server.next_watch(6)
        assert found.state.restored()
        (policy,) = found.state.look().policies
        assert policy.raw["metadata"]["resourceVersion"] == listed["metadata"]["resourceVersion"]
        assert found.state.unheard({"uid-streaming": int(listed["metadata"]["resourceVersion"])})
        assert not found.state.restored()


def test_a_write_of_this_process_after_the_list_is_not_taken_for_a_change_that_kopf_missed() -> None:
    with observed(balancingpolicies=[POLICY]) as found:
        found.put(CLICKS, plural="balancingpolicies")
        missed = found.state.verify()
        found.state.heard(kinds.BALANCING_POLICY, identified(CLICKS, missed["uid-clicks"]))
        found.state.wrote(kinds.BALANCING_POLICY, identified(CLICKS, missed["uid-clicks"] + 7))
        assert not found.state.unheard(missed)


def test_a_deletion_that_kopf_missed_is_found_by_a_list_and_one_that_it_told_of_is_not() -> None:
    with observed() as found:
        for raw in (POLICY, CLICKS):
            found.state.heard(kinds.BALANCING_POLICY, identified(raw, 50))
        found.state.heard(kinds.BALANCING_POLICY, identified(CLICKS, 51), deleted=True)
        missed = found.state.verify()
        assert missed == {"uid-streaming": 0}
        assert found.state.unheard(missed)
        assert not found.state.unheard({"uid-clicks": 0})
        found.state.heard(kinds.BALANCING_POLICY, identified(POLICY, 52), deleted=True)
        assert not found.state.unheard(missed)


@pytest.mark.parametrize("first", ["the older", "the newer"])
def test_of_two_objects_with_one_name_the_older_is_gone_whichever_is_told_of_first(first: str) -> None:
    """Its deletion is never told of when its definition is deleted, too, and both are made again."""
    older, newer = identified(POLICY, 50), identified(POLICY, 60)
    newer["metadata"]["uid"] = "uid-made-again"
    with observed() as found:
        for raw in (older, newer) if first == "the older" else (newer, older):
            found.state.heard(kinds.BALANCING_POLICY, raw)
        assert [read.raw["metadata"]["uid"] for read in found.state.look().policies] == ["uid-made-again"]


def test_the_late_news_that_the_older_of_two_is_gone_does_not_hide_a_third() -> None:
    first, second, third = (identified(POLICY, version) for version in (50, 60, 70))
    second["metadata"]["uid"], third["metadata"]["uid"] = "uid-second", "uid-third"
    with observed() as found:
        found.state.heard(kinds.BALANCING_POLICY, first)
        found.state.heard(kinds.BALANCING_POLICY, second)
        found.state.heard(kinds.BALANCING_POLICY, first, deleted=True)
        assert [read.raw["metadata"]["uid"] for read in found.state.look().policies] == ["uid-second"]
        found.state.heard(kinds.BALANCING_POLICY, third)
        assert [read.raw["metadata"]["uid"] for read in found.state.look().policies] == ["uid-third"]


def test_a_policy_that_came_after_the_pod_makes_the_objects_unconfirmed_once() -> None:
    with observed(executor(1, gates=[GATE])) as found:
        found.put(POLICY, plural="balancingpolicies")
        assert not found.state.confirm()
        assert found.state.confirm()
        assert [read.resource.metadata.name for read in found.state.look().policies] == ["streaming"]


def test_a_move_that_is_changed_all_the_time_leaves_the_objects_confirmed() -> None:
    with observed(executor(1, gates=[GATE])) as found:
        found.put(move(1), plural="executormoves")
        assert found.state.confirm()
        assert found.state.verify()


def test_where_other_pods_keep_executors_away_is_known_as_long_as_they_are_there() -> None:
    """Many pods of a cluster have anti-affinity: a pass is told of their terms, and not of each of them."""
    term = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    lonely = [pod(f"lonely-{n}", node="node-1", affinity=affinity) for n in range(2)]
    with observed(*lonely, executor(1, gates=[GATE]), pod("other", node="node-1")) as found:

        def known() -> list[set[str]]:
            lists = found.state.look().lists
            assert [each.name for each in lists.pods][:1] == ["spark-1-exec-1"]
            seen = observe(lists, Policy("x"), pool=Pool(), topologies=[], clock=GateClock(), now=CREATED_AT)
            assert [set(each.values) for each in seen.snapshot.executors[0].constraints.anti_affinity] == [
                set(nodes) for nodes in lists.others.keeping_away.values()
            ]
            return [set(nodes) for nodes in lists.others.keeping_away.values()]

        assert known() == [{"node-1"}]
        for number, each in enumerate(lonely):
            found.gone(each)
            found.put(executor(5 + number))
            found.await_notice()
            assert known() == ([{"node-1"}] if number == 0 else [])


def test_an_object_that_cannot_be_parsed_is_named_and_the_others_are_read() -> None:
    broken = {"metadata": {"name": "broken", "generation": 1}, "spec": {"interval": 5}}
    with observed(balancingpolicies=[POLICY, broken]) as found:
        objects = found.state.look()
        assert [read.resource.metadata.name for read in objects.policies] == ["streaming"]
        assert len(objects.broken) == 1


def test_a_status_that_cannot_be_read_counts_as_none() -> None:
    with observed(balancingpolicies=[{**POLICY, "status": {"attempts": 5}}]) as found:
        (read,) = found.state.look().policies
        assert read.resource.status == PolicyStatus()
        assert read.raw["status"] == {"attempts": 5}


def test_what_was_released_since_the_last_look_is_known_before_the_next_one() -> None:
    with observed(executor(1, gates=[GATE]), executor(2, gates=[GATE])) as found:
        shown = [pod.uid for pod in found.state.look().lists.pods]
        assert found.state.released(shown) == frozenset()
        metadata = {**found.server.one("pods", "spark-1-exec-1", "analytics")["metadata"], "resourceVersion": "900"}
        found.state.wrote(kinds.POD, {"metadata": metadata})
        assert found.state.released(shown) == {metadata["uid"]}


def test_nothing_is_decided_on_a_watch_that_has_been_silent_for_too_long() -> None:
    with observed() as found:
        found.now = STALE_SECONDS + 1
        with pytest.raises(Unavailable, match="nothing was heard for 181 s"):
            found.state.look()
        with pytest.raises(Unavailable, match="watch pods"):
            found.state.gated()


def test_an_executor_that_fails_is_reported_although_its_pod_goes_at_once() -> None:
    with observed(executor(1, node="node-1")) as found:
        found.put(executor(1, node="node-1", phase="Failed"))
        found.gone(executor(1, node="node-1", phase="Failed"))
        found.await_notice()
        found.await_notice()
        assert found.failures == [Failure(("analytics", "spark-1"), 1)]


def test_volumes_are_watched_from_the_first_executor_on_that_mounts_a_claim() -> None:
    mounting = executor(2, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    volume = {
        "metadata": {"name": "pv", "labels": {"topology.kubernetes.io/zone": "a"}},
        "spec": {"claimRef": {"name": "data", "namespace": "analytics"}},
        "status": {"phase": "Bound"},
    }
    with observed(executor(1), persistentvolumes=[volume]) as found:
        assert "persistentvolumes" not in found.state.ages()
        found.put(mounting)
        found.await_notice()
        assert found.state.look().lists.volumes.node_terms("analytics", ("data",))
        assert "persistentvolumes" in found.state.ages()
        found.state.look()
        asked = [each.place.plural for each in found.server.asked if "watch" not in each.query]
        assert asked.count("persistentvolumes") == 1
        assert "persistentvolumeclaims" not in asked, "its claim has a volume"


def test_storage_classes_are_read_once_an_executors_claim_has_no_volume_and_no_executor_waits_for_them() -> None:
    mounting = executor(1, gates=[GATE], volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    claim = {"metadata": {"namespace": "analytics", "name": "data"}, "spec": {"storageClassName": "fast"}}
    allowed = [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["b"]}]}]
    storage_class = {"metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com", "allowedTopologies": allowed}
    with observed(persistentvolumeclaims=[claim], storageclasses=[storage_class]) as found:
        refused = Answer(403, {"message": 'x is forbidden: User "u" cannot list resource "x"'})
        found.server.refusals["/storageclasses"] = refused
        found.put(mounting)
        found.await_gated()
        assert found.state.look().lists.volumes.node_terms("analytics", ("data",)) == ()
        assert "storageclasses" not in found.state.ages()
    with observed(mounting, persistentvolumeclaims=[claim], storageclasses=[storage_class]) as found:

        def read() -> bool:
            return bool(found.state.look().lists.volumes.node_terms("analytics", ("data",)))

        wait_until(read, what="where its class makes volumes is known")
        assert {"persistentvolumeclaims", "storageclasses"} <= found.state.ages().keys()


PODS = st.lists(
    st.sampled_from(
        [
            executor(1, gates=[GATE]),
            executor(2, node="node-1"),
            executor(3, node="node-2", phase="Failed"),
            driver(node="node-2"),
            pod("web", node="node-1"),
            pod("waiting"),
            pod("done", node="node-1", phase="Succeeded"),
            pod("evicted-unbound", phase="Failed"),
            pod("broker", namespace="kafka", node="node-2", labels={"app": "kafka"}),
            pod("held", gates=[GATE]),
        ]
    ),
    unique_by=lambda each: each["metadata"]["name"],
)


@given(PODS, PODS)
def test_a_pass_sees_the_same_by_watches_as_by_lists(first: list[JSON], then: list[JSON]) -> None:
    """Whatever was there first, and whatever came, changed and went."""
    with observed(*first, sparktopologies=[CLICKS], balancingpolicies=[POLICY]) as found:
        later = {each["metadata"]["name"] for each in then}
        for each in first:
            if each["metadata"]["name"] not in later:
                found.gone(each)
        for each in then:
            found.put(each)
        found.put(executor(9, node="node-1"))
        while "spark-1-exec-9" not in found.pods():
            found.await_notice()
        objects = found.state.look()
    reader, nodes = PodReader(), NodeReader()
    pods = [reader.read(each) for each in (*then, executor(9, node="node-1"))]
    labels = {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in NAMESPACES}
    listed = Lists(pods, [nodes.read(each) for each in NODES], labels)
    assert _seen(objects.lists, objects) == _seen(listed, objects)


def _seen(lists: Lists, objects: ClusterObjects) -> object:
    return observe(
        lists,
        Policy("streaming"),
        pool=Pool.of(objects.policies[0].resource.spec),
        topologies=[read.resource for read in objects.topologies],
        clock=GateClock().after(lists.pods, CREATED_AT),
        now=CREATED_AT + 100,
        failures=Failures().after(lists.pods),
    )
