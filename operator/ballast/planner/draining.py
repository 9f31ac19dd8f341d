"""From nodes that are about to go to the moves that empty them: each with a destination, as the arbiter says."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ballast.model import (
    Executor,
    Gap,
    MovesMode,
    Notice,
    Objection,
    PlannedMove,
    Policy,
    Reason,
    Refusal,
    Snapshot,
)
from ballast.moves.candidates import Candidates
from ballast.moves.drain import destinations, leavers
from ballast.moves.record import DRAIN
from ballast.planner.arbiter import Arbiter


@dataclass(frozen=True, slots=True)
class Draining:
    moves: tuple[PlannedMove, ...] = ()
    """Approved by the arbiter; each counts on those before it."""
    refusals: tuple[Refusal, ...] = ()


def drain(
    snapshot: Snapshot,
    policy: Policy,
    *,
    candidates: Candidates,
    scores: Mapping[str, float],
    arbiter: Arbiter,
    now: float,
) -> Draining:
    """What should leave nodes that are about to go. `scores`: projected, percent; may be empty.

    A pass that finds no destination for an executor tries no other one that is alike.
    """
    if policy.moves.mode is MovesMode.DISABLED:
        return Draining()
    under_way = {(move.namespace, move.executor_uid) for move in snapshot.moves if not move.phase.ended}
    leaving = [each for each in leavers(snapshot, policy, now) if (each[0].namespace, each[0].uid) not in under_way]
    if not leaving:
        return Draining()
    found = destinations(candidates, snapshot, policy, scores)
    arriving: dict[str, list[str]] = defaultdict(list)
    moves: list[PlannedMove] = []
    refusals: list[Refusal] = []
    hopeless: set[Hashable] = set()
    for index, (executor, notice) in enumerate(leaving):
        if (full := arbiter.on_drains()) is not None:
            refusals += _waiting(leaving[index:], full)
            break
        objection = next(candidates.drain_objections(executor), None) or arbiter.on_leaver(executor)
        if objection is not None:
            refusals.append(Refusal(executor.key, *objection))
            continue
        shape = _shape(executor)
        target = None if shape in hopeless else found.best(executor, arriving)
        if target is None:
            hopeless.add(shape)
            words = f"{executor.node} is about to go ({notice.taint}), and no node takes it"
            refusals.append(Refusal(executor.key, Reason.NO_DESTINATION, words))
            continue
        move = _planned(executor, target, notice, candidates, scores)
        if (ruled := arbiter.ruling(move)) is not None:
            refusals.append(Refusal(executor.key, *ruled, target))
            continue
        arriving[target].append(executor.key)
        moves.append(move)
    return Draining(tuple(moves), tuple(refusals))


def _waiting(leaving: Iterable[tuple[Executor, Notice]], full: Objection) -> Iterator[Refusal]:
    """One a node: there may be thousands of executors on them."""
    counts = Counter(executor.node or "" for executor, _ in leaving)
    for node, count in sorted(counts.items()):
        yield Refusal(node, full[0], f"{count} executors wait: {full[1]}")


def _shape(executor: Executor) -> Hashable:
    """What a destination depends on."""
    return (
        executor.topology,
        executor.component,
        executor.requests,
        executor.constraints,
        executor.pinned,
        executor.node,
    )


def _planned(
    executor: Executor, target: str, notice: Notice, candidates: Candidates, scores: Mapping[str, float]
) -> PlannedMove:
    way = candidates.way(executor, target, scores)
    scored = way.before is not None and way.after is not None
    before, after = way.before or Gap(0.0, 0.0), way.after or Gap(0.0, 0.0)
    return PlannedMove(
        executor=executor.key,
        uid=executor.uid,
        topology=executor.topology,
        component=executor.component,
        source=way.source,
        target=target,
        strategy=DRAIN,
        hot_score=before.hot,
        cold_score=before.cold,
        hot_after=after.hot,
        cold_after=after.cold,
        gain=before.narrowed(after),
        hits=0,
        load_cores=candidates.load_cores(executor),
        locality_delta_ratio=way.locality_delta_ratio,
        slowness=candidates.slowness(executor),
        pressure_ratio=candidates.pressure_ratio(way.source),
        taint=notice.taint,
        scored=scored,
    )
