from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from ballast.api.labels import LabelSelector
from ballast.api.topology import SparkTopology
from ballast.controller.ends import Rates, declared
from ballast.controller.failures import Failure, Failures
from ballast.controller.gateclock import GateClock
from ballast.controller.observe import Lists, Metrics, Observation, Pool, observe
from ballast.controller.pod_index import PodIndex
from ballast.controller.topology_findings import spec_findings
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.kube.volumes import Volumes, read_claim, read_storage_class, read_volume
from ballast.model import (
    Anchor,
    Component,
    ExecutorUsage,
    MetricsHealth,
    NodeUsage,
    Phase,
    Policy,
    Resources,
    Separation,
    Stream,
    Workload,
)
from ballast.placement.admission import Admission, refusal
from tests.unit.kube.builders import (
    CREATED,
    CREATED_AT,
    GATE,
    NOMINATED_BY_ANOTHER,
    driver,
    executor,
    expression,
    node,
    pod,
    topology,
)

GI = float(1 << 30)
NAMESPACES = {"analytics": {"ballast.dev/gate": "enabled"}, "kafka": {}, "other": {"tier": "dev"}}
NODES = [node("node-1"), node("node-2", labels={"topology.kubernetes.io/zone": "b"})]

ASKING: dict[str, Any] = {
    "components": [
        {"name": "ingest", "exchange": {"query": "sum(x)"}},
        {"name": "sessions", "exchange": {"bytesPerSecond": 5}},
    ],
    "streams": [{"from": "ingest", "to": "sessions", "rate": {"query": "sum(y)"}}],
}


