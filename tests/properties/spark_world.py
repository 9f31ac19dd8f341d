"""A small world around the move machine: Spark's allocator, the kubelet, the scheduler, an API server, a user.

Every event that could happen next is listed, so that a search can try them all. Times are relative to the present
tick and clipped, which makes the states finite. The operator reads, and acts on what it read up to `LAG` events
later; a crash makes it forget what it read and what the API server last told it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple, TypeVar

from ballast.controller.moves import (
    Clearance,
    DeleteUnscheduled,
    Effect,
    Evict,
    Facts,
    MoveState,
    Orders,
    PinReplacement,
    Pod,
    ReleaseUnpinned,
    Rival,
    Step,
    Subject,
    Timings,
    Word,
    advance,
)
from ballast.controller.moves.record import to_move
from ballast.model import MovePhase, MovesMode, MovesPolicy, Phase, Reason, Refusal
from ballast.planner import budget
from ballast.planner.clearance import _behind

T = TypeVar("T")

TICK = 10.0
LONG_AGO = -9
"""Tick at which the first executors were created."""
PAST = -3
"""Tick before which the past is all alike: every timeout below is shorter."""
LAG = 1
"""Events that may happen between what the operator reads and what it does about it."""

SETTINGS = MovesPolicy(
    mode=MovesMode.APPROVE,
    max_concurrent=2,
    max_concurrent_per_node=2,
    max_concurrent_per_topology=2,
    settle_seconds=TICK,
    cooldown_seconds=0.0,
    leave_timeout_seconds=2 * TICK,
    arrive_timeout_seconds=TICK,
    approval_timeout_seconds=2 * TICK,
)
SOURCE, TARGET, ELSEWHERE = "hot", "cold", "mild"


class Executor(NamedTuple):
    application: int
    number: int
    """Spark's executor id: never used again."""
    phase: Phase
    node: str | None
    created: int
    """Tick, the present one being 0."""
    since: int = 0
    """Tick of what the phase waits for: gated, unschedulable, being deleted."""
    unschedulable: bool = False
    pinned: str | None = None
    pinned_by: int | None = None
    failed: bool = False


class Allocator(NamedTuple):
    """Spark's side of one application."""

    target: int
    created: int
    """Executors so far."""


class Luck(NamedTuple):
    """How much of each kind of trouble is still to come; what is not spent may never happen."""

    shrinks: int = 0
    crashes: int = 0
    """Of executors."""
    unschedulable: int = 0
    slow_exits: int = 0
    blocks: int = 0
    """Times that a disruption budget begins to block."""
    objections: int = 0
    """Times that an executor becomes ineligible."""
    fillings: int = 0
    """Times that the destination fills up."""
    restarts: int = 0
    """Crashes of the operator."""
    absences: int = 0
    """Replacements that Spark never asks for."""


class World(NamedTuple):
    executors: tuple[Executor, ...]
    allocators: tuple[Allocator, ...]
    moves: tuple[MoveState | None, ...]
    """None: not yet proposed."""
    luck: Luck
    evicted: tuple[bool, ...]
    """By move: an eviction took effect."""
    discarded: tuple[int, ...]
    """By move: unscheduled replacements that were deleted."""
    blocked: bool = False
    objected: bool = False
    full: bool = False
    refused: tuple[bool, ...] = ()
    """What the operator remembers: the eviction of this move was refused."""
    planned: tuple[Step | None, ...] = ()
    """What the operator is about to do, by move."""
    lag: int = 0
    seen: tuple[Executor, ...] = ()
    """The executors as the operator read them, while it has anything planned."""
    before_last: tuple[Executor, ...] | None = None
    """The executors before the operator's own last request, which the next read may still show."""


@dataclass(frozen=True, slots=True)
class Assignment:
    application: int
    number: int
    source: str = SOURCE
    target: str = TARGET
    approved: bool = True


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    sizes: tuple[int, ...]
    """Executors per application."""
    assignments: tuple[Assignment, ...]
    luck: Luck = field(default_factory=Luck)
    gated: bool = True
    settings: MovesPolicy = SETTINGS
    admitted: bool = False
    """Moves are proposed by the operator, within the limits, instead of all being there from the start."""
    gone: bool = False
    """It starts where all these moves' executors have left."""

    def start(self) -> World:
        left = {(wanted.application, wanted.number) for wanted in self.assignments} if self.gone else set()
        executors = tuple(
            Executor(application, number, Phase.RUNNING, SOURCE, LONG_AGO)
            for application, size in enumerate(self.sizes)
            for number in range(1, size + 1)
            if (application, number) not in left
        )
        count = len(self.assignments)
        return World(
            executors=executors,
            allocators=tuple(Allocator(size, size) for size in self.sizes),
            moves=(None,) * count if self.admitted else tuple(_state(self, i) for i in range(count)),
            luck=self.luck,
            evicted=(self.gone,) * count,
            discarded=(0,) * count,
            refused=(False,) * count,
            planned=(None,) * count,
        )


