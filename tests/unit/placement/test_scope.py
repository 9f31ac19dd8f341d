"""How far a component may spread."""

from __future__ import annotations

import pytest

from ballast.model import Executor, Memory, PlacementPolicy, Policy, Scope
from ballast.placement.scope import next_scopes, stepped
from tests.builders import a_node, a_snapshot, an_executor, gated

LOADS = {Scope.NODE: 3.0, Scope.RACK: 0.9, Scope.ZONE: 0.5, Scope.CLUSTER: 0.1}


@pytest.mark.parametrize(
    ("before", "loads", "after"),
    [
        (None, LOADS, Scope.RACK),
        (Scope.NODE, LOADS, Scope.RACK),
        (Scope.RACK, LOADS, Scope.ZONE),
        (Scope.ZONE, LOADS, Scope.ZONE),
        (Scope.CLUSTER, LOADS, Scope.CLUSTER),
        (Scope.CLUSTER, {**LOADS, Scope.ZONE: 0.19}, Scope.ZONE),
        (Scope.CLUSTER, {**LOADS, Scope.ZONE: 0.2}, Scope.CLUSTER),
        (Scope.ZONE, {**LOADS, Scope.ZONE: 0.8}, Scope.ZONE),
        (Scope.CLUSTER, {**LOADS, Scope.CLUSTER: 5.0}, Scope.CLUSTER),
        (Scope.RACK, {Scope.NODE: 1.0, Scope.ZONE: 0.5, Scope.CLUSTER: 0.1}, Scope.ZONE),
        (Scope.NODE, {Scope.NODE: 0.1, Scope.CLUSTER: 0.1}, Scope.NODE),
    ],
)
def test_one_step_at_a_time_by_the_bounds(before: Scope | None, loads: dict[Scope, float], after: Scope) -> None:
    assert stepped(before, loads, PlacementPolicy()) is after


UNLIMITED = Policy("p", placement=PlacementPolicy(max_executors_per_node_ratio=1.0))


def scopes(*executors: Executor, memory: Memory | None = None, policy: Policy | None = None) -> list[str]:
    nodes = [
        a_node(f"{zone}{rack}{n}", zone=zone, rack=rack, cores=2.0) for zone in "ab" for rack in "rs" for n in "12"
    ]
    snapshot = a_snapshot(*nodes, executors=executors)
    return [scope for _, _, scope in next_scopes(snapshot, policy or UNLIMITED, memory or Memory())]


def test_a_component_that_fills_its_node_may_use_the_rack() -> None:
    assert scopes(*(an_executor(f"e-{n}", node="ar1") for n in range(3))) == ["Node"]
    assert scopes(*(an_executor(f"e-{n}", node="ar1") for n in range(2)), *(gated(f"g-{n}") for n in range(2))) == [
        "Rack"
    ]


def test_it_goes_on_from_the_scope_that_it_had() -> None:
    memory = Memory(scopes=(("team/clicks", "ingest", "Rack"),))
    many = [an_executor(f"e-{n}", node=f"ar{n % 2 + 1}") for n in range(4)]
    assert scopes(*many, *(gated(f"g-{n}") for n in range(4)), memory=memory) == ["Zone"]


def test_a_component_that_is_nowhere_has_no_scope() -> None:
    assert scopes(gated("g-1")) == []


def test_what_one_node_may_not_hold_does_not_count_as_its_room() -> None:
    few = PlacementPolicy(max_executors_per_node_ratio=0.5)
    running = [an_executor(f"e-{n}", node="ar1") for n in range(2)]
    assert scopes(*running) == ["Node"]
    assert scopes(*running, policy=Policy("p", placement=few)) == ["Rack"]
