"""Room of pods of lower priority comes second: only executors that find no node otherwise use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from ballast.model import (
    Executor,
    Memory,
    Move,
    MovePhase,
    Node,
    Phase,
    PlacementMode,
    PlacementPolicy,
    Plan,
    Policy,
    Resources,
)
from ballast.planner.plan import plan
from tests.builders import GIB, NOW, a_move, a_node, a_policy, a_snapshot, gated

ZONES = ("a", "b", "c")


PREEMPTING = "kube-scheduler may preempt pods of lower priority to make room for it"


def node(name: str, zone: str, *, balloons: float = 0.0, others: float = 0.0) -> Node:
    """Of eight cores, of which balloons and pods of others ask for some."""
    asked = Resources(balloons + others, GIB * (balloons + others), 2)
    found = a_node(name, zone=zone, rack=f"{zone}-r", cores=8.0, requested=asked)
    return replace(found, preemptible=Resources(balloons, GIB * balloons, 1)) if balloons else found


def enforcing() -> Policy:
    return a_policy(placement=PlacementPolicy(mode=PlacementMode.ENFORCE, max_executors_per_node_ratio=1.0))


def waiting(executors: int, topology: str = "team/clicks") -> tuple[Executor, ...]:
    return tuple(gated(f"{topology[5:]}-{n}", since=NOW - 8.0, topology=topology) for n in range(executors))


def decided(*nodes: Node, executors: int | tuple[Executor, ...] = 6, moves: tuple[Move, ...] = ()) -> Plan:
    known = waiting(executors) if isinstance(executors, int) else executors
    return plan(a_snapshot(*nodes, executors=known, topologies=(), moves=moves), enforcing(), Memory(), NOW)[0]


def zones(found: Plan) -> Counter[str | None]:
    return Counter(each.location[0] if each.node else None for each in found.placements)


def without_balloons(nodes: Iterable[Node]) -> list[Node]:
    """As if nobody might be preempted."""
    return [replace(each, preemptible=None) for each in nodes]


def test_a_set_that_free_room_holds_split_stays_split_where_preemption_would_bring_it_together() -> None:
    """Three cores are free in each of two zones. kube-scheduler alone would preempt no pod for six executors."""
    nodes = [node("a1", "a", others=5), node("b1", "b", balloons=5)]
    found = decided(*nodes)
    assert zones(found) == {"a": 3, "b": 3}
    assert found.placements == decided(*without_balloons(nodes)).placements


def test_only_the_executors_of_a_set_that_find_no_node_otherwise_use_the_room() -> None:
    found = decided(node("a1", "a", others=5), node("b1", "b", balloons=8))
    assert zones(found) == {"a": 3, "b": 3}
    assert {(each.node, each.detail == PREEMPTING) for each in found.placements} == {("a1", False), ("b1", True)}


def test_a_topology_keeps_its_places_where_another_one_needs_the_room() -> None:
    nodes = [node("a1", "a", others=5), node("b1", "b", balloons=8), node("c1", "c", others=5)]
    both = (*waiting(6), *waiting(4, "team/views"))
    found, before = decided(*nodes, executors=both), decided(*without_balloons(nodes), executors=both)
    kept = [each for each in before.placements if each.node is not None]
    assert len(kept) == 6
    assert [each for each in found.placements if each.node != "b1"] == kept
    assert zones(found)["b"] == 4


def test_a_second_batch_gets_no_room_that_the_first_was_sent_to() -> None:
    """Eight cores can be preempted. The first batch is released and not bound yet: its victims still end."""
    full, first = node("b1", "b", balloons=8), waiting(6)
    before, memory = plan(a_snapshot(full, executors=first, topologies=()), enforcing(), Memory(), NOW)
    assert zones(before) == {"b": 6}
    sent = [replace(e, phase=Phase.PENDING, last_gate_since=None, pinned_at=NOW, placed=True) for e in first]
    after = a_snapshot(full, executors=(*sent, *waiting(6, "team/views")), topologies=(), taken_at=NOW + 1.0)
    assert zones(plan(after, enforcing(), memory, NOW + 1.0)[0]) == {"b": 2, None: 4}


def test_an_executor_that_fills_a_move_does_so_alone() -> None:
    """Those that use the room of second choice wait for no move that one with free room has filled."""
    move = a_move(phase=MovePhase.ARRIVING, target="a1", application="spark-app", resource_profile="0", ended_at=None)
    overdue = NOW - enforcing().placement.gate_timeout_seconds
    late = tuple(replace(executor, last_gate_since=overdue, created_at=overdue) for executor in waiting(5))
    found = decided(node("a1", "a", others=5), node("b1", "b", balloons=8), executors=late, moves=(move,))
    assert zones(found) == {"a": 3, "b": 2}
    assert {each.reason for each in found.placements} == {None}


def test_a_pool_that_is_full_of_balloons_has_room() -> None:
    found = decided(*(node(f"{zone}1", zone, balloons=8) for zone in ZONES))
    assert sorted(zones(found).values()) == [6]
    assert all(each.reason is None for each in found.placements)


@pytest.mark.parametrize("free", ["a", "b", "c"])
def test_a_zone_that_is_free_comes_before_one_whose_pods_would_be_preempted(free: str) -> None:
    nodes = [node(f"{zone}1", zone, balloons=0 if zone == free else 8) for zone in ZONES]
    assert zones(decided(*nodes)) == {free: 6}


def test_those_that_preemption_finds_no_node_for_either_say_what_they_would_say_without_it() -> None:
    nodes = [node("a1", "a", balloons=2, others=6)]
    found, before = decided(*nodes, executors=4), decided(*without_balloons(nodes), executors=4)
    assert zones(found) == {"a": 2, None: 2}
    assert [each for each in found.placements if each.node is None] == list(before.placements[2:])
