"""How far traffic travels."""

from __future__ import annotations

import time

import pytest

from ballast.model import DEFAULT_LEVELS, Anchor, Component, Level, Levels, Location, Phase, Stream, Topology
from ballast.placement import locality as places
from ballast.placement.locality import Counts, counts_by_topology, locality, locality_delta_ratio, measure
from tests.builders import a_node, a_topology, an_executor

A1: Location = ("a", "r1", "a1")
A2: Location = ("a", "r1", "a2")
B1: Location = ("b", "r1", "b1")
A3: Location = ("a", "r2", "a3")
NO_RACK: Location = ("a", None, "a9")

SILENT = Component("ingest", exchange_bytes_per_second=0.0)
LOUD = Component("ingest", exchange_bytes_per_second=8.0)


def test_a_set_in_thirds_over_three_zones_sends_two_thirds_across() -> None:
    counts: dict[str, dict[Location, int]] = {"ingest": {(zone, "r", zone): 2 for zone in "abc"}}
    view = locality(a_topology(), counts, DEFAULT_LEVELS)
    assert view.cross_zone_ratio == pytest.approx(2 / 3)
    assert view.cost == pytest.approx(2 / 3 * 10)


def test_a_view_is_of_the_topology_and_the_places_that_are_given() -> None:
    apart: dict[str, dict[Location, int]] = {"ingest": {A1: 1, B1: 1}}
    dear = a_topology(Component("ingest", exchange_bytes_per_second=8.0))
    given = [(a_topology(), apart), (dear, apart), (dear, {"ingest": {A1: 2}}), (a_topology(), apart)]
    views = [locality(topology, counts, DEFAULT_LEVELS) for topology, counts in given]
    assert views == [measure(topology, counts, DEFAULT_LEVELS).view() for topology, counts in given]


def test_places_that_change_after_they_were_given_are_looked_at_again() -> None:
    counts: dict[str, dict[Location, int]] = {"ingest": {A1: 1}}
    assert locality(a_topology(), counts, DEFAULT_LEVELS).cost == 0.0
    counts["ingest"][B1] = 1
    assert locality(a_topology(), counts, DEFAULT_LEVELS).cost > 0.0


def test_a_pool_of_a_thousand_topologies_keeps_the_view_of_each() -> None:
    topologies = [a_topology(key=f"team/clicks-{number}") for number in range(1000)]
    counts: dict[str, dict[Location, int]] = {"ingest": {A1: 1, B1: 1}}
    first, second = ([locality(each, counts, DEFAULT_LEVELS) for each in topologies] for _ in range(2))
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_where_nothing_runs_there_are_no_shares() -> None:
    view = locality(a_topology(), {}, DEFAULT_LEVELS)
    assert (view.cross_zone_ratio, view.cross_rack_ratio, view.cross_node_ratio) == (None, None, None)


def test_an_executor_alone_sends_nothing_anywhere() -> None:
    view = locality(a_topology(), {"ingest": {A1: 1}}, DEFAULT_LEVELS)
    assert (view.cross_node_ratio, view.cost, view.lower_bound) == (0.0, 0.0, 0.0)


def test_bytes_are_told_only_where_all_rates_are_known() -> None:
    known = a_topology(Component("ingest", exchange_bytes_per_second=8.0))
    counts = {"ingest": {A1: 1, B1: 1}}
    assert locality(known, counts, DEFAULT_LEVELS).cross_zone_bytes_per_second == pytest.approx(4.0)
    assert locality(a_topology(), counts, DEFAULT_LEVELS).cross_zone_bytes_per_second is None


def test_the_bound_counts_what_the_spread_limit_forces_apart() -> None:
    counts = {"ingest": {A1: 2, A2: 2}}
    view = locality(a_topology(), counts, DEFAULT_LEVELS, max_node_ratio=0.5)
    assert view.cost == view.lower_bound == pytest.approx(0.5)


def test_a_pool_with_nodes_alone_crosses_nodes_alone() -> None:
    levels = Levels((Level("kubernetes.io/hostname", 1.0),))
    view = locality(a_topology(), {"ingest": {("n1",): 1, ("n2",): 1}}, levels)
    assert (view.cross_zone_ratio, view.cross_rack_ratio, view.cross_node_ratio) == (0.0, 0.0, 0.5)


