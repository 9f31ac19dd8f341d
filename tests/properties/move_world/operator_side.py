"""The operator in this world: it reads, decides by the real machine, and acts, up to `LAG` events later.

A crash makes it forget what it has read and planned, and what the API server last told it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from ballast.model import Move, MovePhase, MovesMode, Objection, Phase, Pin, Policy, Reason, Refusal
from ballast.moves import (
    ClearNomination,
    DeleteUnscheduled,
    Effect,
    Evict,
    Facts,
    MoveState,
    PinReplacement,
    Pod,
    ReleaseUnpinned,
    Revalidation,
    Rival,
    Step,
    advance,
)
from ballast.moves.budget import ExecutorCounts
from ballast.moves.record import to_move
from ballast.moves.rest import Rest
from ballast.moves.revalidation import _behind
from ballast.moves.rules import Rules, Way
from tests.properties.move_world.world import (
    ELSEWHERE,
    LAG,
    PAST,
    SOURCE,
    TARGET,
    TICK,
    Executor,
    Scenario,
    World,
    owner,
    proposal,
    put,
    uid,
    without,
)


def late(world: World) -> World:
    if world.before_last is not None:
        world = world._replace(before_last=None)
    if not any(world.planned):
        return world
    if world.lag >= LAG:
        return idle(world)
    return world._replace(lag=world.lag + 1)


def idle(world: World) -> World:
    return world._replace(planned=(None,) * len(world.planned), lag=0, seen=())


def forgotten(world: World) -> World:
    """The operator crashed and started again: what it had read, planned and been told is gone."""
    return idle(world)._replace(refused=(False,) * len(world.refused), before_last=None)


def operator_events(scenario: Scenario, world: World) -> Iterator[tuple[str, World]]:
    if any(world.planned):
        for index, step in enumerate(world.planned):
            if step is not None:
                yield f"act {index}", act(scenario, world, index, step)
    else:
        fresh = look(scenario, world)
        if any(fresh.planned):
            yield "read", fresh
        if world.before_last is not None:
            stale = look(scenario, world._replace(executors=world.before_last))
            if any(stale.planned):
                yield "stale read", stale._replace(executors=world.executors)
    if world.luck.restarts and (any(world.planned) or any(world.refused)):
        luck = world.luck._replace(restarts=world.luck.restarts - 1)
        yield "crash", forgotten(world)._replace(luck=luck)
    if scenario.admitted:
        yield from proposals(scenario, world)


def look(scenario: Scenario, world: World) -> World:
    """The operator reads everything and makes up its mind about each move."""
    planned = tuple(_next_step(scenario, world, index) for index in range(len(world.moves)))
    seen = world.executors if any(planned) else ()
    return world._replace(planned=planned, lag=0, seen=seen, before_last=None)


def _next_step(scenario: Scenario, world: World, index: int) -> Step | None:
    move = world.moves[index]
    if move is None or move.phase.ended:
        return None
    settings = replace(scenario.settings, mode=MovesMode.DISABLED) if world.off else scenario.settings
    step = advance(move, facts(scenario, world, index), settings, now(world))
    return _bare(step) if step.changed or step.effect else None


def _bare(step: Step) -> Step:
    """Without what is meant for people only."""
    effect = step.effect
    after = _forgetful(step.move) if step.changed else step.before
    return Step(after, step.before, () if effect is None else (effect,))


def _forgetful(move: MoveState) -> MoveState:
    """Of an ended move only what others can still ask."""
    if not move.phase.ended:
        return _current(replace(move, message=""))
    return MoveState(
        orders=replace(move.orders, created_at=0.0),
        phase=move.phase,
        reason=move.reason,
        replacement=replace(move.replacement, claimed_at=None) if move.replacement else None,
        subject=move.subject,
        timings=replace(
            move.timings,
            approved_at=None,
            leaving_at=None if move.timings.leaving_at is None else PAST * TICK,
            arriving_at=None,
            settling_at=None,
            ended_at=PAST * TICK,
        ),
    )


def _current(move: MoveState) -> MoveState:
    """Without the times that the phase has left behind."""
    if move.phase is MovePhase.PROPOSED:
        return move
    orders, times = replace(move.orders, created_at=0.0), move.timings
    if move.phase is not MovePhase.APPROVED:
        times = replace(times, approved_at=PAST * TICK)
    if move.phase is MovePhase.SETTLING:
        times = replace(times, leaving_at=PAST * TICK, arriving_at=None)
    return replace(move, orders=orders, timings=times)


def act(scenario: Scenario, world: World, index: int, step: Step) -> World:
    """One request of the operator. After a status it goes on with the same move and what it has read."""
    done = world._replace(planned=put(world.planned, index, None), lag=world.lag + 1, before_last=None)
    if world.lag >= LAG or not any(done.planned):
        done = idle(done)
    if world.moves[index] != step.before:  # the resourceVersion that was read is no longer the present one
        return done
    if step.effect is not None:
        after = effected(done, index, step.effect)
        return after._replace(before_last=world.executors if after.executors != world.executors else None)
    written = done._replace(moves=put(done.moves, index, step.move))
    return written if step.look_again else _going_on(scenario, written, index, seen=world.seen)


def _going_on(scenario: Scenario, world: World, index: int, *, seen: tuple[Executor, ...]) -> World:
    following = _next_step(scenario, world._replace(executors=seen), index)
    if following is None:
        return world
    return world._replace(planned=put(world.planned, index, following), seen=seen)


def effected(world: World, index: int, effect: Effect) -> World:
    """The API server's answer to one request."""
    at = next((i for i, e in enumerate(world.executors) if uid(e.application, e.number) == effect.uid), None)
    if at is None:
        return world
    executor = world.executors[at]
    if isinstance(effect, Evict):
        return _evicted(world, index, at)
    if isinstance(effect, DeleteUnscheduled | ClearNomination):
        return _given_up(world, index, at, effect)
    if executor.phase is not Phase.GATED:
        return world
    assert isinstance(effect, PinReplacement | ReleaseUnpinned)
    pin = effect.node if isinstance(effect, PinReplacement) and effect.pin is not Pin.NONE else None
    by, nominated = index if pin else None, isinstance(effect, PinReplacement)
    released = executor._replace(phase=Phase.PENDING, pinned=pin, pinned_by=by, nominated=nominated, since=0)
    return world._replace(executors=put(world.executors, at, released))


