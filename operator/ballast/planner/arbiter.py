"""The one place that decides: strategies suggest, the arbiter approves or refuses with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ballast.model import Move, MovePhase, PlannedMove, Policy, Reason, Refusal, Snapshot
from ballast.planner import budget


@dataclass(frozen=True, slots=True)
class Ruling:
    approved: tuple[PlannedMove, ...]
    refused: tuple[Refusal, ...]


def rule(suggested: Sequence[PlannedMove], snapshot: Snapshot, policy: Policy, now: float) -> Ruling:
    """Go through suggestions in their order; each one that is approved counts against those after it."""
    paused = budget.paused_topologies(snapshot.moves, policy.moves)
    moves = list(snapshot.moves)
    approved: list[PlannedMove] = []
    refused: list[Refusal] = []
    for suggestion in suggested:
        objection = _objection(suggestion, moves, policy, paused=paused, now=now)
        if objection is None:
            approved.append(suggestion)
            moves.append(_as_started(suggestion, now))
        else:
            refused.append(Refusal(suggestion.executor, objection[0], objection[1], suggestion.target))
    return Ruling(tuple(approved), tuple(refused))


def _objection(
    move: PlannedMove, moves: Sequence[Move], policy: Policy, *, paused: frozenset[str], now: float
) -> budget.Objection | None:
    return (
        _sense(move, policy)
        or _standing(move, moves, policy, paused=paused, now=now)
        or budget.objection(
            moves, policy.moves, topology=move.topology, source=move.source, target=move.target, now=now
        )
    )


def _sense(move: PlannedMove, policy: Policy) -> budget.Objection | None:
    """Whether the move is worth it, by its own figures."""
    if move.target == move.source:
        return Reason.NO_DESTINATION, "source and destination are the same node"
    if move.hot_after < move.cold_after:
        return Reason.OVERSHOOT, f"{move.target} would end at {move.cold_after:.1f}, above {move.hot_after:.1f}"
    if move.gain < policy.moves.min_gain:
        return Reason.MIN_GAIN, f"the gap narrows by {move.gain:.1f} points, minGain is {policy.moves.min_gain:g}"
    if move.locality_delta_ratio > policy.moves.max_locality_loss:
        return (
            Reason.LOCALITY_LOSS,
            f"locality gets {move.locality_delta_ratio:.1%} dearer, over {policy.moves.max_locality_loss:.1%}",
        )
    return None


def _standing(
    move: PlannedMove, moves: Sequence[Move], policy: Policy, *, paused: frozenset[str], now: float
) -> budget.Objection | None:
    """Whether something that happened before forbids it."""
    if move.topology in paused:
        return Reason.PAUSED, f"moves of {move.topology} are paused"
    if any(other.executor_uid == move.uid and not other.phase.ended for other in moves):
        return Reason.IN_FLIGHT, "a move of this executor is already under way"
    for other in moves:
        recent = other.ended_at is None or now - other.ended_at < policy.moves.cooldown_seconds
        opposite = other.source == move.target and other.target == move.source
        if recent and opposite and budget.left(other) and other.component == move.component:
            return Reason.REVERSE, f"{other.name} has just moved {other.component} the other way"
    return None


def _as_started(move: PlannedMove, now: float) -> Move:
    return Move(
        name=f"suggested:{move.executor}",
        namespace=move.namespace,
        topology=move.topology,
        component=move.component,
        executor_uid=move.uid,
        executor_name=move.executor,
        source=move.source,
        target=move.target,
        phase=MovePhase.APPROVED,
        started_at=now,
        load_cores=move.load_cores,
    )