def test_only_executors_that_run_or_will_run_on_a_node_of_the_pool_count() -> None:
    executors = [
        an_executor("e-1", node="n1"),
        an_executor("e-2", node="n1", phase=Phase.PENDING),
        an_executor("e-3", node="n1", phase=Phase.LEAVING),
        an_executor("e-4", node="elsewhere"),
        an_executor("e-5", node=None, phase=Phase.PENDING),
    ]
    assert counts_by_topology(executors, [a_node("n1")]) == {"team/clicks": {"ingest": {("z1", "r1", "n1"): 2}}}


def test_moving_towards_the_others_is_cheaper_and_away_dearer() -> None:
    measured = measure(a_topology(), {"ingest": {A1: 1, A2: 2, B1: 1}}, DEFAULT_LEVELS)
    assert locality_delta_ratio(measured, "ingest", source=B1, target=A1) < 0
    assert locality_delta_ratio(measured, "ingest", source=A1, target=("b", "r1", "b2")) > 0
    assert locality_delta_ratio(measured, "ingest", source=A1, target=A1) == 0.0
    assert locality_delta_ratio(measured, "unheard-of", source=A1, target=B1) == 0.0


def test_the_first_step_apart_is_dear_but_not_infinitely_so() -> None:
    measured = measure(a_topology(), {"ingest": {A1: 4}}, DEFAULT_LEVELS)
    assert locality_delta_ratio(measured, "ingest", source=A1, target=A2) == pytest.approx(2 * 3 / 16)


def fed(*anchors: Anchor, own: Component = SILENT, rate: float = 10.0) -> Topology:
    """A component that reads so many bytes a second from a fixed end."""
    kafka = Component("kafka", external=True, anchors=anchors)
    return a_topology(kafka, own, streams=(Stream("kafka", "ingest", bytes_per_second=rate),))


def chain(*, rate: float = 12.0) -> Topology:
    return a_topology(
        SILENT,
        Component("report", exchange_bytes_per_second=0.0),
        streams=(Stream("ingest", "report", bytes_per_second=rate),),
    )


CASES: list[tuple[str, Topology, Counts, float]] = [
    ("an exchange crosses what its pairs do", a_topology(LOUD), {"ingest": {A1: 1, B1: 1}}, 8 * 10 / 2),
    ("a rack further is nearer than a zone", a_topology(LOUD), {"ingest": {A1: 1, A3: 1}}, 8 * 3 / 2),
    ("and a node further than that", a_topology(LOUD), {"ingest": {A1: 1, A2: 1}}, 8 * 1 / 2),
    ("by how many are where", a_topology(LOUD), {"ingest": {A1: 3, B1: 1}}, 8 * 10 * 6 / 16),
    ("a stream goes from each to each", chain(), {"ingest": {A1: 1}, "report": {A2: 2, B1: 1}}, 12 * (2 * 1 + 10) / 3),
    ("a fixed end pulls by its shares", fed(Anchor(A1, 0.75), Anchor(B1, 0.25)), {"ingest": {A2: 2}}, 7.5 + 2.5 * 10),
    ("a place without a label is no farther", fed(Anchor(("a", None, None), 1.0)), {"ingest": {A1: 1, A3: 1}}, 0.0),
    ("a rack that nobody named is near to every rack", a_topology(LOUD), {"ingest": {NO_RACK: 1, A3: 1}}, 8 * 1 / 2),
    ("a fixed end and an exchange add up", fed(Anchor(B1, 1.0), own=LOUD), {"ingest": {A1: 1, A2: 1}}, 100 + 4),
    ("what runs nowhere counts for nothing", chain(), {"ingest": {A1: 1}, "report": {B1: 0}}, 0.0),
]


