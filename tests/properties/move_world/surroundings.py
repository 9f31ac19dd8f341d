"""Everybody else: Spark, the kubelet, the scheduler, users and other controllers. Each lists what it may do next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ballast.model import MovePhase, Phase
from tests.properties.move_world.world import SOURCE, TARGET, Executor, Scenario, World, put, spent, without


def spark_events(scenario: Scenario, world: World) -> Iterator[tuple[str, World]]:
    for application, allocator in enumerate(world.allocators):
        mine = [(i, e) for i, e in enumerate(world.executors) if e.application == application]
        counted = sum(executor.phase is not Phase.ENDED for _, executor in mine)
        if counted < allocator.target:
            phase = Phase.GATED if scenario.gated else Phase.PENDING
            new = Executor(application, allocator.created + 1, phase, None, 0)
            grown = allocator._replace(created=allocator.created + 1)
            yield (
                f"allocate {application}",
                world._replace(executors=(*world.executors, new), allocators=put(world.allocators, application, grown)),
            )
        if counted < allocator.target and world.luck.absences:
            yield f"forgo {application}", _shrunk(world, application, "absences")
        for at, executor in mine:
            if executor.phase is Phase.ENDED:
                yield "delete ended", world._replace(executors=without(world.executors, at))
            if executor.phase in (Phase.GATED, Phase.PENDING) and counted > allocator.target:
                yield "delete excess", world._replace(executors=without(world.executors, at))
        if world.luck.shrinks and allocator.target > 0:
            yield f"shrink {application}", _shrunk(world, application, "shrinks")
            smaller = _shrunk(world, application, "shrinks")
            for at, executor in mine:
                if executor.phase is Phase.RUNNING:
                    yield f"shrink {application}, idle", smaller._replace(executors=without(world.executors, at))


def _shrunk(world: World, application: int, cause: str) -> World:
    allocator = world.allocators[application]
    smaller = allocator._replace(target=allocator.target - 1)
    return world._replace(allocators=put(world.allocators, application, smaller), luck=spent(world.luck, cause))


def kubelet_events(world: World) -> Iterator[tuple[str, World]]:
    for at, executor in enumerate(world.executors):
        if executor.phase is Phase.LEAVING:
            yield "exit 0", world._replace(executors=without(world.executors, at))
            if world.luck.slow_exits and executor.since < 0:
                killed = executor._replace(phase=Phase.ENDED, failed=True, since=0)
                luck = spent(world.luck, "slow_exits")
                yield "exit 143", world._replace(executors=put(world.executors, at, killed), luck=luck)
        if executor.phase is Phase.PENDING and executor.node is not None:
            started = executor._replace(phase=Phase.RUNNING, since=0)
            yield "start", world._replace(executors=put(world.executors, at, started))
        if executor.phase is Phase.RUNNING and world.luck.crashes:
            crashed = executor._replace(phase=Phase.ENDED, failed=True, since=0)
            luck = spent(world.luck, "crashes")
            yield "executor crash", world._replace(executors=put(world.executors, at, crashed), luck=luck)


def scheduler_events(world: World) -> Iterator[tuple[str, World]]:
    for at, executor in enumerate(world.executors):
        if executor.phase is not Phase.PENDING or executor.node is not None:
            continue
        for node in (executor.pinned,) if executor.pinned else (SOURCE, TARGET):
            bound = executor._replace(node=node, since=0, unschedulable=False, nominated=False)
            yield f"bind to {node}", world._replace(executors=put(world.executors, at, bound))
        if executor.pinned and world.luck.thefts:
            astray = executor._replace(node=SOURCE, since=0, unschedulable=False, nominated=False)
            luck = spent(world.luck, "thefts")
            yield "lose its place", world._replace(executors=put(world.executors, at, astray), luck=luck)
        if executor.pinned and not executor.unschedulable and world.luck.unschedulable:
            stuck = executor._replace(unschedulable=True, since=0)
            luck = spent(world.luck, "unschedulable")
            yield "unschedulable", world._replace(executors=put(world.executors, at, stuck), luck=luck)


def other_events(scenario: Scenario, world: World) -> Iterator[tuple[str, World]]:
    """A user, other controllers, and Ballast's own fail-open release."""
    for index, move in enumerate(world.moves):
        if move is not None and move.phase is MovePhase.PROPOSED and not move.orders.approved:
            approved = replace(move, orders=replace(move.orders, approved=True))
            yield f"approve {index}", world._replace(moves=put(world.moves, index, approved))
    if world.blocked:
        yield "unblock", world._replace(blocked=False)
    elif world.luck.blocks:
        yield "block", world._replace(blocked=True, luck=spent(world.luck, "blocks"))
    if world.luck.objections and not world.objected:
        yield "object", world._replace(objected=True, luck=spent(world.luck, "objections"))
    if world.luck.fillings and not world.full:
        yield "fill", world._replace(full=True, luck=spent(world.luck, "fillings"))
    if world.luck.switches and not world.off:
        yield "switch off", world._replace(off=True, luck=spent(world.luck, "switches"))
    for at, executor in enumerate(world.executors):
        if executor.phase is Phase.GATED and executor.since < -1:
            freed = executor._replace(phase=Phase.PENDING, since=0)
            yield "gate timeout", world._replace(executors=put(world.executors, at, freed))
