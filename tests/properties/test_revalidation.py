"""Whatever an ExecutorMove says, whoever wrote it: only who may leave is let go, and only to where there is room."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import find, given
from hypothesis import strategies as st

from ballast.model import (
    Executor,
    Memory,
    Move,
    MovePhase,
    MovesMode,
    MovesPolicy,
    Phase,
    PlacementMode,
    PlacementPolicy,
    Policy,
    Reason,
    Resources,
    Snapshot,
)
from ballast.moves.revalidation import revalidate
from ballast.moves.score import measured
from ballast.moves.step import Revalidation
from ballast.planner import strategy_state
from tests.builders import NOW, a_move, a_node, a_policy, a_snapshot, an_executor
from tests.examples import examples

NODES = ("n0", "n1", "n2", "gone")
POLICY = a_policy(
    placement=PlacementPolicy(mode=PlacementMode.ENFORCE, max_executors_per_node_ratio=1.0),
    moves=MovesPolicy(
        mode=MovesMode.ENFORCE,
        max_locality_loss=1.0,
        cooldown_seconds=0.0,
        max_concurrent=9,
        max_concurrent_per_node=9,
        max_concurrent_per_topology=9,
    ),
)
SETTINGS = [POLICY, *(replace(POLICY, placement=replace(POLICY.placement, mode=m)) for m in PlacementMode)]
HINDRANCES: list[dict[str, Any]] = [
    {"enforced": False},
    {"labeled": False},
    {"graceful": False},
    {"kueue_managed": True},
    {"phase": Phase.LEAVING},
    {"topology": "team/other"},
]


@st.composite
def executors(draw: st.DrawFn, number: int) -> Executor:
    """One that may move, except for at most one blocked."""
    blocked = draw(st.sampled_from([{}, {}, {}, *HINDRANCES]))
    plain = an_executor(f"e-{number}", node=draw(st.sampled_from(NODES)), cpu=draw(st.sampled_from([0.1, 0.5, 1.0])))
    return replace(plain, **blocked)


@st.composite
def pools(draw: st.DrawFn) -> Snapshot:
    parts = tuple(draw(executors(number)) for number in range(draw(st.integers(1, 3))))
    nodes = [
        a_node(
            name,
            cpu=draw(st.sampled_from([None, 0.1, 0.2, 0.4, 0.9, 0.95, 1.05])),
            requested=Resources(draw(st.sampled_from([0.0, 3.0, 3.5])), 0.0, 1),
            schedulable=draw(st.integers(0, 5)) > 0,
        )
        for name in NODES[:3]
    ]
    return a_snapshot(*nodes, executors=parts)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Snapshot, Move]:
    """A pool and an approved move in it, that is true of its executor except for at most one lie."""
    pool = draw(pools())
    executor = draw(st.sampled_from(pool.executors))
    other = draw(st.sampled_from(NODES))
    lies: list[dict[str, Any]] = [{}, {}, {"executor_uid": "nobody"}, {"source": other}, {"topology": "x"}]
    lie = draw(st.sampled_from(lies))
    told = a_move(
        "m",
        executor_uid=executor.uid,
        source=executor.node,
        target=draw(st.sampled_from(NODES)),
        topology=executor.topology,
        phase=MovePhase.APPROVED,
        ended_at=None,
        helped=None,
        started_at=NOW - 5,
    )
    move = replace(told, **lie)
    return replace(pool, moves=(move,)), move


@st.composite
def crowds(draw: st.DrawFn) -> tuple[Snapshot, Move]:
    """A hot node whose executors may all leave, two cold ones with little room, and up to three moves under way."""
    parts = tuple(an_executor(f"e-{i}", node="n0", cpu=0.1) for i in range(draw(st.integers(1, 4))))
    hot = a_node("n0", cpu=1.05, requested=Resources(3.5, 0.0, 4))
    cold = [
        a_node(name, cpu=0.1, requested=Resources(draw(st.sampled_from([0.0, 2.0, 3.0])), 0.0, 1))
        for name in NODES[1:3]
    ]
    moves = tuple(
        a_move(
            f"m-{i}",
            executor_uid=each.uid,
            source="n0",
            target=draw(st.sampled_from(NODES[1:3])),
            phase=MovePhase.LEAVING if i else MovePhase.APPROVED,
            ended_at=None,
            helped=None,
            started_at=NOW - 5,
        )
        for i, each in enumerate(parts)
    )
    return a_snapshot(hot, *cold, executors=parts, moves=moves), moves[0]


def revalidated(seen: Snapshot, move: Move, policy: Policy) -> Revalidation:
    candidates = strategy_state.candidates(seen, policy, Memory(), now=NOW)
    scores = measured(seen, policy).by_node
    return revalidate(seen, policy, move, candidates=candidates, measured=scores, now=NOW)


@given(crowds())
def test_at_a_destination_there_is_room_for_all_that_go_there(crowd: tuple[Snapshot, Move]) -> None:
    seen, move = crowd
    found = revalidated(seen, move, POLICY)
    if found.refusal is not None:
        assert found.refusal.reason in (Reason.NO_ROOM, Reason.NO_DESTINATION)
        return
    (node,) = (n for n in seen.nodes if n.name == (found.destination or move.target))
    there = [each for each in seen.moves[1:] if each.target == node.name]
    assert node.requested.cpu_cores + len(there) + 1.0 <= node.allocatable.cpu_cores


def test_some_of_a_crowd_are_let_go_and_some_find_no_room() -> None:
    """Else that would say nothing."""
    for refused in (False, True):
        seen, move = find(crowds(), lambda crowd: _is_refused(crowd) == refused)  # noqa: B023
        assert move in seen.moves


def _is_refused(crowd: tuple[Snapshot, Move]) -> bool:
    seen, move = crowd
    return revalidated(seen, move, POLICY).refusal is not None


@examples(500)
@given(situations(), st.sampled_from(SETTINGS))
def test_who_is_let_go_may_leave_and_has_somewhere_to_go(situation: tuple[Snapshot, Move], policy: Policy) -> None:
    seen, move = situation
    found = revalidated(seen, move, policy)
    refusal, other = found.refusal, found.destination
    if refusal is not None:
        assert refusal.detail
        assert other is None
        return
    (executor,) = (e for e in seen.executors if e.uid == move.executor_uid)
    assert (executor.node, executor.topology, executor.phase) == (move.source, move.topology, Phase.RUNNING)
    assert executor.enforced
    assert executor.labeled
    assert executor.graceful
    assert not executor.kueue_managed
    assert policy.placement.mode is PlacementMode.ENFORCE
    target = other or move.target
    # To its own node the machine itself says no: there is no destination left then.
    (node,) = (n for n in seen.nodes if n.name == target)
    assert node.open
    assert executor.requests.fits_in(node.free)
    assert {move.source, target} <= measured(seen, policy).by_node.keys()