def _given_up(world: World, index: int, at: int, effect: DeleteUnscheduled | ClearNomination) -> World:
    executor = world.executors[at]
    if executor.phase is not Phase.PENDING or executor.node is not None:
        return world
    if isinstance(effect, ClearNomination):
        return world._replace(executors=put(world.executors, at, executor._replace(nominated=False)))
    counts = tuple(n + (i == index) for i, n in enumerate(world.discarded))
    return world._replace(executors=without(world.executors, at), discarded=counts)


def _evicted(world: World, index: int, at: int) -> World:
    executor = world.executors[at]
    if executor.phase is Phase.ENDED or executor.phase is Phase.LEAVING:
        return world
    if world.blocked:
        return world._replace(refused=put(world.refused, index, True))
    leaving = executor._replace(phase=Phase.LEAVING, since=0)
    return world._replace(
        executors=put(world.executors, at, leaving),
        evicted=put(world.evicted, index, True),
        refused=put(world.refused, index, False),
    )


def proposals(scenario: Scenario, world: World) -> Iterator[tuple[str, World]]:
    """The planner proposes what the limits allow, and approves it at once."""
    known = [to_move(move, source_points_per_core=100.0) for move in world.moves if move is not None]
    for index, move in enumerate(world.moves):
        if move is not None:
            continue
        new = proposal(scenario, index)
        objection = _others(known, to_move(new, source_points_per_core=100.0), scenario, world)
        if objection is None:
            yield f"propose {index}", late(world)._replace(moves=put(world.moves, index, new))


