"""How many executors are still to come, and where others leave them room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ballast.model import DEFAULT_LEVELS, Component, Executor, Memory, Node, Phase, Resources, Topology
from ballast.placement.expectation import (
    GROWTH_SECONDS,
    RESERVED_SECONDS,
    Expectation,
    ReservedRoom,
    expectations,
)
from ballast.placement.node_locations import node_locations
from ballast.placement.placing import place
from ballast.placement.room import Room
from tests.builders import GIB, NOW, a_node, a_policy, a_snapshot, a_topology, an_executor, gated

KEY = ("team/clicks", "ingest")
ONE = Resources(1.0, GIB, 1)


def expected(*executors: Executor, declared: int | None = None, before: int = 0, now: float = NOW) -> Expectation:
    topology = a_topology(Component("ingest", expected=declared))
    memory = Memory(placements=((*KEY, (("n1", before),)),) if before else ())
    return expectations(a_snapshot(executors=executors, topologies=(topology,), taken_at=now), memory)[KEY]


def some(count: int, **changes: Any) -> list[Executor]:
    return [gated(f"e-{number}", since=NOW, **changes) for number in range(count)]


@pytest.mark.parametrize(
    ("declared", "label", "before", "to_come"),
    [
        pytest.param(10, None, 0, 7, id="by the topology"),
        pytest.param(10, 50, 40, 7, id="by the topology, whatever else"),
        pytest.param(None, 50, 40, 47, id="by the label"),
        pytest.param(3, None, 0, 0, id="complete"),
        pytest.param(2, None, 0, 0, id="more than were expected"),
    ],
)
def test_those_to_come_are_known_where_their_number_is_declared(
    declared: int | None, label: int | None, before: int, to_come: int
) -> None:
    found = expected(*some(3, expected=label), declared=declared, before=before)
    assert (found.to_come, found.known, found.growing) == (to_come, True, to_come > 0)


@pytest.mark.parametrize(("before", "to_come"), [(40, 37), (3, 0), (0, 0)])
def test_otherwise_there_may_be_any_number_and_at_least_as_many_as_before(before: int, to_come: int) -> None:
    found = expected(*some(3), before=before)
    assert (found.to_come, found.known, found.growing) == (to_come, False, True)


def test_executors_of_the_run_before_do_not_count_as_those_of_the_new_one() -> None:
    old = [an_executor(f"old-{number}", application="spark-before", node="n1") for number in range(10)]
    assert expected(*old, *some(1), declared=10).to_come == 9
    assert expected(*old, declared=10).to_come == 0


def test_executors_that_are_on_their_way_out_do_not_count() -> None:
    leaving = an_executor("old", phase=Phase.LEAVING, node="n1")
    assert expected(leaving, *some(1), declared=2).to_come == 1


@pytest.mark.parametrize(
    ("seconds", "cores"), [(0.0, 9.0), (RESERVED_SECONDS - 1, 9.0), (RESERVED_SECONDS, 0.0), (-1e9, 0.0)]
)
def test_room_is_reserved_for_a_while_after_the_latest_executor_was_created(seconds: float, cores: float) -> None:
    assert expected(*some(1), declared=10, now=NOW + seconds).reserved.cpu_cores == cores


@pytest.mark.parametrize(("seconds", "cores"), [(GROWTH_SECONDS - 1, 8.0), (GROWTH_SECONDS, 0.0)])
def test_executors_that_come_again_and_again_renew_it_for_a_while(seconds: float, cores: float) -> None:
    first = an_executor("first", node="n1", application="spark-1", created_at=NOW - seconds)
    latest = gated("latest", since=NOW, application="spark-1")
    assert expected(first, latest, declared=10).reserved.cpu_cores == cores


def test_what_is_left_of_the_run_before_does_not_shorten_it() -> None:
    old = an_executor("old", node="n1", application="spark-before", created_at=NOW - 10 * GROWTH_SECONDS)
    assert expected(old, *some(1), declared=10).reserved.cpu_cores == 9.0


@pytest.mark.parametrize(("before", "count"), [(0, 3), (40, 37)])
def test_a_set_that_may_grow_has_as_much_reserved_as_it_has_or_had(before: int, count: int) -> None:
    assert expected(*some(3), before=before).reserved == ONE.times(count)


def test_what_is_reserved_follows_the_executors_and_counts_for_others_alone() -> None:
    nodes = [a_node("a1", zone="a"), a_node("b1", zone="b")]
    places = node_locations(nodes, DEFAULT_LEVELS)
    zones = places.codes[0]
    found = ReservedRoom(places, Room(places, ["cpu", "memory", "pods"]), {KEY: Expectation(3, reserved=ONE.times(3))})
    assert found.by_others("team/other") is None
    found.look([an_executor("e-1", node="a1")], {})
    others = found.by_others("team/other")
    assert others is not None
    assert others[zones[0]].tolist() == [3.0, 3 * GIB, 3.0]
    assert others[zones[1]].tolist() == [0.0, 0.0, 0.0]
    assert found.by_others("team/clicks") is None
    found.placed("team/clicks", ["ingest"], np.array([[1, 2]]))
    others = found.by_others("team/other")
    assert others is not None
    assert others[:, 0].tolist() == [3.0 if zone == zones[1] else 0.0 for zone in range(2)]


def zone_nodes(**free: int) -> list[Node]:
    """Nodes of one core each; each zone has as many as is said, all in one rack."""
    return [
        a_node(f"{zone}{number:02}", zone=zone, rack=f"r-{zone}", cores=1.0)
        for zone, count in free.items()
        for number in range(count)
    ]


def rackless(**free: int) -> list[Node]:
    """The same with each node in a rack of its own."""
    return [
        replace(node, location=(node.location[0], f"r-{node.name}", *node.location[2:])) for node in zone_nodes(**free)
    ]


def homes(
    nodes: Sequence[Node], executors: Sequence[Executor], *, topologies: tuple[Topology, ...] = ()
) -> dict[str, set[str | None]]:
    """Zones by topology, of the gated ones of these executors."""
    taken = {executor.node for executor in executors}
    known = [replace(node, requested=ONE) if node.name in taken else node for node in nodes]
    snapshot = a_snapshot(*known, executors=tuple(executors), topologies=topologies)
    waiting = [executor for executor in executors if executor.phase is Phase.GATED]
    found = place(snapshot, a_policy(), Memory(), gated=waiting, expected=expectations(snapshot, Memory()))
    topology = {executor.uid: executor.topology for executor in executors}
    zones: dict[str, set[str | None]] = {}
    for placement in found.placements:
        zones.setdefault(topology[placement.uid], set()).add(placement.location[0])
    return zones


def of(application: str, count: int, **changes: Any) -> list[Executor]:
    return [
        gated(f"{application}-{number}", since=NOW, topology=f"team/{application}", application=application, **changes)
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("label", "zone"),
    [
        pytest.param(5, "a", id="complete: the smallest zone that holds them"),
        pytest.param(15, "c", id="growing: the smallest zone that will hold all"),
        pytest.param(40, "b", id="no zone holds all: the roomiest"),
        pytest.param(None, "b", id="unknown: the roomiest"),
    ],
)
def test_the_first_executors_go_to_the_zone_for_all_of_them(label: int | None, zone: str) -> None:
    assert homes(zone_nodes(a=8, b=30, c=20), of("one", 5, expected=label)) == {"team/one": {zone}}


@pytest.mark.parametrize("ratio", [0.25, 0.5])
def test_limits_count_executors_that_are_there_and_not_those_that_are_expected(ratio: float) -> None:
    nodes = [a_node(f"{zone}{number}", zone=zone, rack=f"r-{zone}", cores=64.0) for zone in "ab" for number in range(5)]
    executors = of("one", 20, expected=100)
    limits = replace(a_policy().placement, max_executors_per_node_ratio=ratio, max_executors_per_zone_ratio=0.5)
    snapshot = a_snapshot(*nodes, executors=tuple(executors))
    found = place(
        snapshot,
        a_policy(placement=limits),
        Memory(),
        gated=executors,
        expected=expectations(snapshot, Memory()),
    ).placements
    assert max(Counter(placement.node for placement in found).values()) <= 20 * ratio
    assert Counter(placement.location[0] for placement in found) == {"a": 10, "b": 10}


def test_a_limit_per_node_that_only_few_executors_meet_is_no_reason_for_another_zone() -> None:
    large = [a_node(f"a{number}", zone="a", rack="r-a", cores=8.0) for number in range(4)]
    assert homes([*large, *zone_nodes(b=40)], of("one", 5, expected=30)) == {"team/one": {"a"}}


def test_a_rack_that_holds_the_first_ones_is_no_reason_for_a_smaller_zone() -> None:
    scattered = [a_node(f"b{number}", zone="b", rack=f"r{number}", cores=1.0) for number in range(12)]
    assert homes([*zone_nodes(a=8), *scattered], of("one", 5)) == {"team/one": {"b"}}


def test_those_that_come_later_join_the_first() -> None:
    nodes = zone_nodes(a=8, b=30, c=20)
    there = [an_executor("one-x", topology="team/one", application="one", node="a00", expected=15)]
    assert homes(nodes, [*there, *of("one", 5, expected=15)]) == {"team/one": {"a"}}


def test_another_set_of_the_same_pass_leaves_room_for_those_to_come() -> None:
    executors = [*of("one", 5, expected=15), *of("two", 4, expected=12)]
    assert homes(zone_nodes(a=16, b=16), executors) in (
        {"team/one": {"a"}, "team/two": {"b"}},
        {"team/one": {"b"}, "team/two": {"a"}},
    )


def test_a_complete_set_leaves_room_for_those_to_come() -> None:
    nodes = zone_nodes(a=16, b=20)
    growing = an_executor("one-x", topology="team/one", application="one", node="a00", expected=15, created_at=NOW)
    late = replace(growing, created_at=NOW - RESERVED_SECONDS)
    assert homes(nodes, [growing, *of("two", 5, expected=5)]) == {"team/two": {"b"}}
    assert homes(nodes, [late, *of("two", 5, expected=5)]) == {"team/two": {"a"}}


def test_where_no_other_zone_holds_a_set_it_takes_the_room_that_is_reserved() -> None:
    growing = an_executor("one-x", topology="team/one", application="one", node="a00", expected=15, created_at=NOW)
    found = homes(zone_nodes(a=16, b=3), [growing, *of("two", 6, expected=6)])
    assert found == {"team/two": {"a"}}


def test_a_growing_set_too_takes_the_zone_that_holds_it_rather_than_be_split() -> None:
    other = an_executor("two-x", topology="team/two", application="two", node="a00", expected=15, created_at=NOW)
    found = homes(rackless(a=16, b=9), [other, *of("one", 4, expected=12)])
    assert found == {"team/one": {"a"}}


def test_of_zones_that_hold_it_only_without_what_is_reserved_it_takes_the_one_that_has_most_left() -> None:
    others = [
        an_executor("two-x", topology="team/two", application="two", node="a00", expected=15, created_at=NOW),
        an_executor("three-x", topology="team/three", application="three", node="b00", expected=10, created_at=NOW),
    ]
    found = homes(rackless(a=16, b=19), [*others, *of("one", 4, expected=14)])
    assert found == {"team/one": {"b"}}


def test_those_to_come_have_the_rack_that_holds_all_of_them() -> None:
    small = [a_node(f"s{number}", zone="a", rack="small", cores=1.0) for number in range(4)]
    large = [a_node(f"l{number}", zone="a", rack="large", cores=1.0) for number in range(10)]
    snapshot = a_snapshot(*small, *large, executors=tuple(of("one", 3, expected=9)), topologies=())
    found = place(
        snapshot, a_policy(), Memory(), gated=snapshot.executors, expected=expectations(snapshot, Memory())
    ).placements
    assert {placement.location[1] for placement in found} == {"large"}