def look(
    *pods: dict[str, Any],
    nodes: list[dict[str, Any]] | None = None,
    topologies: list[SparkTopology] | None = None,
    pool: Pool | None = None,
    volumes: Volumes | None = None,
    failed: tuple[Failure, ...] = (),
    now: float = CREATED_AT + 100,
    others: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> Observation:
    """`others`: pods that a watch sums up."""
    reader, node_reader = PodReader(), NodeReader()
    read = [reader.read(pod) for pod in pods]
    facts = [node_reader.read(each) for each in (NODES if nodes is None else nodes)]
    index = PodIndex(notify=lambda: None, gated=lambda: None, failed=lambda _: None)
    for each in others:
        index.changed(None, reader.read(each))
    return observe(
        Lists(read, facts, NAMESPACES, volumes or Volumes(), index.others(())),
        Policy("streaming"),
        pool=pool or Pool(),
        topologies=topologies or [],
        clock=GateClock().after(read, CREATED_AT),
        now=now,
        failures=Failures().after(read, failed),
        **more,
    )


def test_the_pool_is_the_nodes_that_the_policy_selects() -> None:
    nodes = [node("in"), node("out", labels={"pool": "batch"})]
    pool = Pool(node_selector=LabelSelector(match_labels={"pool": "streaming"}))
    assert [n.name for n in look(nodes=nodes, pool=pool).snapshot.nodes] == ["in"]


def test_requested_counts_every_bound_pod_that_has_not_ended() -> None:
    found = look(
        executor(1, node="node-1"),
        pod("foreign", node="node-1", namespace="kube-system"),
        pod("leaving", node="node-1", leaving=True),
        pod("done", node="node-1", phase="Succeeded"),
        pod("elsewhere", node="node-2"),
    )
    assert found.snapshot.nodes[0].requested == Resources(3.0, 3 * GI, 3.0)


def test_pending_demand_is_what_the_scheduler_will_bind_before_us() -> None:
    found = look(
        pod("waiting", namespace="kube-system", nodeSelector={"disk": "ssd"}),
        pod("gated", gates=[{"name": "theirs"}]),
        pod("going", leaving=True),
        pod("bound", node="node-1"),
        executor(1),
        executor(2, namespace="unknown"),
    )
    assert [demand.constraints.node_selector for demand in found.snapshot.pending] == [(("disk", "ssd"),), ()]


def test_pods_that_kube_scheduler_will_not_bind_take_no_room_from_executors() -> None:
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    found = look(
        pod("of-no-scheduler", schedulerName="nosuch"),
        pod("fits-nowhere", status={"conditions": [refused]}),
        pod("without-its-devices", resourceClaims=[{"name": "gpu", "resourceClaimName": "nosuch"}]),
        pod("without-its-gang", schedulingGroup={"podGroupName": "nosuch"}),
        pod("of-kubernetes-1.35", workloadRef={"name": "nosuch", "podGroup": "workers"}),
        pod("waiting"),
    )
    assert len(found.snapshot.pending) == 1
    assert look(pod("waiting"), now=CREATED_AT + 130).snapshot.pending == (), "kube-scheduler does not even try it"
    only_refused = look(pod("fits-nowhere", status={"conditions": [refused]})).snapshot
    assert (only_refused.pending, only_refused.contended) == ((), True)
    assert not look(pod("bound", node="node-1")).snapshot.contended
    asking, plain = look(executor(1, resourceClaims=[{"name": "gpu"}]), executor(2)).snapshot.executors
    assert (asking.never_unschedulable, plain.never_unschedulable) == (True, False)


def preempting(name: str, *, priority: int = 0, **more: Any) -> dict[str, Any]:
    """kube-scheduler found no node for the pod, and keeps the room of pods that it preempts until they have ended."""
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": CREATED}
    status = {"nominatedNodeName": "node-1", "conditions": [refused]}
    make = executor if more.pop("spark", False) else pod
    return make(name=name, status=status, managed_fields=[NOMINATED_BY_ANOTHER], priority=priority, **more)


@pytest.mark.parametrize("spark", [True, False])
@pytest.mark.parametrize(("priority", "counted"), [(0, True), (5, True), (-1, False)])
def test_the_room_that_kube_scheduler_keeps_for_a_pod_that_preempts_others_is_taken(
    spark: bool, priority: int, counted: bool
) -> None:
    """kube-scheduler keeps it from pods of the same or a lower priority. Preempted pods of a user may never end."""
    waiting = preempting("waits", priority=priority, spark=spark)
    seen = look(executor(7, gates=[GATE]), waiting, now=CREATED_AT + 10).snapshot
    assert [node.requested.cpu_cores for node in seen.nodes] == [1.0 if counted else 0.0, 0.0]
    known = next((each for each in seen.executors if each.name == "waits"), None)
    assert not spark or (known is not None and known.about_to_be_bound(seen.taken_at) is not counted)
    assert seen.pending == ()


def test_room_is_kept_from_executors_of_the_lowest_priority_that_are_gated() -> None:
    low = executor(7, gates=[GATE], priority=-10)
    seen = look(low, executor(8, gates=[GATE]), preempting("waits", priority=-5)).snapshot
    assert seen.nodes[0].requested.cpu_cores == 1.0


ZONE = "topology.kubernetes.io/zone"
EXECUTORS = {"matchLabels": {"spark-role": "executor"}}


def keeping_away(*, node: str | None = "node-1", namespace: str = "other", **term: Any) -> dict[str, Any]:
    """A pod of another user that requires that no executor is in its zone."""
    written = {"labelSelector": EXECUTORS, "namespaceSelector": {}, "topologyKey": ZONE, **term}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [written]}}
    return pod("lonely", namespace=namespace, node=node, affinity=affinity)


