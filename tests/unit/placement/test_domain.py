"""Where it is looked for nodes, in pools of all shapes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ballast.model import (
    Anchor,
    Component,
    Executor,
    Levels,
    Memory,
    Node,
    Placement,
    PlacementPolicy,
    Policy,
    Resources,
    Separation,
    Stream,
    Topology,
)
from ballast.placement.domain import Standing, _standing, domains, settles_for_one_place
from ballast.placement.expectation import Expectation, ReservedRoom
from ballast.placement.placement_view import PlacementView
from ballast.placement.placing import place
from ballast.placement.proximity import Effort
from tests.builders import GIB, a_node, a_policy, a_snapshot, a_topology, an_executor, gated
from tests.unit.placement.situations import the_view

NODES = tuple(
    a_node(f"{zone}{rack}{n}", zone=zone, rack=rack, cores=2.0) for zone in "ab" for rack in "rs" for n in "12"
)
"""Two zones of two racks of two nodes, each with room for two."""
EVERYTHING = "ar1 ar2 as1 as2 br1 br2 bs1 bs2"
IN_A = ["ar1 ar2", "as1 as2", "ar1 ar2 as1 as2"]
IN_B = ["br1 br2", "bs1 bs2", "br1 br2 bs1 bs2"]


def large_pool(*, zones: int = 3, racks: int = 1, per_rack: int = 300, cores: float = 2.0) -> list[Node]:
    """More nodes in a rack than a search looks at."""
    return [
        a_node(f"z{zone}-r{rack}-{number:04d}", zone=f"z{zone}", rack=f"r{rack}", cores=cores)
        for zone in range(zones)
        for rack in range(racks)
        for number in range(per_rack)
    ]


def placed(nodes: list[Node], count: int, *, topology: Topology | None = None, **changes: Any) -> list[Placement]:
    components = [c.name for c in (topology or a_topology()).components if not c.external]
    executors = [gated(f"{name}-{number}", component=name) for name in components for number in range(count)]
    memory = changes.pop("memory", Memory())
    running = changes.pop("running", ())
    effort = changes.pop("effort", Effort(steps=20, thorough=False))
    policy = a_policy(placement=replace(PlacementPolicy(), **changes))
    snapshot = a_snapshot(*nodes, executors=(*executors, *running), topologies=(topology or a_topology(),))
    return place(snapshot, policy, memory, gated=executors, effort=effort).placements


def zones(placements: list[Placement]) -> Counter[str | None]:
    return Counter(p.location[0] for p in placements if p.node is not None)


@pytest.mark.parametrize("thorough", [True, False])
def test_a_set_in_a_very_large_pool_stays_in_one_zone(thorough: bool) -> None:
    assert len(zones(placed(large_pool(), 20, effort=Effort(steps=20, thorough=thorough)))) == 1


def test_a_zone_limit_is_kept_by_using_the_other_zones_of_a_very_large_pool() -> None:
    assert sorted(zones(placed(large_pool(), 12, max_executors_per_zone_ratio=0.34)).values()) == [4, 4, 4]


@pytest.mark.parametrize(("by", "level"), [("Zone", 1), ("Rack", 2)])
def test_separated_components_find_places_apart_in_a_very_large_pool(by: str, level: int) -> None:
    topology = a_topology(Component("ingest"), Component("standby"), separate=(Separation(("ingest", "standby"), by),))
    topology = replace(topology, streams=(Stream("ingest", "standby"),))
    placements = placed(large_pool(zones=2, racks=2), 4, topology=topology)
    homes = {(p.executor.split("/")[1].split("-")[0], p.location[:level]) for p in placements if p.node is not None}
    assert len([p for p in placements if p.node is not None]) == 8
    assert not {place for name, place in homes if name == "ingest"} & {
        place for name, place in homes if name != "ingest"
    }


def test_a_set_too_large_for_any_zone_is_spread_over_as_few_as_hold_it() -> None:
    small = [a_node(f"z{zone}-{number}", zone=f"z{zone}", cores=2.0) for zone in range(4) for number in range(4)]
    assert sorted(zones(placed(small, 16, max_executors_per_node_ratio=1.0)).values()) == [8, 8]


@pytest.mark.parametrize("thorough", [True, False])
@pytest.mark.parametrize("cores", [pytest.param(2.0, id="as many cores"), pytest.param(2.9, id="more cores")])
def test_of_zones_that_do_not_hold_the_set_the_one_that_takes_most_is_filled(cores: float, *, thorough: bool) -> None:
    """z0 takes 20 executors of one core, and the driver is there; z1 takes 21."""
    sizes = {"z0": [cores] * 10, "z1": [2.0] * 9 + [3.0]}
    nodes = [
        a_node(f"{zone}-{n}", zone=zone, cores=each) for zone, all_ in sizes.items() for n, each in enumerate(all_)
    ]
    topology = a_topology(driver=Anchor(("z0", None, None), 1.0))
    effort = Effort(steps=20, thorough=thorough)
    placements = placed(nodes, 24, topology=topology, effort=effort, max_executors_per_node_ratio=1.0)
    assert zones(placements) == {"z1": 21, "z0": 3}


def test_components_drawn_to_two_zones_are_parted_where_that_is_cheaper() -> None:
    ends = [Component(f"kafka-{z}", external=True, anchors=(Anchor((z, None, None), 1.0),)) for z in ("z0", "z1")]
    topology = a_topology(
        *ends,
        Component("ingest", exchange_bytes_per_second=1.0),
        Component("sessions", exchange_bytes_per_second=1.0),
        streams=(
            Stream("kafka-z0", "ingest", bytes_per_second=100.0),
            Stream("kafka-z1", "sessions", bytes_per_second=100.0),
            Stream("ingest", "sessions", bytes_per_second=1.0),
        ),
    )
    placements = placed(large_pool(zones=2, per_rack=10), 4, topology=topology)
    homes = {(p.executor.split("/")[1].split("-")[0], p.location[0]) for p in placements}
    assert homes == {("ingest", "z0"), ("sessions", "z1")}


def test_vacant_places_are_found_again_among_very_many() -> None:
    memory = Memory(placements=(("team/clicks", "ingest", (("z1-r0-0299", 1), ("z1-r0-0007", 1))),))
    nodes = {p.node for p in placed(large_pool(), 2, memory=memory)}
    assert nodes == {"z1-r0-0299", "z1-r0-0007"}


def test_a_place_next_to_those_that_run_is_found_among_very_many() -> None:
    running = tuple(an_executor(f"old-{number}", node="z2-r0-0123") for number in range(1))
    (placement,) = placed(large_pool(), 1, running=running, max_executors_per_node_ratio=1.0)
    assert placement.node == "z2-r0-0123"


def test_what_runs_outside_the_nodes_looked_at_still_counts() -> None:
    full = Resources(2.0, GIB, 1)
    pool = [replace(node, requested=full) if node.name == "z1-r0-0005" else node for node in large_pool()]
    running = (an_executor("old-0", node="z1-r0-0005"),)
    (placement,) = placed(pool, 1, running=running)
    assert placement.location[0] == "z1"


def test_the_driver_may_be_named_by_its_node() -> None:
    topology = a_topology(driver=Anchor((None, None, None), 1.0, node="z2-r0-0001"))
    assert zones(placed(large_pool(per_rack=5), 3, topology=topology)) == {"z2": 3}


def test_a_policy_without_levels_places_within_limits_all_the_same() -> None:
    nodes = [replace(a_node(f"n{number}"), location=()) for number in range(4)]
    executors = [gated(f"e-{number}") for number in range(4)]
    policy = Policy("p", levels=Levels(()))
    placements = place(a_snapshot(*nodes, executors=tuple(executors)), policy, Memory(), gated=executors).placements
    assert max(Counter(p.node for p in placements).values()) == 2, "of four at most two are on one node"
    assert all(p.node for p in placements)


def a_view(count: int, *others: Executor, **changes: Any) -> PlacementView:
    waiting = [gated(f"ingest-{number}") for number in range(count)]
    settings: dict[str, Any] = {"nodes": NODES, "policy": PlacementPolicy(max_executors_per_node_ratio=1.0), **changes}
    return the_view(*waiting, *others, **settings)


def tried(view: PlacementView, *, thorough: bool = False) -> list[str]:
    locations = view.pool.locations
    return [" ".join(locations.nodes[node].name for node in nodes) for nodes in domains(view, thorough=thorough)]


@pytest.mark.parametrize("thorough", [False, True])
@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (4, [*IN_A, *IN_B, EVERYTHING]),
        (5, [IN_A[-1], IN_B[-1], EVERYTHING]),
        (8, [IN_A[-1], IN_B[-1], EVERYTHING]),
        (9, [EVERYTHING]),
    ],
)
def test_the_narrowest_places_that_hold_the_set_come_first(count: int, expected: list[str], *, thorough: bool) -> None:
    assert tried(a_view(count), thorough=thorough) == expected


NEAR_BS = a_topology(driver=Anchor(("b", "s", None), 1.0))
FROM_B = a_topology(
    Component("kafka", external=True, anchors=(Anchor(("b", None, None), 1.0),)),
    Component("ingest"),
    streams=(Stream("kafka", "ingest"),),
)
BUSY_A = tuple(
    a_node(n.name, zone=n.location[0], rack=n.location[1], cores=2.5 if n.name == "bs1" else 2.0) for n in NODES
)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        pytest.param(a_view(3, topologies=(NEAR_BS,)), ["bs1 bs2", IN_B[-1], EVERYTHING], id="the driver"),
        pytest.param(a_view(3, topologies=(FROM_B,)), [*IN_B, EVERYTHING], id="what it reads"),
        pytest.param(a_view(2, an_executor("old", node="bs2")), ["bs1 bs2", IN_B[-1], EVERYTHING], id="those that run"),
    ],
)
def test_of_places_that_hold_it_only_the_best_are_compared(view: PlacementView, expected: list[str]) -> None:
    assert tried(view, thorough=True) == expected
    assert tried(view)[0] == expected[0]


@pytest.mark.parametrize("thorough", [False, True])
def test_when_nothing_else_speaks_the_tightest_that_holds_it_comes_first(*, thorough: bool) -> None:
    """The next set then finds a whole rack."""
    view = a_view(4, nodes=BUSY_A)
    assert tried(view, thorough=thorough) == [*IN_A, "br1 br2", "bs1 bs2", IN_B[-1], EVERYTHING]


def test_a_zone_with_a_rack_that_holds_it_comes_before_a_tighter_one_without() -> None:
    loose = tuple(a_node(f"c{n}", zone="c", cores=2.0) for n in range(6))
    assert tried(a_view(8, nodes=(*NODES, *loose)))[0] == "c0 c1 c2 c3 c4 c5"


def test_the_driver_is_not_worth_splitting_the_set_over_racks() -> None:
    nodes = (*NODES, *(a_node(f"c{n}", zone="c", rack=f"c{n}", cores=2.0) for n in range(4)))
    near_c = a_topology(driver=Anchor(("c", "c0", None), 1.0))
    assert tried(a_view(4, nodes=nodes, topologies=(near_c,)))[0] in IN_A + IN_B


def test_places_that_do_not_hold_it_are_ranked_the_roomiest_first() -> None:
    view = a_view(9, nodes=BUSY_A)
    assert view.pool.locations.codes[0].max() == 1
    assert _standing(view, np.arange(8), 0).ranked().tolist() == [1, 0]


def test_of_what_is_left_the_scarcest_kind_decides() -> None:
    """Every node takes two; there is much memory to spare in zone b, and a few cores in zone a."""
    narrow = Resources(4.0, 2 * GIB, 110)
    nodes = tuple(a_node(n.name, zone="a", allocatable=narrow) for n in NODES[:2])
    assert (
        tried(a_view(2, nodes=(*nodes, a_node("b1", zone="b", cores=2.0), a_node("b2", zone="b", cores=2.0))))[0]
        == "ar1 ar2"
    )


@pytest.mark.parametrize("rate", [0.001, 1e9 / 3])
def test_places_that_differ_by_rounding_alone_are_compared(rate: float) -> None:
    """Two shares are their sum."""
    shares = (
        {"a": (0.23, 0.05), "b": (0.28,), "c": (0.44,)} if rate < 1 else {"a": (0.17, 0.06), "b": (0.23,), "c": (0.54,)}
    )
    anchors = tuple(Anchor((zone, None, None), share) for zone, several in shares.items() for share in several)
    kafka = Component("kafka", external=True, anchors=anchors)
    streams = (Stream("kafka", "ingest", bytes_per_second=rate),)
    topology = a_topology(kafka, Component("ingest", exchange_bytes_per_second=0.0), streams=streams)
    assert sorted(tried(a_view(2, topologies=(topology,)), thorough=True)) == sorted([*IN_A, *IN_B, EVERYTHING])


def test_the_zone_of_those_that_run_is_tried_although_others_have_reserved_its_room() -> None:
    view = a_view(2, an_executor("one-x", node="as1"))
    locations, room = view.pool.locations, view.pool.room
    all_of_a = Resources(8.0, GIB, 8)
    reserved = ReservedRoom(locations, room, {("team/other", "work"): Expectation(8, reserved=all_of_a)})
    reserved.look([an_executor("other-x", topology="team/other", component="work", node="ar1")], {})
    with_reserved = replace(view, pool=replace(view.pool, reserved=reserved))
    assert with_reserved.reserved is not None
    assert tried(with_reserved)[0] == tried(view)[0]


def test_in_a_hurry_two_places_of_a_level_are_enough() -> None:
    four = tuple(a_node(f"{zone}1", zone=zone, cores=2.0) for zone in "abcde")
    assert tried(a_view(2, nodes=four)) == ["a1", "b1", "a1 b1 c1 d1 e1"]
    assert tried(a_view(2, nodes=four), thorough=True) == ["a1", "b1", "c1", "d1", "a1 b1 c1 d1 e1"]


def test_a_place_whose_limit_the_set_exceeds_is_not_tried_by_itself() -> None:
    halves = PlacementPolicy(max_executors_per_node_ratio=1.0, max_executors_per_zone_ratio=0.5)
    assert tried(a_view(4, policy=halves)) == [EVERYTHING]


def test_amounts_must_suffice_for_all_together() -> None:
    """Each of the two templates alone would fit into a rack."""
    apart = [gated("big", requests=Resources(2.0, GIB, 1)), *(gated(f"small-{number}") for number in range(3))]
    policy = PlacementPolicy(max_executors_per_node_ratio=1.0)
    assert tried(the_view(*apart, nodes=NODES, policy=policy)) == [IN_A[-1], IN_B[-1], EVERYTHING]


def separated(by: str) -> Topology:
    return a_topology(Component("ingest"), Component("standby"), separate=(Separation(("ingest", "standby"), by),))


@pytest.mark.parametrize(
    ("by", "expected"),
    [("Zone", [EVERYTHING]), ("Rack", [IN_A[-1], IN_B[-1], EVERYTHING]), ("Node", [*IN_A, *IN_B, EVERYTHING])],
)
def test_no_place_that_two_components_must_not_share_is_tried_by_itself(by: str, expected: list[str]) -> None:
    waiting = (gated("ingest-1"), gated("standby-1", component="standby"))
    policy = PlacementPolicy(max_executors_per_node_ratio=1.0)
    assert tried(the_view(*waiting, nodes=NODES, policy=policy, topologies=(separated(by),))) == expected


def test_nodes_that_take_none_of_them_are_left_out() -> None:
    full = Resources(2.0, GIB, 1)
    nodes = tuple(a_node(n.name, zone=n.location[0], rack=n.location[1], cores=2.0, requested=full) for n in NODES[:3])
    assert tried(a_view(1, nodes=(*nodes, *NODES[3:])))[0] != "ar1 ar2"
    assert tried(a_view(1, nodes=(*nodes, *NODES[3:])))[-1] == "as2 br1 br2 bs1 bs2"


def test_a_pool_that_takes_none_of_them_is_not_looked_at() -> None:
    assert tried(a_view(1, nodes=(a_node("n1", cores=0.5),))) == []


def drawn(*zones: str) -> Topology:
    """Each component reads from its own zone."""
    ends = [Component(f"kafka-{z}", external=True, anchors=(Anchor((z, None, None), 1.0),)) for z in ("a", "b")]
    names = ("ingest", "report")[: len(zones)]
    streams = tuple(Stream(f"kafka-{zone}", name) for name, zone in zip(names, zones, strict=True))
    return a_topology(*ends, *(Component(name) for name in names), streams=streams)


@pytest.mark.parametrize(
    ("zones", "settles"), [(("a", "b"), False), (("b", "a"), False), (("a", "a"), True), (("a",), True), ((), True)]
)
def test_one_place_is_enough_unless_components_are_drawn_apart(zones: tuple[str, ...], *, settles: bool) -> None:
    waiting = (gated("ingest-1"), gated("report-1", component="report"))
    view = the_view(*waiting, nodes=NODES, topologies=(drawn(*zones),))
    assert settles_for_one_place(view) is settles


def standing(*places: tuple[float, ...]) -> Standing:
    all_of_them = np.ones(len(places), dtype=np.bool_)
    return Standing(np.array(places).T, all_of_them, all_of_them)


def test_earlier_figures_weigh_more_and_lower_ones_are_better() -> None:
    found = standing((0, 1, 0, 0, 0, 0), (0, 0, 9, 9, 9, 9), (-1, 5, 5, 5, 5, 5), (0, 0, 9, 9, 9, 8))
    assert found.ranked().tolist() == [2, 3, 1, 0]


def test_places_are_equal_when_only_room_differs() -> None:
    found = standing((0, 1, 2, 3, 4, 5), (0, 1, 9, 9, 4, 9), (0, 1, 2, 3, 5, 5), (0, 2, 2, 3, 4, 5))
    assert found.equals(0, 1)
    assert not found.equals(0, 2)
    assert not found.equals(0, 3)
