from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import pytest

from ballast.api import BalancingPolicy, SparkTopology
from ballast.controller.advice import recommendation
from ballast.controller.ends import Finding
from ballast.controller.status import Outlook, policy_status, stalled_status, topology_status
from ballast.model import (
    AvgShedderPolicy,
    Component,
    Executor,
    Memory,
    MovesPolicy,
    Node,
    Phase,
    Policy,
    Snapshot,
    Topology,
    Weights,
    Workload,
)
from ballast.model.policy import SheddingPolicy
from ballast.planner.anew import Anew
from ballast.planner.plan import plan
from tests.builders import NOW, a_node, a_policy, a_snapshot, a_topology, an_executor, gated

KIB = 1024
LONG = "ip-10-123-{}.eu-central-1.compute.internal"
PARTS = ("ingest", "sessions", "enrichment")
MANY = tuple(f"{'c' * 59}-{number:03}" for number in range(100))
"""As many as a topology may have, with names as long as may be."""


def policy_resource(status: dict[str, Any] | None = None) -> BalancingPolicy:
    return BalancingPolicy.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": "streaming", "generation": 4},
            "spec": {"nodeSelector": {"matchLabels": {"pool": "streaming"}}},
            "status": status or {},
        }
    )


def topology_resource(*components: str, status: dict[str, Any] | None = None) -> SparkTopology:
    names = components or ("ingest",)
    return SparkTopology.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "SparkTopology",
            "metadata": {"name": "clicks", "namespace": "team", "generation": 2},
            "spec": {"components": [{"name": name, "executors": 3} for name in names]},
            "status": status or {},
        }
    )


def outlook(snapshot: Snapshot, policy: Policy | None = None, memory: Memory | None = None) -> Outlook:
    chosen = policy or a_policy()
    decided, after = plan(snapshot, chosen, memory or Memory(), NOW)
    return Outlook(snapshot, chosen, decided, after, NOW)


def size(status: Any) -> int:
    return len(json.dumps(status.to_dict()).encode())


def crowd(*, declared: bool, parts: tuple[str, ...] = PARTS) -> Snapshot:
    """A thousand nodes with names as long as a cloud gives them, and ten thousand executors."""
    luck = random.Random(7)
    names = [LONG.format(f"{i // 256}-{i % 256}") for i in range(1000)]
    nodes = tuple(
        a_node(name, zone=f"eu-central-1{'abc'[i % 3]}", rack=f"rack-{i % 40}", cores=48.0, cpu=luck.uniform(0.3, 1.0))
        for i, name in enumerate(names)
    )
    executors = tuple(_member(i, names[i % 1000], declared=declared, parts=parts) for i in range(10_000))
    return a_snapshot(*nodes, executors=executors, topologies=_topologies(declared=declared, parts=parts))


def _member(number: int, node: str, *, declared: bool, parts: tuple[str, ...]) -> Executor:
    if declared:
        topology, component = "team/clicks", parts[number % len(parts)]
    else:
        topology, component = f"team/spark-{number % 60:032}", "profile-0"
    name = f"clickstream-enrichment-production-{'0' * 20}-exec-{number}"
    return an_executor(name, node=node, topology=topology, component=component, cpu=0.8, application=topology[5:])


def _topologies(*, declared: bool, parts: tuple[str, ...]) -> tuple[Topology, ...]:
    if declared:
        return (a_topology(*(Component(part, workload=Workload.STREAMING) for part in parts)),)
    return tuple(
        Topology(f"team/spark-{i:032}", "team", f"spark-{i:032}", (Component("profile-0"),), implicit=True)
        for i in range(60)
    )


def busy(*, declared: bool, parts: tuple[str, ...] = PARTS) -> Outlook:
    """A pass over the crowd in which much is decided."""
    hasty = a_policy(
        shedding=SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=1, high_hits=1, min_hot_score=10.0)),
        moves=MovesPolicy(max_concurrent=50),
    )
    return outlook(crowd(declared=declared, parts=parts), hasty)


@pytest.mark.parametrize("declared", [True, False])
def test_a_policys_status_stays_small_at_a_thousand_nodes_and_ten_thousand_executors(*, declared: bool) -> None:
    found = policy_status(policy_resource(), busy(declared=declared))
    assert found.hits
    assert size(found) < 64 * KIB


def recommended(seen: Outlook) -> Outlook:
    """As if every executor were to go to the next node."""
    names = [node.name for node in seen.snapshot.nodes]
    after = dict(zip(names, names[1:] + names[:1], strict=True))
    places: dict[str, Counter[str]] = defaultdict(Counter)
    for executor in seen.snapshot.executors:
        places[executor.component][after[executor.node or ""]] += 1
    (view,) = seen.locality.values()
    anew = Anew(view.topology, 10_000, before=view, after=view, places=places, relocated=10_000, unplaced=())
    return replace(seen, recommendations={view.topology: recommendation(anew)})


@pytest.mark.parametrize("advised", [False, True])
@pytest.mark.parametrize("parts", [PARTS, MANY], ids=["few components", "many components"])
def test_a_topologys_status_stays_small_at_a_thousand_nodes_and_ten_thousand_executors(
    *, advised: bool, parts: tuple[str, ...]
) -> None:
    seen = busy(declared=True, parts=parts)
    topology = topology_status(topology_resource(*parts), recommended(seen) if advised else seen)
    placements = [topology.placement, topology.recommendation.placement if topology.recommendation else None]
    assert [sum(map(len, (places or {}).values())) > 150 for places in placements] == [True, advised]
    assert size(topology) < 64 * KIB