@pytest.mark.parametrize(
    ("lonely", "barred"),
    [
        pytest.param(keeping_away(), "a", id="in its zone"),
        pytest.param(keeping_away(node="node-2"), "b", id="wherever that is"),
        pytest.param(keeping_away(topologyKey="kubernetes.io/hostname"), "node-1", id="on its node"),
        pytest.param(keeping_away(namespaceSelector=None), "", id="by default in its own namespace alone"),
        pytest.param(keeping_away(namespaceSelector=None, namespaces=["analytics"]), "a", id="in those it names"),
        pytest.param(keeping_away(namespaceSelector={"matchLabels": {"tier": "dev"}}), "", id="in those it chooses"),
        pytest.param(keeping_away(labelSelector={"matchLabels": {"app": "x"}}), "", id="what it does not select"),
        pytest.param(
            keeping_away(labelSelector={"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}),
            "a",
            id="by expressions",
        ),
        pytest.param(keeping_away(node=None), "", id="not before it has a node"),
        pytest.param(keeping_away(node="gone"), "", id="nor on a node that is not there"),
        pytest.param(keeping_away(topologyKey="row"), "", id="nor where nodes have no such label"),
        pytest.param({**keeping_away(), "status": {"phase": "Failed"}}, "", id="nor once it has ended"),
    ],
)
def test_pods_keep_executors_away_by_anti_affinity_of_their_own(lonely: dict[str, Any], barred: str) -> None:
    seen = look(executor(1, gates=[GATE]), lonely).snapshot
    constraints = seen.executors[0].constraints
    assert [place for each in constraints.anti_affinity for place in each.values] == ([barred] if barred else [])
    admitted = [node.name for node in seen.nodes if refusal(seen.executors[0], node) is None]
    assert admitted == [node.name for node in seen.nodes if barred not in node.location]
    assert list(Admission(seen.nodes).mask(constraints)) == [node.name in admitted for node in seen.nodes]


def test_executors_that_keep_their_like_away_are_not_kept_away_by_them() -> None:
    """Such executors are placed by preference: kube-scheduler spreads them."""
    alike = [executor(1, node="node-1"), executor(2, gates=[GATE])]
    for each in alike:
        each["spec"]["affinity"] = keeping_away(namespaceSelector=None)["spec"]["affinity"]
    assert [each.constraints.anti_affinity for each in look(*alike).snapshot.executors] == [(), ()]


@pytest.mark.parametrize(
    ("node", "tied"),
    [
        pytest.param("node-1", False, id="it may keep any executor away"),
        pytest.param(None, True, id="not before it has a node"),
        pytest.param("gone", True, id="nor on a node that is not there"),
    ],
)
def test_executors_are_tied_to_no_place_while_a_pods_affinity_can_not_be_read(node: str | None, *, tied: bool) -> None:
    lonely = keeping_away(node=node)
    lonely["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = [
        {"labelSelector": 1}
    ]
    assert look(executor(1, gates=[GATE]), lonely).snapshot.executors[0].by_other_pods is not tied


def test_an_executor_that_requires_a_spread_over_zones_is_known() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    spread, plain = look(executor(1, topologySpreadConstraints=[constraint]), executor(2)).snapshot.executors
    assert (spread.by_other_pods, plain.by_other_pods) == (True, False)


def test_executors_are_those_of_the_policys_namespaces_wherever_they_run() -> None:
    pool = Pool(namespace_selector=LabelSelector(match_labels={"tier": "dev"}))
    found = look(executor(1, node="node-1"), executor(2, namespace="other", node="far-away"), driver(), pool=pool)
    assert [e.key for e in found.snapshot.executors] == ["other/spark-1-exec-2"]


def test_an_executor_that_did_not_opt_in_or_opted_out_counts_as_load_only() -> None:
    found = look(
        executor(1),
        executor(2, labels={"ballast.dev/gate": "disabled"}),
        executor(3, namespace="other"),
    )
    assert {e.name: e.enforced for e in found.snapshot.executors} == {
        "spark-1-exec-1": True,
        "spark-1-exec-2": False,
        "spark-1-exec-3": False,
    }


def test_an_executor_tells_which_topology_its_label_names_in_vain() -> None:
    known = topology(components=[{"name": "ingest"}])
    (found,) = look(executor(1, labels={"ballast.dev/topology": "click"}), topologies=[known]).snapshot.executors
    assert found.unknown_topology == "click"


def test_gates_of_others_are_named_and_ours_starts_the_clock_when_alone() -> None:
    alone, held = look(executor(1, gates=[GATE]), executor(2, gates=[{"name": "theirs"}, GATE])).snapshot.executors
    assert (alone.phase, alone.gates, alone.last_gate_since) == (Phase.GATED, (), CREATED_AT)
    assert (held.phase, held.gates, held.last_gate_since) == (Phase.GATED, ("theirs",), None)


def test_usage_is_joined_by_name() -> None:
    usage, load = NodeUsage(cpu_ratio=0.5), ExecutorUsage(cpu_cores=0.7)
    metrics = Metrics({"node-1": usage}, {"analytics/spark-1-exec-1": load}, MetricsHealth(available=True))
    found = look(executor(1, node="node-1"), executor(2, node="node-1"), metrics=metrics).snapshot
    assert [n.usage for n in found.nodes] == [usage, None]
    assert [e.usage for e in found.executors] == [load, None]
    assert found.metrics.available


def test_volumes_bind_an_executor_to_where_they_are() -> None:
    terms = [{"matchExpressions": [expression("topology.kubernetes.io/zone", "b")]}]
    volume = {
        "metadata": {"name": "pv-1"},
        "spec": {
            "claimRef": {"namespace": "analytics", "name": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
        "status": {"phase": "Bound"},
    }
    mounted = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    owner = [{"kind": "Pod", "uid": "d", "controller": True}]
    found = look(
        executor(1, volumes=mounted, owners=owner),
        executor(2),
        volumes=Volumes.of([read_volume(volume)]),
    ).snapshot
    bound, free = found.executors
    assert [bound.constraints.volumes_reach(n.labels, n.name) for n in found.nodes] == [False, True]
    assert free.constraints.volume_terms == ()
    assert (bound.late_claims, free.late_claims) == (False, False)
    (late,) = look(executor(1, volumes=mounted)).snapshot.executors
    assert late.late_claims, "its claim has no volume yet"
    claim = {"metadata": {"namespace": "analytics", "name": "data"}, "spec": {"storageClassName": "fast"}}
    allowed = [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["b"]}]}]
    classes = [read_storage_class({"metadata": {"name": "fast"}, "allowedTopologies": allowed})]
    found = look(executor(1, volumes=mounted), volumes=Volumes.of([], [read_claim(claim)], classes)).snapshot
    (late,) = found.executors
    assert late.late_claims, "its class may make the volume in any of these zones"
    assert [late.constraints.volumes_reach(n.labels, n.name) for n in found.nodes] == [False, True]


def test_an_application_without_a_topology_is_one() -> None:
    found = look(
        driver(node="node-2"),
        executor(1, labels={"ballast.dev/workload": "Streaming"}),
        executor(2, profile="1"),
    )
    (view,) = found.snapshot.topologies
    assert (view.key, view.name, view.implicit) == ("analytics/spark-1", "spark-1", True)
    assert view.components == (Component("profile-0", Workload.STREAMING), Component("profile-1"))
    assert view.driver == Anchor(("b", "a-1", "node-2"), 1.0, "node-2")


def test_executors_are_placed_next_to_the_pod_that_owns_them_whatever_its_labels() -> None:
    server = pod("connect", node="node-2", labels={"app": "connect"})
    owner = [{"kind": "Pod", "name": "connect", "uid": "uid-connect", "controller": True}]
    (view,) = look(server, executor(1, owners=owner, gates=[GATE])).snapshot.topologies
    assert view.driver == Anchor(("b", "a-1", "node-2"), 1.0, "node-2")


def test_a_topology_is_read_whole() -> None:
    clicks = topology(
        components=[
            {"name": "bus", "external": {"zones": {"a": 1, "b": 3}}},
            {"name": "ingest", "workload": "Streaming", "executors": 6, "exchange": {"bytesPerSecond": "1Mi"}},
            {"name": "sessions", "exchange": {"query": "sum(x)"}},
        ],
        streams=[
            {"from": "bus", "to": "ingest", "grouping": "LocalOrShuffle", "rate": {"bytesPerSecond": 40}},
            {"from": "ingest", "to": "sessions", "rate": {"query": "sum(y)"}},
        ],
        separate=[["ingest", "sessions"]],
        separateBy="Rack",
    )
    rates = {("analytics/clicks", "sum(x)"): 5.0}
    (view,) = look(topologies=[clicks], rates=rates).snapshot.topologies
    anchors = (Anchor(("a", None, None), 0.25), Anchor(("b", None, None), 0.75))
    assert view.components == (
        Component("bus", anchors=anchors, external=True),
        Component("ingest", Workload.STREAMING, 6, float(1 << 20)),
        Component("sessions", exchange_bytes_per_second=5.0),
    )
    assert [(s.source, s.target, s.bytes_per_second) for s in view.streams] == [
        ("bus", "ingest", 40.0),
        ("ingest", "sessions", None),
    ]
    assert isinstance(view.streams[0], Stream)
    assert view.separate == (Separation(("ingest", "sessions"), "Rack"),)
    assert not view.implicit


def test_an_absurd_rate_counts_as_one_that_a_pass_can_compute_with() -> None:
    (view,) = look(
        topologies=[topology(components=[{"name": "ingest", "exchange": {"bytesPerSecond": "1e30"}}])]
    ).snapshot.topologies
    assert view.components[0].exchange_bytes_per_second == 1e15


@pytest.mark.parametrize(
    ("labels", "topologies", "key"),
    [
        pytest.param({}, [], "analytics/spark-1", id="nothing said"),
        pytest.param({"ballast.dev/topology": "clicks"}, [], "analytics/spark-1", id="a name without an object"),
        pytest.param(
            {"ballast.dev/topology": "clicks"},
            [topology("clicks", components=[{"name": "ingest"}])],
            "analytics/clicks",
            id="a name",
        ),
        pytest.param(
            {"app": "clicks"},
            [topology("clicks", components=[{"name": "ingest", "selector": {"matchLabels": {"app": "clicks"}}}])],
            "analytics/clicks",
            id="a selector",
        ),
    ],
)
def test_failed_executors_count_for_the_topology_that_they_belong_to(
    labels: dict[str, str], topologies: list[SparkTopology], key: str
) -> None:
    failed = [executor(n, labels=labels, phase="Failed") for n in (1, 2)]
    found = look(*failed, executor(3, labels=labels), topologies=topologies)
    assert {view.key: view.failed_executors for view in found.snapshot.topologies} == {key: 2}


def test_executors_that_failed_count_for_their_application_although_their_pods_are_gone() -> None:
    failed = tuple(
        Failure(application, number)
        for number, application in enumerate(
            [("analytics", "spark-1"), ("analytics", "spark-1"), ("analytics", "spark-2"), ("other", "spark-1")]
        )
    )
    found = look(executor(7), executor(8, application="spark-2"), failed=failed)
    assert {view.key: view.failed_executors for view in found.snapshot.topologies} == {
        "analytics/spark-1": 2,
        "analytics/spark-2": 1,
    }


def observed(namespace: str | None = None) -> SparkTopology:
    external = {"selector": {"matchLabels": {"app": "kafka"}}, **({"namespace": namespace} if namespace else {})}
    return topology(components=[{"name": "kafka", "external": external}, {"name": "ingest"}])


def brokers(namespace: str) -> list[dict[str, Any]]:
    labels = {"app": "kafka"}
    return [
        pod("kafka-0", namespace=namespace, node="node-1", labels=labels),
        pod("kafka-1", namespace=namespace, node="node-2", labels=labels),
        pod("kafka-2", namespace=namespace, node="node-2", labels=labels, phase="Pending"),
        pod("kafka-3", namespace=namespace, labels=labels),
        pod("kafka-4", namespace=namespace, node="node-1", labels=labels, leaving=True),
        pod("kafka-5", namespace=namespace, node="node-1", labels=labels, phase="Failed"),
        pod("other", namespace=namespace, node="node-1"),
    ]


def test_external_ends_are_where_their_pods_run_or_start() -> None:
    pool = Pool(external_namespaces=frozenset({"kafka"}))
    found = look(*brokers("kafka"), topologies=[observed("kafka")], pool=pool)
    assert found.snapshot.topologies[0].components[0].anchors == (
        Anchor(("a", "a-1", "node-1"), pytest.approx(1 / 3), "node-1"),  # type: ignore[arg-type]
        Anchor(("b", "a-1", "node-2"), pytest.approx(2 / 3), "node-2"),  # type: ignore[arg-type]
    )
    assert found.findings == ()


def test_external_ends_in_a_namespace_that_the_policy_does_not_name_are_not_looked_at() -> None:
    found = look(*brokers("kafka"), topologies=[observed("kafka")])
    assert found.snapshot.topologies[0].components[0].anchors == ()
    (finding,) = found.findings
    assert finding.reason == "ExternalNamespaceNotAllowed"
    assert "not among the policy's externalNamespaces; ask the owner of the policy" in finding.message
    assert look(*brokers("analytics"), topologies=[observed()]).findings == ()


def test_an_external_end_that_is_not_there_is_told() -> None:
    assert [finding.reason for finding in look(topologies=[observed()]).findings] == ["ExternalNotFound"]


def test_a_selector_that_matches_a_driver_stops_everything_of_that_topology() -> None:
    greedy = topology(components=[{"name": "all", "selector": {"matchLabels": {"spark-app-selector": "spark-1"}}}])
    found = look(driver(), executor(1, gates=[GATE]), topologies=[greedy])
    assert [(finding.reason, finding.stalls) for finding in found.findings] == [("SelectorMatchesDriver", True)]
    assert [e.enforced for e in found.snapshot.executors] == [False]


def test_a_topology_that_can_not_be_followed_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaking(of: SparkTopology, *others: Any, **more: Any) -> Any:
        if of.metadata.name == "broken":
            raise ZeroDivisionError("division by zero")
        return declared(of, *others, **more)

    monkeypatch.setattr("ballast.controller.observe.declared", breaking)
    both = [executor(i, labels={"ballast.dev/topology": name}) for i, name in ((1, "broken"), (2, "clicks"))]
    components = [{"name": "ingest"}]
    found = look(*both, topologies=[topology("broken", components=components), topology(components=components)])
    (finding,) = (each for each in found.findings if each.stalls)
    assert (finding.topology, finding.reason) == ("analytics/broken", "TopologyFailed")
    assert finding.message == "ZeroDivisionError: division by zero"
    assert {e.topology: e.enforced for e in found.snapshot.executors} == {
        "analytics/broken": False, "analytics/clicks": True,
    }  # fmt: skip


def test_executors_of_an_unknown_component_are_placed_and_told() -> None:
    clicks = topology(components=[{"name": "ingest"}])
    labels = {"ballast.dev/topology": "clicks", "ballast.dev/component": "typo"}
    found = look(executor(1, labels=labels), topologies=[clicks])
    assert [c.name for c in found.snapshot.topologies[0].components] == ["ingest", "typo"]
    assert [(finding.topology, finding.reason) for finding in found.findings] == [
        ("analytics/clicks", "UnknownComponent")
    ]


def test_a_topology_that_selects_executors_of_another_is_told_how_many() -> None:
    def selecting(name: str) -> SparkTopology:
        return topology(name, components=[{"name": "x", "selector": {"matchLabels": {"app": "x"}}}])

    found = look(
        executor(1, labels={"app": "x"}),
        executor(2, labels={"app": "x"}),
        executor(3, labels={"app": "x", "ballast.dev/topology": "second"}),
        topologies=[selecting("first"), selecting("second")],
    )
    assert [e.topology for e in found.snapshot.executors] == ["analytics/first"] * 2 + ["analytics/second"]
    told = {finding.topology: (finding.reason, finding.message) for finding in found.findings}
    assert {key: reason for key, (reason, _) in told.items()} == dict.fromkeys(
        ("analytics/first", "analytics/second"), "SelectorsOverlap"
    )
    assert "(1 to analytics/second)" in told["analytics/first"][1]
    assert "(2 to analytics/first)" in told["analytics/second"][1]


def test_of_very_many_owners_a_message_names_a_few() -> None:
    greedy = topology("greedy", components=[{"name": "x", "selector": {"matchLabels": {"app": "x"}}}])
    others = [topology(f"t-{i:03}", components=[{"name": "y"}]) for i in range(100)]
    pods = [executor(i, labels={"app": "x", "ballast.dev/topology": f"t-{i:03}"}) for i in range(100)]
    (found,) = (each for each in look(*pods, topologies=[greedy, *others]).findings if each.topology.endswith("greedy"))
    assert "1 to analytics/t-011 and to 88 more" in found.message


def test_a_topology_selector_leaves_all_else_alone() -> None:
    ours = topology("ours", labels={"team": "a"}, components=[{"name": "x"}])
    theirs = topology("theirs", components=[{"name": "x"}])
    pool = Pool(topology_selector=LabelSelector(match_labels={"team": "a"}))
    found = look(
        executor(1, labels={"ballast.dev/topology": "ours"}),
        executor(2, labels={"ballast.dev/topology": "theirs"}),
        executor(3, application="spark-2"),
        topologies=[ours, theirs],
        pool=pool,
    )
    assert [e.executor_id for e in found.snapshot.executors] == ["1"]
    assert [t.key for t in found.snapshot.topologies] == ["analytics/ours"]
    assert len(found.snapshot.pending) == 2


def test_every_executors_topology_and_component_is_in_the_snapshot() -> None:
    pods = [executor(n, application=f"spark-{n % 3}", profile=str(n % 2), namespace="other") for n in range(12)]
    snapshot = look(*pods).snapshot
    components = {(t.key, c.name) for t in snapshot.topologies for c in t.components}
    assert {(e.topology, e.component) for e in snapshot.executors} == components


def test_the_order_of_lists_does_not_matter() -> None:
    pods = [executor(n, node=f"node-{n % 2 + 1}") for n in range(9)] + [driver(), *brokers("analytics")]
    shuffled = random.Random(5).sample(pods, len(pods))
    straight = look(*pods, topologies=[observed()])
    assert look(*shuffled, nodes=NODES[::-1], topologies=[observed()]) == straight


def said(*, rates: Rates | None = None, allowed: bool = True, **spec: Any) -> list[tuple[str, str]]:
    found = spec_findings(topology(**spec), rates=rates or {}, queries_allowed=allowed)
    assert {each.topology for each in found} <= {"analytics/clicks"}
    assert not any(each.stalls for each in found)
    return [(each.reason, each.message) for each in found]


def test_queries_that_the_policy_does_not_let_run_are_told_with_the_remedy() -> None:
    ((reason, words),) = said(allowed=False, **ASKING)
    assert reason == "QueryNotAllowed"
    assert words.startswith("components[ingest].exchange.query, streams[ingest, sessions].rate.query: ")
    assert "metrics.topologyQueries: Allow" in words
    assert "write bytesPerSecond" in words


def test_literal_rates_need_no_leave() -> None:
    assert said(allowed=False, components=[{"name": "ingest", "exchange": {"bytesPerSecond": 5}}]) == []


def test_a_query_without_a_figure_is_told_where_it_stands() -> None:
    assert said(rates={("analytics/clicks", "sum(x)"): 5.0, ("analytics/clicks", "sum(y)"): 1.0}, **ASKING) == []
    ((reason, words),) = said(rates={("analytics/clicks", "sum(x)"): 5.0}, **ASKING)
    assert reason == "QueryWithoutValue"
    assert words.startswith("streams[ingest, sessions].rate.query: ")


def chain(*ways: tuple[str, str]) -> dict[str, Any]:
    names = sorted({name for way in ways for name in way})
    return {"components": [{"name": n} for n in names], "streams": [{"from": a, "to": b} for a, b in ways]}


def test_a_cycle_is_told_and_nothing_else_is() -> None:
    assert said(**chain(("a", "b"), ("b", "c"), ("a", "c"))) == []
    ((reason, words),) = said(**chain(("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")))
    assert reason == "CycleInStreams"
    assert "b → c → b" in words or "c → b → c" in words


def test_what_goes_to_an_external_component_and_comes_back_is_no_cycle() -> None:
    components = [{"name": "kafka", "external": {"zones": {"a": 1}}}, {"name": "ingest"}]
    streams = [{"from": "kafka", "to": "ingest"}, {"from": "ingest", "to": "kafka"}]
    assert said(components=components, streams=streams) == []


KUEUES = {"name": "kueue.x-k8s.io/admission"}
BALLOON: dict[str, Any] = {"containers": [{"name": "pause", "resources": {"requests": {"cpu": "2"}}}], "priority": -10}


@pytest.mark.parametrize(
    ("executors", "cores"),
    [
        ([{"priority": 0}], 2.0),
        ([{"priority": 0}, {"priority": -10}], None),
        ([{"priority": 0, "preemptionPolicy": "Never"}], None),
        ([{"priority": 0}, {"priority": 0, "preemptionPolicy": "Never", "gates": [GATE, KUEUES]}], 2.0),
        ([{"priority": 0}, {"priority": -10, "gates": [GATE, KUEUES]}], 2.0),
        ([{"priority": 0}, {"priority": -10, "schedulerName": "volcano"}], 2.0),
        ([{"priority": 0, "gates": [GATE, KUEUES]}], None),
        ([], None),
    ],
)
@pytest.mark.parametrize("watched", [True, False])
def test_pods_that_every_executor_may_preempt_that_is_to_be_placed_are_room_of_second_choice(
    executors: list[dict[str, Any]], cores: float | None, watched: bool
) -> None:
    """As kube-scheduler goes by spec.priority. The watch keeps sums of such pods, a list the pods themselves."""
    balloon = pod("balloon", node="node-1", **BALLOON)
    waiting = [executor(n, **{"gates": [GATE], **more}) for n, more in enumerate(executors)]
    seen = look(*waiting, *([] if watched else [balloon]), others=[balloon] if watched else [])
    found = {each.name: each.preemptible for each in seen.snapshot.nodes}
    assert found == {"node-1": found["node-1"], "node-2": None}
    assert (found["node-1"].cpu_cores if found["node-1"] else None) == cores
