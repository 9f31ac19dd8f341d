"""Time passes: every time on record moves one tick into the past, and the past is clipped."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from ballast.model import MovePhase, Phase
from ballast.moves import MoveState, Step
from tests.properties.move_world.world import LONG_AGO, PAST, TICK, Executor, World


def aged(world: World) -> World:
    return world._replace(
        executors=tuple(_aged_executor(executor) for executor in world.executors),
        moves=tuple(None if move is None else aged_move(move) for move in world.moves),
        planned=tuple(None if step is None else _aged_step(step) for step in world.planned),
        seen=tuple(_aged_executor(executor) for executor in world.seen),
    )


@lru_cache(maxsize=200_000)
def _aged_executor(executor: Executor) -> Executor:
    created = executor.created if executor.created == LONG_AGO else max(PAST, executor.created - 1)
    timed = executor.phase in (Phase.GATED, Phase.LEAVING) or executor.unschedulable
    return executor._replace(created=created, since=max(PAST, executor.since - 1) if timed else 0)


def _aged_step(step: Step) -> Step:
    return replace(step, move=aged_move(step.move), before=aged_move(step.before))


@lru_cache(maxsize=200_000)
def aged_move(move: MoveState) -> MoveState:
    if move.phase.ended:
        return move
    times = move.timings
    return replace(
        move,
        orders=replace(move.orders, created_at=_earlier(move.orders.created_at) or 0.0)
        if move.phase is MovePhase.PROPOSED
        else move.orders,
        timings=replace(
            times,
            approved_at=_earlier(times.approved_at),
            leaving_at=_earlier(times.leaving_at),
            arriving_at=_earlier(times.arriving_at, PAST - move.attempts),
            settling_at=_earlier(times.settling_at),
        ),
        replacement=replace(move.replacement, claimed_at=_earlier(move.replacement.claimed_at))
        if move.replacement
        else None,
    )


def _earlier(time: float | None, past: int = PAST) -> float | None:
    return None if time is None else round(max(time - TICK, past * TICK), 2)