def test_a_policys_status_tells_the_pools_figures() -> None:
    found = policy_status(policy_resource(), outlook(a_snapshot(a_node("a", cpu=0.2), a_node("b", cpu=0.9))))
    assert found.observed_generation == 4
    assert found.nodes is not None
    assert (found.nodes.total, found.nodes.eligible, found.nodes.gap) == (2, 2, 70.0)
    assert found.nodes.hottest is not None
    assert found.nodes.hottest.name == "b"
    verdicts = {c.type: (c.status.value, c.reason) for c in found.conditions}
    assert verdicts["Balanced"] == ("False", "GapTooWide")
    assert verdicts["Ready"] == ("True", "Reconciled")
    assert verdicts["MetricsAvailable"] == ("True", "Available")


def test_a_weighted_signal_that_no_node_has_is_told() -> None:
    heavy = a_policy(weights=Weights(cpu=1.0, memory=1.0))
    found = policy_status(policy_resource(), outlook(a_snapshot(a_node("a", cpu=0.2), a_node("b", cpu=0.9)), heavy))
    (verdict,) = (c for c in found.conditions if c.type == "MetricsAvailable")
    assert (verdict.status.value, verdict.reason) == ("True", "SignalDropped")
    assert verdict.message == (
        "no node has figures of memory, so that does not count: see to its query, or set its weight to 0"
    )
    assert found.nodes is not None
    assert found.nodes.eligible == 2


def test_conditions_keep_the_time_of_their_last_transition() -> None:
    seen = outlook(a_snapshot(a_node("a")))
    first = policy_status(policy_resource(), seen)
    later = Outlook(seen.snapshot, seen.policy, seen.plan, seen.memory, NOW + 600)
    second = policy_status(policy_resource(first.to_dict()), later)
    assert second.conditions == first.conditions


def test_refusals_are_counted_by_reason() -> None:
    lots = tuple(gated(f"exec-{i}", since=NOW - 60, enforced=False) for i in range(30))
    found = policy_status(policy_resource(), outlook(a_snapshot(a_node("a"), executors=lots))).refusals
    assert found is not None
    assert {item.reason: item.count for item in found.items}["NotEnforced"] == 30


def test_a_topologys_status_counts_its_executors() -> None:
    executors = (
        an_executor("exec-1", node="a"),
        an_executor("exec-2", node="b"),
        gated("exec-3"),
        an_executor("exec-4", phase=Phase.ENDED, node="a"),
        an_executor("exec-5", topology="team/other", node="a"),
    )
    nodes: tuple[Node, ...] = (a_node("a"), a_node("b", zone="z2"))
    found = topology_status(topology_resource(), outlook(a_snapshot(*nodes, executors=executors)))
    assert found.executors is not None
    assert (found.executors.text, found.executors.gated) == ("2/3", 1)
    (component,) = found.components
    assert (component.executors, component.running, component.nodes, component.zones) == (3, 2, 2, 2)
    assert {c.type: c.reason for c in found.conditions}["Placed"] == "Waiting"
    assert found.policy == "streaming"


def test_a_topology_whose_queries_may_not_run_says_so_until_they_may() -> None:
    seen = outlook(a_snapshot(a_node("a", cpu=0.1)))
    denied = replace(seen, remarks={"team/clicks": Finding("team/clicks", "QueryNotAllowed", "ask for it")})
    told = topology_status(topology_resource(), denied)
    verdicts = {c.type: (c.status.value, c.reason, c.message) for c in told.conditions}
    assert verdicts["MetricsAvailable"] == ("False", "QueryNotAllowed", "ask for it")
    assert verdicts["Ready"][0] == "True"
    after = topology_status(topology_resource(status=told.to_dict()), seen)
    assert {c.type: c.reason for c in after.conditions}["MetricsAvailable"] == "Available"


def test_a_topology_whose_external_component_is_not_seen_says_so_until_it_is() -> None:
    seen = outlook(a_snapshot(a_node("a", cpu=0.1)))
    denied = replace(seen, unseen={"team/clicks": Finding("team/clicks", "ExternalNamespaceNotAllowed", "ask for it")})
    told = topology_status(topology_resource(), denied)
    verdicts = {c.type: (c.status.value, c.reason, c.message) for c in told.conditions}
    assert verdicts["ExternalFound"] == ("False", "ExternalNamespaceNotAllowed", "ask for it")
    after = topology_status(topology_resource(status=told.to_dict()), seen)
    assert "ExternalFound" not in {c.type for c in after.conditions}


def test_a_stalled_topology_keeps_what_was_known_of_it() -> None:
    seen = outlook(a_snapshot(a_node("a"), executors=(an_executor("exec-1", node="a"),)))
    before = topology_status(topology_resource(), seen)
    resource = topology_resource(status=before.to_dict())
    stalled = stalled_status(resource, "SelectorMatchesDriver", "mend it", NOW)
    assert stalled.placement == before.placement
    verdicts = {c.type: (c.status.value, c.reason) for c in stalled.conditions}
    assert verdicts["Ready"] == ("False", "SelectorMatchesDriver")
    assert verdicts["Stalled"] == ("True", "SelectorMatchesDriver")
    mended = topology_status(topology_resource(status=stalled.to_dict()), seen)
    assert "Stalled" not in {c.type for c in mended.conditions}