def _state(scenario: Scenario, index: int) -> MoveState:
    wanted = scenario.assignments[index]
    move = MoveState(
        Orders(
            name=f"move-{index}",
            namespace="apps",
            topology=f"apps/{wanted.application}",
            component="executors",
            executor_uid=uid(wanted.application, wanted.number),
            executor_name=f"exec-{wanted.number}",
            source=wanted.source,
            target=wanted.target,
            created_at=0.0,
            approved=wanted.approved,
        )
    )
    return _left(move, wanted, index) if scenario.gone else move


def _left(move: MoveState, wanted: Assignment, index: int) -> MoveState:
    return replace(
        move,
        phase=MovePhase.LEAVING,
        reason=Word.TERMINATING,
        target=wanted.target,
        subject=Subject(str(wanted.application), "0", str(wanted.number)),
        timings=Timings(approved_at=PAST * TICK, leaving_at=index / 100.0 - TICK),
    )


def uid(application: int, number: int) -> str:
    return f"{application}-{number}"


def owner(scenario: Scenario, move: int) -> tuple[int, int]:
    wanted = scenario.assignments[move]
    return wanted.application, wanted.number


# What the operator sees


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
        deadline=(executor.since + 1) * TICK if executor.phase is Phase.LEAVING else None,
        exit_code=143 if executor.failed else None,
    )


_BEFORE = {SOURCE: 90.0, TARGET: 20.0, ELSEWHERE: 30.0}
_AFTER = {SOURCE: 60.0, TARGET: 50.0, ELSEWHERE: 50.0}


def facts(scenario: Scenario, world: World, index: int) -> Facts:
    move = world.moves[index]
    assert move is not None
    application, number = owner(scenario, index)
    mine = [executor for executor in world.executors if executor.application == application]
    rivals = (
        Rival.of(other)
        for i, other in enumerate(world.moves)
        if other is not None and i != index and owner(scenario, i)[0] == application
    )
    return Facts(
        executor=next((_pod(executor) for executor in mine if executor.number == number), None),
        newcomers=tuple(_pod(executor) for executor in mine if executor.number != number),
        rivals=tuple(rival for rival in rivals if rival is not None),
        clearance=_clearance(scenario, world, move),
        scores=_AFTER if world.evicted[index] else _BEFORE,
        eviction_refused="disruption budget" if world.refused[index] else "",
    )


def _clearance(scenario: Scenario, world: World, move: MoveState) -> Clearance:
    if move.phase is MovePhase.ARRIVING:
        return Clearance(destination=ELSEWHERE if world.full else None)
    if world.objected:
        return Clearance(refusal=Refusal("executor", Reason.DATA_SKEW))
    if move.phase not in (MovePhase.APPROVED, MovePhase.LEAVING):
        return Clearance()
    own = to_move(move, source_cpu_cores=1.0)
    known = (to_move(other, source_cpu_cores=1.0) for other in world.moves if other is not None and other is not move)
    objection = budget.objection(
        [other for other in known if other.phase is not MovePhase.PROPOSED and not _behind(other, own)],
        scenario.settings,
        topology=own.topology,
        source=own.source,
        target=own.target,
        now=now(world),
    )
    return Clearance(refusal=Refusal("executor", *objection) if objection else None)


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


# What happens


def events(scenario: Scenario, world: World) -> Iterator[tuple[str, World]]:
    """Everything that may happen next, and what the world is like afterwards."""
    yield "tick", _aged(_late(world))
    yield from _operator(scenario, world)
    late = _late(world)
    yield from _spark(scenario, late)
    yield from _kubelet(late)
    yield from _scheduler(late)
    yield from _people(scenario, late)


def _late(world: World) -> World:
    if world.before_last is not None:
        world = world._replace(before_last=None)
    if not any(world.planned):
        return world
    if world.lag >= LAG:
        return _idle(world)
    return world._replace(lag=world.lag + 1)


def _idle(world: World) -> World:
    return world._replace(planned=(None,) * len(world.planned), lag=0, seen=())