@pytest.mark.parametrize(("topology", "counts", "cost"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_traffic_costs_its_rate_times_its_distance(topology: Topology, counts: Counts, cost: float) -> None:
    assert measure(topology, counts, DEFAULT_LEVELS).cost == pytest.approx(cost)


@pytest.mark.parametrize(("topology", "counts"), [case[1:3] for case in CASES], ids=[case[0] for case in CASES])
@pytest.mark.parametrize("target", [A1, A2, A3, B1, NO_RACK, ("c", "r1", "c1")])
def test_the_price_of_a_move_is_the_difference_of_the_costs(
    topology: Topology, counts: Counts, target: Location
) -> None:
    measured = measure(topology, counts, DEFAULT_LEVELS)
    source = next(place for place, count in counts["ingest"].items() if count)
    after = {name: dict(places) for name, places in counts.items()}
    after["ingest"][source] -= 1
    after["ingest"][target] = after["ingest"].get(target, 0) + 1
    moved = measure(topology, after, DEFAULT_LEVELS).cost - measured.cost
    assert measured.delta("ingest", source=source, target=target) == pytest.approx(moved)


def test_the_shares_count_the_fixed_ends_too() -> None:
    view = measure(fed(Anchor(B1, 0.5), Anchor(A1, 0.5)), {"ingest": {A1: 1, A3: 1}}, DEFAULT_LEVELS).view()
    assert (view.cross_zone_ratio, view.cross_rack_ratio, view.cross_node_ratio) == (0.5, 0.75, 0.75)
    assert view.cross_zone_bytes_per_second == pytest.approx(5.0)
    assert view.cost == pytest.approx(0.5 * 10 + 0.5 * 0.5 * 3)


def test_no_traffic_at_all_costs_nothing_anywhere() -> None:
    measured = measure(a_topology(SILENT), {"ingest": {A1: 1, B1: 1}}, DEFAULT_LEVELS)
    view = measured.view()
    assert (view.cross_zone_ratio, view.cross_rack_ratio, view.cross_node_ratio) == (0.0, 0.0, 0.0)
    assert (view.cost, view.lower_bound, measured.base) == (0.0, 0.0, 0.0)


BOUNDS: list[tuple[str, Topology, Counts, float, float]] = [
    ("an exchange may stay on one node", a_topology(LOUD), {"ingest": {A1: 2, B1: 2}}, 1.0, 0.0),
    ("half of it at most where a node holds half", a_topology(LOUD), {"ingest": {A1: 2, B1: 2}}, 0.5, 0.5),
    ("thirds and a rest", a_topology(LOUD), {"ingest": {A1: 5}}, 0.4, 1 - (0.4**2 + 0.4**2 + 0.2**2)),
    ("a stream is as near as the smaller share", chain(), {"ingest": {A1: 4}, "report": {B1: 2}}, 0.5, 0.5),
    (
        "a fixed end is nearest at one of its ends",
        fed(Anchor(A1, 0.75), Anchor(B1, 0.25)),
        {"ingest": {A2: 1}},
        1.0,
        2.5,
    ),
    ("and where it has but one, at that", fed(Anchor(B1, 1.0)), {"ingest": {A1: 1}}, 1.0, 0.0),
]


@pytest.mark.parametrize(("topology", "counts", "ratio", "bound"), [b[1:] for b in BOUNDS], ids=[b[0] for b in BOUNDS])
def test_no_placement_gets_below_the_bound(topology: Topology, counts: Counts, ratio: float, bound: float) -> None:
    view = measure(topology, counts, DEFAULT_LEVELS).view(ratio)
    assert view.lower_bound == pytest.approx(bound)


def test_a_node_without_a_host_label_goes_by_its_name() -> None:
    node = a_node("n1", location=("z1", None, None))
    bare = a_node("n2", location=())
    executors = [an_executor("e1", node="n1"), an_executor("e2", node="n2")]
    assert counts_by_topology(executors, [node, bare]) == {"team/clicks": {"ingest": {("z1", None, "n1"): 1, (): 1}}}


def _with_ends(count: int, ends: int) -> Topology:
    """One component, and `count` external ones, each of which has as many ends."""
    anchors = tuple(Anchor(("abc"[i % 3], f"r{i % 7}", f"n{i}"), 1.0 / ends) for i in range(ends))
    outer = tuple(Component(f"x{i}", external=True, anchors=anchors) for i in range(count))
    streams = tuple(Stream(each.name, "ingest", bytes_per_second=8.0) for each in outer)
    return a_topology(SILENT, *outer, streams=streams)


@pytest.mark.soak
def test_very_many_ends_of_very_many_streams_take_no_time() -> None:
    before = time.process_time()
    view = measure(_with_ends(97, 100), {"ingest": {A1: 1, B1: 1}}, DEFAULT_LEVELS).view()
    assert view.cost > 0.0
    assert time.process_time() - before < 2.0, "a pass waits for it, and with it the executors of all users"


def test_ends_that_are_looked_at_in_parts_cost_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: dict[str, dict[Location, int]] = {"ingest": {A1: 2, A3: 1, B1: 1, NO_RACK: 3}}
    at_once = measure(_with_ends(3, 20), counts, DEFAULT_LEVELS).view()
    monkeypatch.setattr(places, "_MOST_CELLS", 1)
    in_parts = measure(_with_ends(3, 20), counts, DEFAULT_LEVELS).view()
    assert in_parts.cost == pytest.approx(at_once.cost)
    assert in_parts.lower_bound == pytest.approx(at_once.lower_bound)
    assert in_parts.cross_rack_ratio == pytest.approx(at_once.cross_rack_ratio)
