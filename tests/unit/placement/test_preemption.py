"""Room of pods of lower priority comes second, and is used where a set finds no place in one zone without it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from ballast.model import Executor, Memory, Node, PlacementMode, PlacementPolicy, Plan, Policy, Resources
from ballast.planner.plan import plan
from tests.builders import GIB, NOW, a_node, a_policy, a_snapshot, gated

ZONES = ("a", "b", "c")


def node(name: str, zone: str, *, balloons: float = 0.0, others: float = 0.0) -> Node:
    """Of eight cores, of which balloons and pods of others ask for some."""
    asked = Resources(balloons + others, GIB * (balloons + others), 2)
    found = a_node(name, zone=zone, rack=f"{zone}-r", cores=8.0, requested=asked)
    return replace(found, preemptible=Resources(balloons, GIB * balloons, 1)) if balloons else found


def enforcing() -> Policy:
    return a_policy(placement=PlacementPolicy(mode=PlacementMode.ENFORCE, max_executors_per_node_ratio=1.0))


def decided(*nodes: Node, executors: int = 6, topology: str = "team/clicks") -> Plan:
    waiting: list[Executor] = [gated(f"e-{n}", since=NOW - 8.0, topology=topology) for n in range(executors)]
    return plan(a_snapshot(*nodes, executors=tuple(waiting), topologies=()), enforcing(), Memory(), NOW)[0]


def zones(found: Plan) -> Counter[str | None]:
    return Counter(each.location[0] if each.node else None for each in found.placements)


def test_a_set_is_in_the_one_zone_that_holds_it_once_balloons_are_preempted() -> None:
    """Three cores are free in each zone, and balloons take five more in zone b: it holds all six executors."""
    found = decided(node("a1", "a", others=5), node("b1", "b", balloons=5), node("c1", "c", others=5))
    assert zones(found) == {"b": 6}
    assert {each.detail for each in found.placements} == {
        "kube-scheduler may preempt pods of lower priority to make room for it"
    }
    assert zones(decided(node("a1", "a", others=5), node("b1", "b", others=5), node("c1", "c", others=5))) != {"b": 6}


def test_a_pool_that_is_full_of_balloons_has_room() -> None:
    found = decided(*(node(f"{zone}1", zone, balloons=8) for zone in ZONES))
    assert sorted(zones(found).values()) == [6]
    assert all(each.reason is None for each in found.placements)


@pytest.mark.parametrize("free", ["a", "b", "c"])
def test_a_zone_that_is_free_comes_before_one_whose_pods_would_be_preempted(free: str) -> None:
    nodes = [node(f"{zone}1", zone, balloons=0 if zone == free else 8) for zone in ZONES]
    assert zones(decided(*nodes)) == {free: 6}


def test_where_preemption_brings_nothing_the_places_are_those_without_it() -> None:
    """Two more cores in zone a do not make it hold nine executors."""
    nodes = [node("a1", "a", balloons=2, others=3), node("b1", "b", others=5), node("c1", "c", others=5)]
    without = [replace(each, preemptible=None) for each in nodes]
    assert decided(*nodes, executors=9).placements == decided(*without, executors=9).placements
