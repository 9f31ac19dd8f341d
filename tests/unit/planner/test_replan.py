"""What placing a topology again would give."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.model import Constraints, Executor, Memory, MovePhase, Node, Policy, Reason, Requirement, Resources
from ballast.planner.replan import replanned, replanned_topology
from tests.builders import GIB, a_move, a_node, a_policy, a_snapshot, an_executor, gated

KEY = "team/clicks"


def wide_spread() -> tuple[Node, ...]:
    return (
        a_node("a1", zone="a", requested=Resources(2, 2 * GIB, 2)),
        a_node("a2", zone="a", rack="r2"),
        a_node("b1", zone="b", rack="r3", requested=Resources(2, 2 * GIB, 2)),
    )


def four() -> tuple[Executor, ...]:
    return tuple(an_executor(f"e{i}", node="a1" if i < 2 else "b1") for i in range(4))


def two_each() -> Policy:
    """At most half of a component on one node."""
    return a_policy(placement=replace(a_policy().placement, max_executors_per_node_ratio=0.5))


def test_a_topology_over_two_zones_would_come_together() -> None:
    found = replanned_topology(a_snapshot(*wide_spread(), executors=four()), two_each(), KEY)
    assert found is not None
    assert found.before.cross_zone_ratio == pytest.approx(0.5)
    assert found.after.cross_zone_ratio == 0.0
    assert (found.executors, found.relocated, found.unplaced) == (4, 2, ())
    assert found.places == {"ingest": {"a1": 2, "a2": 2}}


def test_what_is_placed_well_would_stay_as_it_is() -> None:
    executors = tuple(an_executor(f"e{i}", node="a1" if i < 2 else "a2") for i in range(4))
    found = replanned_topology(a_snapshot(*wide_spread(), executors=executors), two_each(), KEY)
    assert found is not None
    assert found.before == found.after
    assert found.relocated == 0


def test_its_own_room_counts_as_free_and_nobody_else_s() -> None:
    """The node of the first two is full of them: placed again, they may stay there."""
    policy = a_policy(placement=replace(a_policy().placement, max_executors_per_node_ratio=1.0))
    node = a_node("a1", zone="a", cores=2.0, requested=Resources(2, 2 * GIB, 2))
    executors = tuple(an_executor(f"e{i}", node="a1") for i in range(2))
    found = replanned_topology(a_snapshot(node, executors=executors), policy, KEY)
    assert found is not None
    assert found.unplaced == ()
    foreign = replace(node, requested=Resources(3, 2 * GIB, 3))
    crowded = replanned_topology(a_snapshot(foreign, executors=executors), policy, KEY)
    assert crowded is not None
    assert [placement.reason for placement in crowded.unplaced] == [Reason.POOL_FULL]


def test_executors_that_wait_count_too() -> None:
    found = replanned_topology(a_snapshot(*wide_spread(), executors=(*four(), gated("e9"))), a_policy(), KEY)
    assert found is not None
    assert found.executors == 5


def test_an_unknown_topology_gives_nothing() -> None:
    assert replanned_topology(a_snapshot(*wide_spread(), executors=four()), a_policy(), "team/other") is None


def test_a_tie_that_ballast_made_does_not_hold_it_back() -> None:
    tied = Constraints(affinity_terms=((Requirement("topology.kubernetes.io/zone", "In", ("b",)),),))
    executors = [replace(e, constraints=tied, pinned=True) if e.node == "b1" else e for e in four()]
    nodes = [replace(n, labels={**n.labels, "topology.kubernetes.io/zone": n.location[0] or ""}) for n in wide_spread()]
    found = replanned_topology(a_snapshot(*nodes, executors=tuple(executors)), two_each(), KEY)
    assert found is not None
    assert found.after.cross_zone_ratio == 0.0
    own = [replace(e, pinned=False) for e in executors]
    kept = replanned_topology(a_snapshot(*nodes, executors=tuple(own)), two_each(), KEY)
    assert kept is not None
    assert kept.after.cross_zone_ratio == 0.5


def test_a_node_is_not_too_hot_for_the_load_that_made_it_hot() -> None:
    policy = a_policy(placement=replace(a_policy().placement, max_executors_per_node_ratio=1.0))
    nodes = (a_node("a1", cpu=0.95, cores=2.0, requested=Resources(1, GIB, 1)), a_node("a2", cpu=0.6, cores=2.0))
    executor = an_executor("e1", node="a1", cpu=1.8, cores=2.0)
    snapshot = a_snapshot(*nodes, executors=(executor,))
    (placement,) = replanned(snapshot, policy, Memory(placements=((KEY, "ingest", (("a1", 1),)),)), [executor])
    assert placement.node == "a1"


@pytest.mark.parametrize(("moved", "node"), [("e2", None), ("e1", "b1")])
def test_room_that_another_move_needs_is_spoken_for_and_ones_own_is_not(moved: str, node: str | None) -> None:
    """Only b1 has room, for one; whoever moves there under way has it."""
    nodes = (a_node("a1", cores=2.0, requested=Resources(3, 2 * GIB, 2)), a_node("b1", cores=1.0))
    one, other = an_executor("e1", node="a1"), an_executor("e2", node="a1")
    move = a_move(executor_uid=f"uid-{moved}", source="a1", target="b1", phase=MovePhase.LEAVING, ended_at=None)
    snapshot = a_snapshot(*nodes, executors=(one, other), moves=(move,))
    (found,) = replanned(snapshot, two_each(), Memory(), [one])
    assert found.node == node


def test_the_strategy_goes_by_what_it_remembers() -> None:
    nodes = tuple(a_node(name) for name in ("a", "b", "c"))
    executor = an_executor("e1", node="a")
    placement = replace(a_policy().placement, strategy="RoundRobin")
    memory = Memory(placement_state=(("RoundRobin", '{"turn": "b"}'),))
    found = replanned(a_snapshot(*nodes, executors=(executor,)), a_policy(placement=placement), memory, [executor])
    assert [p.node for p in found] == ["c"]