def forgotten(world: World) -> World:
    """The operator crashed and started anew: what it had read, planned and been told is gone."""
    return _idle(world)._replace(refused=(False,) * len(world.refused), before_last=None)


def _operator(scenario: Scenario, world: World) -> Iterator[tuple[str, World]]:
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
        yield from _proposals(scenario, world)


def look(scenario: Scenario, world: World) -> World:
    """The operator reads everything and makes up its mind about each move."""
    planned = tuple(_next_step(scenario, world, index) for index in range(len(world.moves)))
    seen = world.executors if any(planned) else ()
    return world._replace(planned=planned, lag=0, seen=seen, before_last=None)


def _next_step(scenario: Scenario, world: World, index: int) -> Step | None:
    move = world.moves[index]
    if move is None or move.phase.ended:
        return None
    step = advance(move, facts(scenario, world, index), scenario.settings, now(world))
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
    done = world._replace(planned=_put(world.planned, index, None), lag=world.lag + 1, before_last=None)
    if world.lag >= LAG or not any(done.planned):
        done = _idle(done)
    if world.moves[index] != step.before:  # the resourceVersion that was read is no longer the present one
        return done
    if step.effect is not None:
        after = effected(done, index, step.effect)
        return after._replace(before_last=world.executors if after.executors != world.executors else None)
    written = done._replace(moves=_put(done.moves, index, step.move))
    return written if step.look_anew else _going_on(scenario, written, index, seen=world.seen)


def _going_on(scenario: Scenario, world: World, index: int, *, seen: tuple[Executor, ...]) -> World:
    following = _next_step(scenario, world._replace(executors=seen), index)
    if following is None:
        return world
    return world._replace(planned=_put(world.planned, index, following), seen=seen)


def effected(world: World, index: int, effect: Effect) -> World:
    """The API server's answer to one request."""
    at = next((i for i, e in enumerate(world.executors) if uid(e.application, e.number) == effect.uid), None)
    if at is None:
        return world
    executor = world.executors[at]
    if isinstance(effect, Evict):
        return _evicted(world, index, at)
    if isinstance(effect, DeleteUnscheduled):
        if executor.phase is not Phase.PENDING or executor.node is not None:
            return world
        counts = tuple(n + (i == index) for i, n in enumerate(world.discarded))
        return world._replace(executors=_without(world.executors, at), discarded=counts)
    if executor.phase is not Phase.GATED:
        return world
    pin = effect.node if isinstance(effect, PinReplacement) else None
    assert isinstance(effect, PinReplacement | ReleaseUnpinned)
    released = executor._replace(phase=Phase.PENDING, pinned=pin, pinned_by=index if pin else None, since=0)
    return world._replace(executors=_put(world.executors, at, released))


def _evicted(world: World, index: int, at: int) -> World:
    executor = world.executors[at]
    if executor.phase is Phase.ENDED or executor.phase is Phase.LEAVING:
        return world
    if world.blocked:
        return world._replace(refused=_put(world.refused, index, True))
    leaving = executor._replace(phase=Phase.LEAVING, since=0)
    return world._replace(
        executors=_put(world.executors, at, leaving),
        evicted=_put(world.evicted, index, True),
        refused=_put(world.refused, index, False),
    )


def _proposals(scenario: Scenario, world: World) -> Iterator[tuple[str, World]]:
    """The planner proposes what the limits allow, and approves it at once."""
    known = [to_move(move, source_cpu_cores=1.0) for move in world.moves if move is not None]
    for index, move in enumerate(world.moves):
        if move is not None:
            continue
        new = _state(scenario, index)
        objection = budget.objection(
            known,
            scenario.settings,
            topology=new.orders.topology,
            source=new.orders.source,
            target=new.orders.target,
            now=now(world),
        )
        if objection is None:
            yield f"propose {index}", _late(world)._replace(moves=_put(world.moves, index, new))


