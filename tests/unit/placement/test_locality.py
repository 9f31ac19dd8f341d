"""How far traffic travels."""

from __future__ import annotations

import pytest

from ballast.model import DEFAULT_LEVELS, Component, Level, Levels, Location, Phase
from ballast.placement.locality import counts_by_topology, locality, locality_delta_ratio, measure
from tests.builders import a_node, a_topology, an_executor

A1: Location = ("a", "r1", "a1")
A2: Location = ("a", "r1", "a2")
B1: Location = ("b", "r1", "b1")


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
