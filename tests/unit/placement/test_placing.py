"""Where a set of executors goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from ballast.model import (
    Anchor,
    Component,
    ComponentLimit,
    Constraints,
    Demand,
    Executor,
    Memory,
    MovePhase,
    Node,
    Phase,
    Pin,
    Placement,
    PlacementPolicy,
    Policy,
    Reason,
    Requirement,
    Resources,
    Separation,
    Snapshot,
    Stream,
    Taint,
    Topology,
)
from ballast.model.arrays import FloatArray
from ballast.placement.node_locations import NodeLocations, node_locations
from ballast.placement.placement_view import PlacementView
from ballast.placement.placing import place
from ballast.placement.problem import Layout
from ballast.placement.proximity import problem
from ballast.placement.room import Room, kinds
from ballast.placement.strategies import PlacementState
from ballast.placement.strategy import Openings
from benchmarks.load.large_pools import CASES, ENFORCED, apart, chain, pool
from tests.builders import GIB, NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor, gated
from tests.unit.placement.situations import the_view

NO_LIMITS: dict[str, Any] = {"max_executors_per_node_ratio": 1.0}

NODES = tuple(
    a_node(f"{zone}{rack}{n}", zone=zone, rack=rack, cores=2.0 + n) for zone in "ab" for rack in "rs" for n in range(2)
)
APART = [Component("ingest"), Component("report"), Component("standby")]


def two_zones(*, nodes: int = 4, cores: float = 4.0) -> tuple[Node, ...]:
    return tuple(
        a_node(f"{zone}{number}", zone=zone, rack=f"r{number % 2}", cores=cores)
        for zone in ("a", "b")
        for number in range(nodes)
    )


def some(count: int, **changes: Any) -> list[Executor]:
    component = changes.get("component", "ingest")
    return [gated(f"{component}-{number}", **changes) for number in range(count)]


def placing(**changes: Any) -> Policy:
    policy = a_policy()
    return replace(policy, placement=replace(policy.placement, **changes))


def placed(
    nodes: Sequence[Node],
    executors: Sequence[Executor],
    *,
    running: Sequence[Executor] = (),
    topology: Topology | None = None,
    policy: Policy | None = None,
    memory: Memory | None = None,
    **changes: Any,
) -> list[Placement]:
    pending = changes.pop("pending", ())
    snapshot: Snapshot = a_snapshot(
        *nodes, executors=(*executors, *running), topologies=(topology or a_topology(),), pending=pending
    )
    return place(snapshot, policy or placing(), memory or Memory(), gated=executors, **changes).placements


def zones(placements: Sequence[Placement]) -> Counter[str | None]:
    return Counter(p.location[0] for p in placements if p.node is not None)


def nodes_of(placements: Sequence[Placement]) -> list[str | None]:
    return [p.node for p in placements]


def test_nothing_to_place_places_nothing() -> None:
    assert placed(two_zones(), []) == []


def test_a_set_that_fits_into_one_zone_stays_in_one_zone() -> None:
    assert len(zones(placed(two_zones(), some(4)))) == 1


def test_a_set_leaves_the_zone_with_more_room_to_the_next_when_nothing_else_speaks() -> None:
    crowded = [replace(n, requested=Resources(2.0, GIB, 1)) if n.name[0] == "b" else n for n in two_zones()]
    assert zones(placed(crowded, some(4))) == {"b": 4}


@pytest.mark.parametrize("count", [20, 240])
def test_a_set_that_no_zone_holds_fills_the_largest_first(count: int) -> None:
    """Shares p of the zones cost 1 − Σp² of an exchange."""
    each = count // 20
    nodes = [
        a_node(f"{zone}{n}", zone=zone, allocatable=Resources(float(size * each), 999 * GIB, 250))
        for zone, size in (("a", 1), ("b", 2), ("c", 4))
        for n in range(4)
    ]
    assert zones(placed(nodes, some(count))) == {"c": 16 * each, "b": 4 * each}


def test_a_set_goes_to_the_zone_of_its_driver() -> None:
    topology = a_topology(driver=Anchor(("b", "r0", "elsewhere"), 1.0))
    crowded = [replace(n, requested=Resources(1.0, GIB, 1)) if n.name[0] == "b" else n for n in two_zones()]
    assert zones(placed(crowded, some(4), topology=topology)) == {"b": 4}


def test_volumes_fix_the_zone_before_the_driver_does() -> None:
    volume = Constraints(volume_terms=(((Requirement("zone", "In", ("a",)),),),))
    nodes = [replace(n, labels={"zone": n.name[0]}) for n in two_zones()]
    topology = a_topology(driver=Anchor(("b", None, None), 1.0))
    assert zones(placed(nodes, some(4, constraints=volume), topology=topology)) == {"a": 4}


def test_without_a_driver_external_traffic_decides_the_zone() -> None:
    broker = Component("kafka", external=True, anchors=(Anchor(("a", None, None), 0.3), Anchor(("b", None, None), 0.7)))
    topology = a_topology(broker, Component("ingest"), streams=(Stream("kafka", "ingest"),))
    assert zones(placed(two_zones(), some(4), topology=topology)) == {"b": 4}


def test_a_driver_draws_no_set_with_declared_rates_out_of_its_brokers_rack() -> None:
    anchors = (Anchor(("a", "r0", None), 0.05), Anchor(("a", "r9", None), 0.95))
    topology = a_topology(
        Component("kafka", external=True, anchors=anchors),
        Component("ingest", exchange_bytes_per_second=1e6),
        streams=(Stream("kafka", "ingest", bytes_per_second=1e6),),
        driver=Anchor(("a", "r1", None), 1.0),
    )
    there = placed(two_zones(), some(4), topology=topology)
    assert {placement.location[:2] for placement in there} == {("a", "r0")}


def test_components_that_exchange_nothing_follow_their_own_ends() -> None:
    brokers = [Component(f"kafka-{z}", external=True, anchors=(Anchor((z, None, None), 1.0),)) for z in ("a", "b")]
    topology = a_topology(
        *brokers,
        Component("ingest"),
        Component("other"),
        streams=(Stream("kafka-a", "ingest"), Stream("kafka-b", "other")),
    )
    placements = placed(two_zones(), [*some(3), *some(3, component="other")], topology=topology)
    homes = {(p.executor.split("/")[1].split("-")[0], p.location[0]) for p in placements}
    assert homes == {("ingest", "a"), ("other", "b")}


def test_an_executor_that_comes_later_joins_those_that_run() -> None:
    running = [an_executor(f"old-{number}", node=f"b{number}") for number in range(3)]
    assert zones(placed(two_zones(), some(1), running=running)) == {"b": 1}


def test_no_node_gets_more_of_a_component_than_its_ratio() -> None:
    per_node = Counter(nodes_of(placed(two_zones(), some(8), policy=placing(max_executors_per_node_ratio=0.25))))
    assert max(per_node.values()) <= 2


def test_the_expected_number_counts_for_the_ratio_of_a_set_that_is_not_complete() -> None:
    topology = a_topology(Component("ingest", expected=12))
    placements = placed(two_zones(), some(3), topology=topology)
    assert Counter(nodes_of(placements)).most_common(1)[0][1] == 3


def test_a_component_spreads_over_zones_where_the_policy_says_so() -> None:
    assert zones(placed(two_zones(), some(4), policy=placing(max_executors_per_zone_ratio=0.5))) == {"a": 2, "b": 2}


def test_what_exceeds_the_spread_limits_is_released_unpinned_with_the_reason() -> None:
    placements = placed([a_node("only")], some(3))
    assert Counter(p.reason for p in placements) == {None: 2, Reason.SPREAD_LIMIT: 1}
    assert all(p.pin is Pin.NONE for p in placements if p.reason)


def test_a_limit_of_a_component_holds_on_every_node() -> None:
    policy = placing(limits=(ComponentLimit("ingest", 1),), **NO_LIMITS)
    assert max(Counter(nodes_of(placed(two_zones(), some(6), policy=policy))).values()) == 1


@pytest.mark.parametrize(("by", "level"), [("Node", 3), ("Rack", 2), ("Zone", 1)])
def test_separated_components_share_no_place(by: str, level: int) -> None:
    topology = a_topology(Component("ingest"), Component("standby"), separate=(Separation(("ingest", "standby"), by),))
    placements = placed(two_zones(), [*some(2), *some(2, component="standby")], topology=topology)
    homes = {"ingest": set(), "standby": set()}  # type: dict[str, set[tuple[str | None, ...]]]
    for placement in placements:
        assert placement.node is not None
        homes[placement.executor.split("/")[1].split("-")[0]].add(placement.location[:level])
    assert not homes["ingest"] & homes["standby"]


def test_separated_components_without_a_place_left_are_released_with_the_reason() -> None:
    topology = a_topology(Component("ingest"), Component("standby"), separate=(Separation(("ingest", "standby")),))
    running = [an_executor("standby-0", component="standby", node="only")]
    (placement,) = placed([a_node("only")], some(1), running=running, topology=topology)
    assert (placement.node, placement.reason) == (None, Reason.SEPARATED)


def test_the_surplus_of_a_full_pool_is_released_with_the_zone_it_should_prefer() -> None:
    placements = placed([a_node("n1", cores=2.0)], some(3), policy=placing(**NO_LIMITS))
    surplus = [p for p in placements if p.node is None]
    assert [(p.reason, p.pin, p.location) for p in surplus] == [(Reason.POOL_FULL, Pin.NONE, ("z1", "r1", None))]


def grown(**changes: Any) -> Node:
    """A node of a group that an autoscaler can enlarge, with room for two executors."""
    return a_node("n1", **{"cores": 2.0, "labels": {"karpenter.sh/nodepool": "spark"}, **changes})


@pytest.mark.parametrize(
    ("nodes", "changes", "pin"),
    [
        pytest.param([grown()], {}, Pin.ZONE, id="an autoscaler provides nodes in the zone"),
        pytest.param([grown(labels={"cloud.google.com/gke-nodepool": "x"})], {}, Pin.ZONE, id="whichever it is"),
        pytest.param([grown(labels={})], {}, Pin.NONE, id="none does"),
        pytest.param([grown(zone=None)], {}, Pin.NONE, id="the zone has no name"),
        pytest.param([grown()], {"pin": Pin.NONE}, Pin.NONE, id="the policy requires nothing"),
        pytest.param([grown()], {"pin": Pin.NODE}, Pin.ZONE, id="never nearer than the zone"),
        pytest.param(
            [grown(), a_node("b1", zone="z2", cores=0.5)],
            {"max_executors_per_zone_ratio": 0.8},
            Pin.NONE,
            id="a limit may forbid the zone",
        ),
    ],
)
def test_the_zone_of_the_surplus_is_required_where_an_autoscaler_can_provide_a_node(
    nodes: list[Node], changes: dict[str, Any], pin: Pin
) -> None:
    placements = placed(nodes, some(3), policy=placing(**{**NO_LIMITS, **changes}))
    assert {p.pin for p in placements if p.node is None} == {pin}


def test_the_zone_of_the_surplus_is_not_required_where_zones_separate_components() -> None:
    topology = a_topology(Component("ingest"), Component("x"), separate=(Separation(("ingest", "x"), "Zone"),))
    placements = placed([grown()], some(3), topology=topology, policy=placing(**NO_LIMITS))
    assert {p.pin for p in placements if p.node is None} == {Pin.NONE}


def test_a_zone_whose_nodes_do_not_admit_the_surplus_is_not_required() -> None:
    asks = Constraints(node_selector=(("disk", "fast"),))
    other = a_node("n2", zone="z2", cores=0.5, labels={"disk": "fast", "karpenter.sh/nodepool": "spark"})
    running = [an_executor("r", node="n1")]
    (placement,) = placed([grown(), other], some(1, constraints=asks), running=running)
    assert (placement.location[0], placement.pin) == ("z1", Pin.NONE)


def test_a_surplus_that_nobody_runs_next_to_should_prefer_the_drivers_zone() -> None:
    topology = a_topology(driver=Anchor(("z7", "r3", "n9"), 1.0))
    nodes = [a_node("n1", cores=0.5), a_node("n2", cores=0.5), a_node("n9", zone="z7", rack="r3", cores=0.5)]
    (placement,) = placed(nodes, some(1), topology=topology)
    assert (placement.reason, placement.location) == (Reason.POOL_FULL, ("z7", "r3", None))


def test_a_zone_of_the_driver_in_which_the_pool_has_no_node_counts_only_for_an_empty_pool() -> None:
    topology = a_topology(driver=Anchor(("z7", "r3", "n9"), 1.0))
    (placement,) = placed([a_node("n1", cores=0.5)], some(1), topology=topology)
    assert placement.location == ("z1", None, None)
    (placement,) = placed([], some(1), topology=topology)
    assert placement.location == ("z7", "r3", None)


def test_a_surplus_follows_those_of_its_component_that_wait_for_nodes() -> None:
    there = Constraints(affinity_terms=((Requirement("topology.kubernetes.io/zone", "In", ("z2",)),),))
    waiting = [an_executor("w", phase=Phase.PENDING, node=None, constraints=there)]
    nodes = [a_node("n1", cores=0.5), a_node("n2", cores=0.5), a_node("n3", zone="z2", cores=0.5)]
    (placement,) = placed(nodes, some(1), running=waiting)
    assert placement.location == ("z2", None, None)
    (placement,) = placed(nodes, some(1), running=[*waiting, an_executor("r", node="n1")])
    assert placement.location == ("z1", "r1", None), "unless some of it runs"


@pytest.mark.parametrize(
    ("node", "constraints", "reason"),
    [
        (a_node("n", ready=False), Constraints(), Reason.NODE_UNAVAILABLE),
        (a_node("n", schedulable=False), Constraints(), Reason.NODE_UNAVAILABLE),
        (a_node("n", leaving="ToBeDeleted"), Constraints(), Reason.NODE_LEAVING),
        (a_node("n", taints=(Taint("gpu", "", "NoSchedule"),)), Constraints(), Reason.TAINTED),
        (a_node("n"), Constraints(node_selector=(("disk", "fast"),)), Reason.NOT_ADMITTED),
        (
            a_node("n"),
            Constraints(volume_terms=(((Requirement("zone", "In", ("x",)),),),)),
            Reason.VOLUME_PINNED,
        ),
    ],
)
def test_an_executor_that_no_node_admits_is_released_with_the_reason(
    node: Node, constraints: Constraints, reason: Reason
) -> None:
    (placement,) = placed([node], some(1, constraints=constraints))
    assert (placement.node, placement.pin, placement.reason) == (None, Pin.NONE, reason)


def test_an_empty_pool_is_full() -> None:
    (placement,) = placed([], some(1))
    assert (placement.node, placement.reason) == (None, Reason.POOL_FULL)


def test_a_hot_node_takes_no_executor_while_others_have_room() -> None:
    nodes = [a_node("hot"), a_node("cool", rack="r2")]
    running = [an_executor("old-0", node="hot")]
    (placement,) = placed(nodes, some(1), running=running, scores={"hot": 86.0, "cool": 10.0})
    assert placement.node == "cool"


def test_nothing_is_placed_on_a_node_that_the_shedder_would_unload() -> None:
    running = [an_executor("old-0", node="warm")]
    nodes = [a_node("warm"), a_node("cold", rack="r2")]
    (placement,) = placed(nodes, some(1), running=running, scores={"warm": 75.0, "cold": 20.0})
    assert placement.node == "cold"


def test_a_node_as_warm_as_all_others_is_as_good_as_any() -> None:
    running = [an_executor("old-0", node="warm")]
    nodes = [a_node("warm"), a_node("other", rack="r2")]
    (placement,) = placed(
        nodes, some(1), running=running, scores={"warm": 75.0, "other": 74.0}, policy=placing(**NO_LIMITS)
    )
    assert placement.node == "warm"


def test_a_hot_node_is_used_before_an_executor_is_let_go_without_a_node() -> None:
    (placement,) = placed([a_node("hot")], some(1), scores={"hot": 99.0})
    assert placement.node == "hot"


def test_executors_placed_in_this_pass_heat_their_node_for_the_next_ones() -> None:
    nodes = [a_node("n1", cores=4.0), a_node("n2", cores=4.0)]
    placements = placed(nodes, some(4), policy=placing(**NO_LIMITS), scores={"n1": 40.0, "n2": 40.0})
    assert Counter(nodes_of(placements)) == {"n1": 2, "n2": 2}


def test_an_unfavored_node_comes_last_and_a_favored_one_first() -> None:
    nodes = [a_node("n1"), a_node("n2"), a_node("n3")]
    policy = placing(unfavored_nodes=("n1",), favored_nodes=("n3",))
    assert nodes_of(placed(nodes, some(1), policy=policy)) == ["n3"]
    assert Counter(nodes_of(placed(nodes, some(5), policy=policy))) == {"n3": 2, "n2": 2, "n1": 1}


def test_pending_pods_of_others_keep_their_room() -> None:
    nodes = [a_node("n1", cores=2.0), a_node("n2", cores=1.0)]
    (placement,) = placed(nodes, some(1), pending=(Demand(Resources(2.0, GIB, 1)),))
    assert placement.node == "n2"


def test_what_is_reserved_is_not_given_away() -> None:
    nodes = [a_node("n1", cores=1.0), a_node("n2", cores=1.0)]
    (placement,) = placed(nodes, some(1), reserved={"n1": Resources(1.0, GIB, 1)})
    assert placement.node == "n2"


def test_executors_return_to_the_places_that_are_vacant() -> None:
    memory = Memory(placements=(("team/clicks", "ingest", (("a0", 1), ("a3", 2))),))
    placements = placed(two_zones(), some(3), memory=memory, policy=placing(**NO_LIMITS))
    assert Counter(nodes_of(placements)) == {"a0": 1, "a3": 2}


def test_nobody_returns_when_the_policy_is_not_sticky() -> None:
    memory = Memory(placements=(("team/clicks", "ingest", (("a0", 1), ("a3", 2))),))
    policy = placing(sticky=False, **NO_LIMITS)
    assert len(set(nodes_of(placed(two_zones(), some(3), memory=memory, policy=policy)))) == 1


def test_a_place_where_an_executor_still_runs_is_not_vacant() -> None:
    memory = Memory(placements=(("team/clicks", "ingest", (("a0", 1),)),))
    running = [an_executor("ingest-9", node="a0")]
    policy = placing(limits=(ComponentLimit("ingest", 1),), **NO_LIMITS)
    (placement,) = placed(two_zones(), some(1), memory=memory, running=running, policy=policy)
    assert placement.node != "a0"


def test_nobody_returns_to_a_place_that_a_move_is_giving_up() -> None:
    memory = Memory(placements=(("team/clicks", "ingest", (("b2", 1),)),))
    moves = (a_move(source="b2", target="a1", phase=MovePhase.ARRIVING, executor_uid="gone"),)
    executors = some(1)
    snapshot = a_snapshot(*two_zones(), executors=tuple(executors), moves=moves)
    (placement,) = place(snapshot, placing(), memory, gated=executors).placements
    assert placement.node != "b2"


def test_a_vacant_place_on_a_hot_node_is_left_vacant() -> None:
    memory = Memory(placements=(("team/clicks", "ingest", (("a0", 1),)),))
    (placement,) = placed(two_zones(), some(1), memory=memory, scores={"a0": 95.0, "a1": 10.0})
    assert placement.node != "a0"


def test_gpu_executors_go_where_the_gpus_are() -> None:
    gpus = Resources(4.0, 16 * GIB, 110, extended=(("nvidia.com/gpu", 2.0),))
    nodes = [a_node("plain"), a_node("gpu", allocatable=gpus)]
    wanted = Resources(1.0, GIB, 1, extended=(("nvidia.com/gpu", 1.0),))
    placements = placed(nodes, some(3, requests=wanted), policy=placing(**NO_LIMITS))
    assert Counter(nodes_of(placements)) == {"gpu": 2, None: 1}


def test_resources_that_no_node_offers_keep_nobody_else_from_a_place_and_take_no_memory() -> None:
    made_up = tuple((f"made.up/r{number}", 1.0) for number in range(1000))
    nodes = [a_node("plain"), a_node("other")]
    hopeless = an_executor("hopeless", requests=Resources(1.0, GIB, 1, extended=made_up))
    placements = placed(nodes, [hopeless, *some(2)], policy=placing(**NO_LIMITS))
    assert {each.executor: each.node is None for each in placements}["team/hopeless"]
    assert sum(each.node is not None for each in placements) == 2
    space = Room(node_locations(nodes, placing().levels), kinds([hopeless.requests]))
    assert space.free.shape == (2, 4), "all of them share one column"


def test_executors_of_an_application_that_nobody_described_are_kept_together() -> None:
    executors = some(4, topology="team/spark-123")
    assert len(zones(placed(two_zones(), executors))) == 1


def test_a_pool_without_racks_or_zones_is_placed_on_all_the_same() -> None:
    nodes = [a_node(f"n{number}", zone=None, rack=None) for number in range(4)]
    assert None not in nodes_of(placed(nodes, some(4)))


def view(**changes: Any) -> PlacementView:
    """Three components, one of them with two templates, and one that runs already."""
    waiting = [gated(f"{name}-{n}", component=name) for name in ("ingest", "report", "standby") for n in range(6)]
    large = [gated(f"large-{n}", requests=Resources(2.0, GIB, 1)) for n in range(3)]
    running = an_executor("old", node="ar0", component="report")
    policy = PlacementPolicy(max_executors_per_node_ratio=1.0)
    return the_view(*waiting, *large, running, **{"nodes": NODES, "policy": policy, **changes})


def separated(by: str) -> dict[str, Any]:
    separate = (Separation(("ingest", "standby"), by), Separation(("report", "standby"), "Node"))
    return {"topologies": (a_topology(*APART, separate=separate),)}


VIEWS = {
    "room": {},
    "node limits": {"policy": PlacementPolicy(limits=(ComponentLimit("report", 1),))},
    "zone limits": {"policy": PlacementPolicy(max_executors_per_node_ratio=1.0, max_executors_per_zone_ratio=0.5)},
    "apart by node": separated("Node"),
    "apart by rack": separated("Rack"),
    "apart by zone": separated("Zone"),
    "hot nodes": {"scores": {"ar1": 70.0, "bs1": 80.0, "br1": 99.0}},
}


def open_in(layout: Layout, row: int) -> list[int]:
    return sorted(layout.problem.nodes[np.flatnonzero(layout.open(row))].tolist())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("changes", VIEWS.values(), ids=VIEWS)
def test_after_each_executor_the_open_nodes_are_those_of_a_layout_with_the_same(
    changes: dict[str, Any], seed: int
) -> None:
    found, random = view(**changes), Random(seed)
    openings, layout = Openings(found), Layout(problem(found, np.arange(len(NODES))))
    turns = [row for row, count in enumerate(found.counts.tolist()) for _ in range(count)]
    random.shuffle(turns)
    for row in turns:
        for each in range(len(found.groups)):
            assert openings.able(each).tolist() == open_in(layout, each)
        if len(openings.able(row)):
            node = random.choice(openings.able(row).tolist())
            openings.take(row, node)
            layout.add(row, layout.problem.nodes.tolist().index(node))


def reasons(snapshot: Snapshot) -> Counter[Reason | None]:
    found = place(snapshot, ENFORCED, Memory(), gated=snapshot.executors).placements
    requests = {executor.uid: executor.requests for executor in snapshot.executors}
    used = {node.name: node.requested for node in snapshot.nodes}
    for placement in found:
        if placement.node is not None:
            used[placement.node] = used[placement.node].plus(requests[placement.uid])
    assert all(used[node.name].fits_in(node.allocatable) for node in snapshot.nodes)
    return Counter(placement.reason for placement in found)


@pytest.mark.parametrize("zones", [1, 3, 15])
def test_many_components_are_all_placed_where_the_nodes_of_one_are_not_enough(zones: int) -> None:
    assert reasons(chain(pool(600, cores=4.0, zones=zones), components=8, executors=200)) == {None: 1600}


def test_a_pool_that_is_just_large_enough_is_filled_to_the_last_core() -> None:
    assert reasons(chain(pool(400, cores=4.0), components=8, executors=200)) == {None: 1600}


def test_what_is_left_in_a_full_pool_misses_room_and_nothing_else() -> None:
    assert reasons(chain(pool(390, cores=4.0), components=8, executors=200)) == {None: 1560, Reason.POOL_FULL: 40}


def test_many_topologies_that_keep_apart_are_all_placed() -> None:
    assert reasons(apart(pool(100, cores=16.0), topologies=200)) == {None: 1000}


def test_nodes_that_are_in_use_are_looked_at_too() -> None:
    """If the first nodes are nearly full, more nodes are considered."""
    nodes = tuple(replace(node, requested=Resources(3.0, 0.0, 3)) for node in pool(700, cores=4.0))
    assert reasons(chain(nodes, components=6, executors=100)) == {None: 600}


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES)
def test_the_largest_cases_are_placed_entirely(case: str) -> None:
    snapshot = CASES[case]()
    assert reasons(snapshot) == {None: len(snapshot.executors)}


@pytest.mark.parametrize(("waits_seconds", "zone"), [(5.0, "b"), (3600.0, "a")])
def test_executors_that_were_sent_somewhere_and_never_get_a_node_keep_no_other_away(
    waits_seconds: float, zone: str
) -> None:
    """Kube-scheduler may refuse them for what Ballast does not look at: a host port, an affinity to no pod."""
    nodes = two_zones()
    others: dict[str, Any] = {"namespace": "other", "topology": "other/app", "application": "app"}
    stuck = [
        gated(f"o-{n}", **others, phase=Phase.PENDING, requests=Resources(3.0, GIB), created_at=NOW - waits_seconds)
        for n in range(4)
    ]
    running = [an_executor(f"e-{n}", node=f"a{n}") for n in range(3)]
    snapshot = a_snapshot(*nodes, executors=(*running, gated("e-9"), *stuck))
    state = PlacementState(sent=tuple((executor.uid, f"a{n}") for n, executor in enumerate(stuck)))
    scores = {node.name: 30.0 for node in nodes}
    found = place(snapshot, placing(**NO_LIMITS), Memory(), gated=[gated("e-9")], scores=scores, state=state)
    assert found.placements[0].location[0] == zone
    assert dict(found.state.sent).keys() > {executor.uid for executor in stuck}


def test_ends_of_very_many_pods_are_compared_with_the_nodes_once_a_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each part of it that is placed: two topologies of one user took a minute of each pass."""
    compared: list[int] = []
    measure = NodeLocations.distances_to

    def counted(locations: NodeLocations, ends: Sequence[Anchor], weights: FloatArray) -> FloatArray:
        compared.append(len(ends))
        return measure(locations, ends, weights)

    monkeypatch.setattr(NodeLocations, "distances_to", counted)
    monkeypatch.setattr(NodeLocations, "anchor_distance", None)
    nodes = [a_node(f"n{index:02}", zone=f"z{index % 3}", rack=None) for index in range(30)]
    ends = tuple(Anchor(node.location, 1 / len(nodes), node.name) for node in nodes)
    parts = [f"part{index}" for index in range(20)]
    outer = [Component(f"outer{index}", external=True, anchors=ends) for index in range(5)]
    streams = tuple(Stream(part, each.name, bytes_per_second=1.0) for part in parts for each in outer)
    topology = a_topology(*(Component(part) for part in parts), *outer, streams=streams)
    executors = [gated(f"{part}-exec-1", component=part) for part in parts]
    snapshot = a_snapshot(*nodes, executors=tuple(executors), topologies=(topology,))
    found = place(snapshot, a_policy(), Memory(), gated=executors)
    assert all(placement.node for placement in found.placements)
    assert set(compared) == {len(nodes)}
    assert len(compared) <= 4