def _spark(scenario: Scenario, world: World) -> Iterator[tuple[str, World]]:
    for application, allocator in enumerate(world.allocators):
        mine = [(i, e) for i, e in enumerate(world.executors) if e.application == application]
        counted = sum(executor.phase is not Phase.ENDED for _, executor in mine)
        if counted < allocator.target:
            phase = Phase.GATED if scenario.gated else Phase.PENDING
            new = Executor(application, allocator.created + 1, phase, None, 0)
            grown = allocator._replace(created=allocator.created + 1)
            yield (
                f"allocate {application}",
                world._replace(
                    executors=(*world.executors, new), allocators=_put(world.allocators, application, grown)
                ),
            )
        if counted < allocator.target and world.luck.absences:
            yield f"forgo {application}", _shrunk(world, application, "absences")
        for at, executor in mine:
            if executor.phase is Phase.ENDED:
                yield "delete ended", world._replace(executors=_without(world.executors, at))
            if executor.phase in (Phase.GATED, Phase.PENDING) and counted > allocator.target:
                yield "delete excess", world._replace(executors=_without(world.executors, at))
        if world.luck.shrinks and allocator.target > 0:
            yield f"shrink {application}", _shrunk(world, application, "shrinks")
            smaller = _shrunk(world, application, "shrinks")
            for at, executor in mine:
                if executor.phase is Phase.RUNNING:
                    yield f"shrink {application}, idle", smaller._replace(executors=_without(world.executors, at))


def _shrunk(world: World, application: int, cause: str) -> World:
    allocator = world.allocators[application]
    smaller = allocator._replace(target=allocator.target - 1)
    return world._replace(allocators=_put(world.allocators, application, smaller), luck=_spent(world.luck, cause))


def _kubelet(world: World) -> Iterator[tuple[str, World]]:
    for at, executor in enumerate(world.executors):
        if executor.phase is Phase.LEAVING:
            yield "exit 0", world._replace(executors=_without(world.executors, at))
            if world.luck.slow_exits and executor.since < 0:
                killed = executor._replace(phase=Phase.ENDED, failed=True, since=0)
                luck = _spent(world.luck, "slow_exits")
                yield "exit 143", world._replace(executors=_put(world.executors, at, killed), luck=luck)
        if executor.phase is Phase.PENDING and executor.node is not None:
            started = executor._replace(phase=Phase.RUNNING, since=0)
            yield "start", world._replace(executors=_put(world.executors, at, started))
        if executor.phase is Phase.RUNNING and world.luck.crashes:
            crashed = executor._replace(phase=Phase.ENDED, failed=True, since=0)
            luck = _spent(world.luck, "crashes")
            yield "executor crash", world._replace(executors=_put(world.executors, at, crashed), luck=luck)


def _scheduler(world: World) -> Iterator[tuple[str, World]]:
    for at, executor in enumerate(world.executors):
        if executor.phase is not Phase.PENDING or executor.node is not None:
            continue
        for node in (executor.pinned,) if executor.pinned else (SOURCE, TARGET):
            bound = executor._replace(node=node, since=0, unschedulable=False)
            yield f"bind to {node}", world._replace(executors=_put(world.executors, at, bound))
        if executor.pinned and not executor.unschedulable and world.luck.unschedulable:
            stuck = executor._replace(unschedulable=True, since=0)
            luck = _spent(world.luck, "unschedulable")
            yield "unschedulable", world._replace(executors=_put(world.executors, at, stuck), luck=luck)


def _people(scenario: Scenario, world: World) -> Iterator[tuple[str, World]]:
    """A user, other controllers, and Ballast's own fail-open release."""
    for index, move in enumerate(world.moves):
        if move is not None and move.phase is MovePhase.PROPOSED and not move.orders.approved:
            approved = replace(move, orders=replace(move.orders, approved=True))
            yield f"approve {index}", world._replace(moves=_put(world.moves, index, approved))
    if world.blocked:
        yield "unblock", world._replace(blocked=False)
    elif world.luck.blocks:
        yield "block", world._replace(blocked=True, luck=_spent(world.luck, "blocks"))
    if world.luck.objections and not world.objected:
        yield "object", world._replace(objected=True, luck=_spent(world.luck, "objections"))
    if world.luck.fillings and not world.full:
        yield "fill", world._replace(full=True, luck=_spent(world.luck, "fillings"))
    for at, executor in enumerate(world.executors):
        if executor.phase is Phase.GATED and executor.since < -1:
            freed = executor._replace(phase=Phase.PENDING, since=0)
            yield "gate timeout", world._replace(executors=_put(world.executors, at, freed))


# Time


def _aged(world: World) -> World:
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


def _spent(luck: Luck, cause: str) -> Luck:
    return luck._replace(**{cause: getattr(luck, cause) - 1})


def _put(items: tuple[T, ...], at: int, item: T) -> tuple[T, ...]:
    return (*items[:at], item, *items[at + 1 :])


def _without(items: tuple[T, ...], at: int) -> tuple[T, ...]:
    return (*items[:at], *items[at + 1 :])
