"""A zone for each set that no plan has placed in time."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

from ballast.model import (
    DEFAULT_LEVELS,
    Component,
    Constraints,
    Demand,
    Executor,
    Level,
    Levels,
    Node,
    Pin,
    Placement,
    PlacementPolicy,
    Policy,
    Reason,
    Requirement,
    Resources,
    Separation,
)
from ballast.placement.fallback import fallback
from tests.builders import GIB, a_node, a_policy, a_snapshot, a_topology, an_executor, gated

IN_B = Constraints(affinity_terms=((Requirement("zone", "In", ("b",)),),))


def zone(name: str, *, nodes: int, racks: int = 1, cores: float = 4.0, **changes: Any) -> list[Node]:
    return [
        a_node(f"{name}-{number}", zone=name, rack=f"r{number % racks}", cores=cores, labels={"zone": name}, **changes)
        for number in range(nodes)
    ]


def a_set(count: int, **changes: Any) -> list[Executor]:
    return [gated(f"e-{number}", **changes) for number in range(count)]


def placed(
    waiting: list[Executor],
    nodes: list[Node],
    *others: Executor,
    policy: Policy | None = None,
    **changes: Any,
) -> list[Placement]:
    snapshot = a_snapshot(*nodes, executors=(*others, *waiting), **changes)
    return fallback(snapshot, policy or a_policy(), gated=waiting)


def zones(found: list[Placement]) -> Counter[str | None]:
    return Counter(placement.location[0] if placement.location else None for placement in found)


def with_placement(**changes: Any) -> Policy:
    return a_policy(placement=PlacementPolicy(**changes))


@pytest.mark.parametrize(
    ("expected", "home"),
    [
        pytest.param(10, "b", id="all are there: the tightest zone that holds them"),
        pytest.param(14, "a", id="four are to come: the one that will hold all"),
        pytest.param(40, "a", id="no zone will hold all: the roomiest"),
        pytest.param(None, "a", id="nothing is known: the roomiest"),
    ],
)
def test_a_set_is_kept_in_one_zone_for_all_that_are_expected(expected: int | None, home: str) -> None:
    nodes = [*zone("a", nodes=4), *zone("b", nodes=3), *zone("c", nodes=2)]
    assert zones(placed(a_set(10, expected=expected), nodes)) == {home: 10}


def test_the_zone_where_the_others_of_its_component_run_comes_first() -> None:
    nodes = [*zone("a", nodes=4), *zone("b", nodes=3)]
    assert zones(placed(a_set(10), nodes, an_executor("r", node="a-0"))) == {"a": 10}


def test_so_does_it_where_not_all_that_are_expected_have_room() -> None:
    nodes = [*zone("a", nodes=3), *zone("b", nodes=4)]
    running = an_executor("r", node="a-0", expected=14)
    assert zones(placed(a_set(4, expected=14), nodes)) == {"b": 4}
    assert zones(placed(a_set(4, expected=14), nodes, running)) == {"a": 4}


def test_the_zone_of_other_components_of_its_topology_comes_next() -> None:
    nodes = [*zone("a", nodes=4), *zone("b", nodes=3)]
    assert zones(placed(a_set(10), nodes, an_executor("r", node="a-0", component="sink"))) == {"a": 10}


def test_the_zone_of_its_component_is_passed_over_when_it_can_not_hold_the_set() -> None:
    nodes = [*zone("a", nodes=1), *zone("b", nodes=3)]
    assert zones(placed(a_set(10), nodes, an_executor("r", node="a-0"))) == {"b": 10}


def test_a_set_that_no_zone_holds_fills_the_largest_first() -> None:
    nodes = [*zone("a", nodes=1), *zone("b", nodes=2), *zone("c", nodes=3)]
    assert zones(placed(a_set(18), nodes)) == {"c": 12, "b": 6}


def test_what_no_zone_has_room_for_is_not_tied_to_one() -> None:
    found = placed(a_set(6), zone("a", nodes=1))
    assert zones(found) == {"a": 4, None: 2}
    left = [placement for placement in found if not placement.location]
    assert {(p.pin, p.reason) for p in left} == {(Pin.NONE, Reason.POOL_FULL)}


def test_the_zone_is_required_and_says_why() -> None:
    found = placed(a_set(3), zone("a", nodes=2, racks=2))[0]
    assert (found.node, found.pin, found.reason) == (None, Pin.ZONE, Reason.GATE_TIMEOUT)
    assert found.detail == "no plan was made in time; a has room for the whole set"


def test_a_rack_that_holds_the_set_is_named_and_one_that_does_not_is_not() -> None:
    nodes = zone("a", nodes=4, racks=2)
    assert placed(a_set(8), nodes)[0].location == ("a", "r0", None)
    assert placed(a_set(9), nodes)[0].location == ("a", None, None)


@pytest.mark.parametrize(
    ("executor", "policy"),
    [
        (gated("e", labeled=False), a_policy()),
        (gated("e", by_other_pods=True), a_policy()),
        (gated("e", late_claims=True), a_policy()),
        (gated("e"), with_placement(pin=Pin.NONE)),
    ],
)
def test_the_zone_is_only_preferred_where_nothing_may_be_required(executor: Executor, policy: Policy) -> None:
    found = placed([executor], zone("a", nodes=1), policy=policy)[0]
    assert (found.location[0], found.pin) == ("a", Pin.NONE)


def test_a_zone_without_a_name_is_not_required() -> None:
    assert placed(a_set(1), [a_node("n", zone=None)])[0].pin is Pin.NONE


def test_a_policy_without_zones_gives_none() -> None:
    found = placed(a_set(1), zone("a", nodes=1), policy=a_policy(levels=Levels((Level("host", 1.0),))))[0]
    assert (found.location, found.pin, found.reason) == ((), Pin.NONE, Reason.GATE_TIMEOUT)


def test_only_nodes_that_admit_the_executor_count() -> None:
    nodes = [*zone("a", nodes=4, schedulable=False), *zone("b", nodes=3), *zone("c", nodes=2)]
    assert zones(placed(a_set(4, expected=4), nodes)) == {"c": 4}
    assert zones(placed(a_set(4, constraints=IN_B), nodes)) == {"b": 4}
    assert placed(a_set(1), zone("a", nodes=2, ready=False))[0].reason is Reason.NODE_UNAVAILABLE


def test_sets_of_one_call_and_pods_that_are_pending_leave_each_other_their_room() -> None:
    nodes = [*zone("a", nodes=2), *zone("b", nodes=3)]
    both = [
        *a_set(6, application="one", expected=7),
        *(gated(f"f-{n}", application="two", expected=7) for n in range(7)),
    ]
    found = placed(both, nodes)
    by_set = {executor.application: placement.location[0] for executor, placement in zip(both, found, strict=True)}
    assert by_set == {"one": "b", "two": "a"}
    assert zones(found) == {"a": 7, "b": 6}
    pending = (Demand(Resources(4.0, GIB, 1), IN_B),) * 2
    assert zones(placed(a_set(8, expected=8), nodes, pending=pending)) == {"a": 8}
    assert zones(placed(a_set(5, expected=5), nodes, pending=pending)) == {"a": 5}


def test_no_zone_gets_more_of_a_component_than_the_policy_allows() -> None:
    nodes = [*zone("a", nodes=4), *zone("b", nodes=4)]
    found = placed(a_set(6), nodes, policy=with_placement(max_executors_per_zone_ratio=0.5))
    assert zones(found) == {"a": 3, "b": 3}


def test_nor_does_it_when_more_executors_are_expected() -> None:
    nodes = [*zone("a", nodes=4), *zone("b", nodes=4)]
    found = placed(a_set(6, expected=100), nodes, policy=with_placement(max_executors_per_zone_ratio=0.5))
    assert zones(found) == {"a": 3, "b": 3}


def test_a_pool_in_one_zone_has_no_other_to_spread_to() -> None:
    found = placed(a_set(6), zone("a", nodes=4), policy=with_placement(max_executors_per_zone_ratio=0.5))
    assert zones(found) == {"a": 6}


def test_components_that_must_not_share_a_zone_do_not() -> None:
    apart = (Separation(("ingest", "sink"), "Zone"),)
    topology = a_topology(Component("ingest"), Component("sink"), separate=apart)
    nodes = [*zone("a", nodes=2), *zone("b", nodes=4)]
    sink = an_executor("r", node="a-0", component="sink")
    assert zones(placed(a_set(3), nodes, sink, topologies=(topology,))) == {"b": 3}
    assert placed(a_set(1), zone("a", nodes=2), sink, topologies=(topology,))[0].reason is Reason.SEPARATED


def test_templates_of_a_set_that_fit_one_by_one_and_not_together_are_not_put_in_one_zone() -> None:
    nodes = [*zone("a", nodes=1), *zone("b", nodes=1, cores=8.0)]
    waiting = [*a_set(2), *(gated(f"f-{n}", requests=Resources(2.0, GIB, 1)) for n in range(2))]
    assert zones(placed(waiting, nodes)) == {"b": 4}


def test_each_executor_has_one_answer_in_the_order_of_the_question() -> None:
    waiting = [gated(f"e-{n}", application=f"app-{n % 3}") for n in range(7)]
    assert [p.uid for p in placed(waiting, zone("a", nodes=2))] == [e.uid for e in waiting]
    assert placed([], zone("a", nodes=2)) == []
    assert {p.reason for p in placed(waiting, [])} == {Reason.POOL_FULL}


@pytest.mark.soak
def test_a_thousand_nodes_take_milliseconds() -> None:
    nodes = tuple(
        Node(f"n{i}", (f"z{i % 3}", f"r{i % 30}", f"n{i}"), Resources(16.0, 64 * GIB, 110)) for i in range(1000)
    )
    waiting = a_set(200)
    snapshot = a_snapshot(*nodes, executors=tuple(waiting))
    policy = a_policy(levels=DEFAULT_LEVELS)
    times = []
    for _ in range(5):
        before = time.process_time()
        fallback(snapshot, policy, gated=waiting)
        times.append(time.process_time() - before)
    assert min(times) < 0.1
