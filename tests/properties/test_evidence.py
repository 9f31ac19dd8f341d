"""No move without evidence, and the same evidence wherever it is asked for."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from ballast.model import Executor, ExecutorUsage, Memory, MovesPolicy, Node, PlannedMove, Reason, Snapshot
from ballast.moves.revalidation import revalidate
from ballast.moves.score import measured
from ballast.planner import strategy_state
from ballast.planner.arbiter import as_started
from ballast.planner.explanation import explain
from ballast.planner.plan import plan
from tests.builders import NOW
from tests.examples import examples
from tests.properties.test_planner import EAGER, pools

SECONDS = st.sampled_from([None, 1.0, 1.1, 1.3, 2.0])
BYTES = st.sampled_from([None, 100.0, 100.0, 130.0, 200.0])
SHARES = st.sampled_from([None, 0.0, 0.05, 0.2])


@st.composite
def measured_pools(draw: st.DrawFn) -> Snapshot:
    """Pools in which tasks, throttling and pressure are measured here and there."""
    pool = draw(pools())
    return replace(
        pool,
        nodes=tuple(_pressed(node, draw(SHARES)) for node in pool.nodes),
        executors=tuple(_timed(draw, executor) for executor in pool.executors),
    )


def _pressed(node: Node, share: float | None) -> Node:
    return replace(node, usage=replace(node.usage, pressure_ratio=share)) if node.usage is not None else node


def _timed(draw: st.DrawFn, executor: Executor) -> Executor:
    if executor.usage is None:
        return executor
    timed = {"task_seconds": draw(SECONDS), "task_bytes": draw(BYTES), "throttled_ratio": draw(SHARES)}
    return replace(executor, usage=replace(executor.usage, **timed))


@examples(200)
@given(measured_pools())
def test_every_move_has_evidence_or_nothing_to_judge_it_by(pool: Snapshot) -> None:
    found, _ = plan(pool, EAGER, Memory(), NOW)
    for move in found.moves:
        assert justified(move, pool, EAGER.moves)


@examples(200)
@given(measured_pools())
def test_what_the_plan_moves_has_evidence_for_explain_and_at_revalidation(pool: Snapshot) -> None:
    found, _ = plan(pool, EAGER, Memory(), NOW)
    for planned in found.moves[:1]:
        told = explain(pool, EAGER, Memory(), NOW, executor=planned.executor)
        assert Reason.NOTHING_TO_GAIN not in {each.reason for each in told.alternatives if each.node == planned.target}
        assert not {Reason.NOTHING_TO_GAIN, Reason.DATA_SKEW} & {reason for reason, _ in told.objections}
        move = as_started(planned, NOW)
        under_way = replace(pool, moves=(move,))
        candidates = strategy_state.candidates(under_way, EAGER, Memory(), now=NOW)
        scores = measured(pool, EAGER).by_node
        again = revalidate(under_way, EAGER, move, candidates=candidates, measured=scores, now=NOW)
        assert again.refusal is None or again.refusal.reason not in (Reason.NOTHING_TO_GAIN, Reason.DATA_SKEW)


@pytest.mark.soak
def test_pools_are_drawn_in_which_evidence_decides() -> None:
    """Some moves are made by it, and some are refused for want of it."""
    limits = settings(max_examples=2000, phases=[hypothesis.Phase.generate], database=None)
    find(measured_pools(), lambda pool: any(_judged(move, pool) for move in _plan_moves(pool)), settings=limits)
    find(measured_pools(), _refused, settings=limits)


def _plan_moves(pool: Snapshot) -> tuple[PlannedMove, ...]:
    return plan(pool, EAGER, Memory(), NOW)[0].moves


def _refused(pool: Snapshot) -> bool:
    return any(each.reason is Reason.NOTHING_TO_GAIN for each in plan(pool, EAGER, Memory(), NOW)[0].refusals)


def _judged(move: PlannedMove, pool: Snapshot) -> bool:
    return _reference(move, pool) is not None


def justified(move: PlannedMove, pool: Snapshot, moves: MovesPolicy) -> bool:
    """The rule, written down a second time."""
    score = measured(pool, EAGER).by_node
    pressure = next(n.usage.pressure_ratio for n in pool.nodes if n.name == move.source and n.usage is not None)
    if pressure is not None and pressure >= moves.min_pressure:
        return True
    if score[move.source] >= moves.saturation_score:
        return True
    compared = _reference(move, pool)
    if compared is None:
        return pressure is None
    own, other, node = compared
    seconds = _ratio(own.task_seconds, other.task_seconds)
    if seconds is not None and seconds >= moves.min_slowness * max(
        1.0, _ratio(own.task_bytes, other.task_bytes) or 1.0
    ):
        return True
    throttled = None
    if own.throttled_ratio is not None and other.throttled_ratio is not None:
        throttled = own.throttled_ratio - other.throttled_ratio
        if throttled >= moves.min_pressure:
            return True
    as_hot = node != move.target and abs(score[node] - score[move.target]) > abs(score[node] - score[move.source])
    return (as_hot or seconds is None) and pressure is None and throttled is None


def _reference(move: PlannedMove, pool: Snapshot) -> tuple[ExecutorUsage, ExecutorUsage, str] | None:
    mover = next(e for e in pool.executors if e.uid == move.uid)
    timed = sorted(
        (e.usage.task_seconds, e.uid, e.usage, e.node)
        for e in pool.executors
        if e.phase is mover.phase
        and e.application == mover.application
        and e.usage is not None
        and e.usage.task_seconds is not None
    )
    if mover.usage is None or len(timed) < 2:
        return None
    there = [each for each in timed if each[3] == move.target]
    elsewhere = [each for each in timed if each[3] != move.source]
    fastest = elsewhere[: (len(elsewhere) + 3) // 4]
    group = there or fastest
    if not group:
        return None
    _, _, usage, node = group[(len(group) - 1) // 2]
    return mover.usage, usage, node or ""


def _ratio(own: float | None, other: float | None) -> float | None:
    return own / other if own is not None and other else None