@lru_cache(maxsize=200_000)
def _pod(executor: Executor) -> Pod:
    waiting = executor.phase is Phase.PENDING and executor.unschedulable
    return Pod(
        uid=uid(executor.application, executor.number),
        name=f"exec-{executor.number}",
        phase=executor.phase,
        created_at=executor.created * TICK,
        application=str(executor.application),
        resource_profile="0",
        executor_id=str(executor.number),
        node=executor.node,
        gate_since=executor.since * TICK if executor.phase is Phase.GATED else None,
        unschedulable_since=executor.since * TICK if waiting else None,
        running_since=None,
        pinned=executor.pinned is not None,
        nominated=executor.nominated,
        deadline=(executor.since + 1) * TICK if executor.phase is Phase.LEAVING else None,
        exit_code=143 if executor.failed else None,
    )


_BEFORE = {SOURCE: 90.0, TARGET: 20.0, ELSEWHERE: 30.0}
_AFTER = {SOURCE: 60.0, TARGET: 50.0, ELSEWHERE: 50.0}


def facts(scenario: Scenario, world: World, index: int) -> Facts:
    move = world.moves[index]
    assert move is not None
    application, number = owner(scenario, index)
    executor = next((e for e in world.executors if (e.application, e.number) == (application, number)), None)
    # Of an executor that is gone, its application is known if the move has noted it.
    kin = str(application) if executor is not None else move.subject.application
    rivals = (
        Rival.of(other)
        for i, other in enumerate(world.moves)
        if other is not None and i != index and other.subject.application == kin
    )
    return Facts(
        executor=None if executor is None else _pod(executor),
        newcomers=tuple(
            _pod(each) for each in world.executors if str(each.application) == kin and each is not executor
        ),
        rivals=tuple(rival for rival in rivals if rival is not None),
        revalidation=_revalidation(scenario, world, move),
        scores=_AFTER if world.evicted[index] else _BEFORE,
        eviction_refused="disruption budget" if world.refused[index] else "",
    )


def _revalidation(scenario: Scenario, world: World, move: MoveState) -> Revalidation:
    if move.phase is MovePhase.ARRIVING:
        return Revalidation(destination=ELSEWHERE if world.full else None)
    if world.objected:
        return Revalidation(refusal=Refusal("executor", Reason.DATA_SKEW))
    if move.phase not in (MovePhase.APPROVED, MovePhase.LEAVING):
        return Revalidation()
    own = to_move(move, source_points_per_core=100.0)
    known = (
        to_move(other, source_points_per_core=100.0) for other in world.moves if other is not None and other is not move
    )
    ahead = [other for other in known if other.phase is not MovePhase.PROPOSED and not _behind(other, own)]
    objection = _others(ahead, own, scenario, world)
    return Revalidation(refusal=Refusal("executor", *objection) if objection else None)


def _others(known: Sequence[Move], own: Move, scenario: Scenario, world: World) -> Objection | None:
    """Why other moves forbid this one, by the rules of the planner and of the revalidation."""
    resting = Rest(paused=frozenset(), executors={})
    rules = Rules(
        Policy("streaming", moves=scenario.settings), known, resting=resting, counts=ExecutorCounts(), now=now(world)
    )
    way = Way(own.executor_uid, own.topology, own.source, own.target, None, None, 0.0)
    return rules.of_others(way)


def now(world: World) -> float:
    """A little after everything that was written in this tick."""
    written = (
        time
        for move in world.moves
        if move is not None
        for time in (
            move.timings.approved_at,
            move.timings.leaving_at,
            move.timings.arriving_at,
            move.replacement.claimed_at if move.replacement else None,
        )
        if time is not None and time >= 0
    )
    return round(max(written, default=0.0) + 0.01, 2)
