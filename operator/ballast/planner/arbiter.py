"""The one place that decides: strategies suggest, the arbiter approves or refuses with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ballast.model import (
    Exit,
    Move,
    MovePhase,
    MovesMode,
    PlacementMode,
    PlannedMove,
    Policy,
    Reason,
    Refusal,
    Snapshot,
)
from ballast.planner import budget
from ballast.planner.rest import Rest


@dataclass(frozen=True, slots=True)
class Ruling:
    approved: tuple[PlannedMove, ...]
    refused: tuple[Refusal, ...]


def rule(suggested: Sequence[PlannedMove], snapshot: Snapshot, policy: Policy, *, resting: Rest, now: float) -> Ruling:
    """Go through suggestions in their order; each one that is approved counts against those after it."""
    moves = list(snapshot.moves)
    approved: list[PlannedMove] = []
    refused: list[Refusal] = []
    for suggestion in suggested:
        objection = _objection(suggestion, moves, policy, resting=resting, now=now)
        if objection is None:
            approved.append(suggestion)
            moves.append(as_started(suggestion, now))
        else:
            refused.append(Refusal(suggestion.executor, objection[0], objection[1], suggestion.target))
    return Ruling(tuple(approved), tuple(refused))


def _objection(
    move: PlannedMove, moves: Sequence[Move], policy: Policy, *, resting: Rest, now: float
) -> budget.Objection | None:
    return (
        resting.executors.get(move.uid)
        or unheld(policy)
        or _agentless(policy)
        or _sense(move, policy)
        or resting.of_topology(move.topology)
        or budget.precedent(
            moves,
            policy.moves,
            executor_uid=move.uid,
            component=move.component,
            source=move.source,
            target=move.target,
            now=now,
        )
        or budget.objection(
            moves, policy.moves, topology=move.topology, source=move.source, target=move.target, now=now
        )
    )


def unheld(policy: Policy) -> budget.Objection | None:
    """Whether a replacement would go wherever kube-scheduler likes: only where placement is enforced is it held."""
    acting = policy.moves.mode in (MovesMode.APPROVE, MovesMode.ENFORCE)
    if acting and policy.placement.mode is not PlacementMode.ENFORCE:
        return Reason.NOT_ENFORCED, "its replacement would not be held for its destination: set placement.mode: Enforce"
    return None


def _agentless(policy: Policy) -> budget.Objection | None:
    """Whether every move would be refused as soon as it were made."""
    if policy.moves.exit is Exit.AGENT and policy.moves.mode in (MovesMode.APPROVE, MovesMode.ENFORCE):
        return Reason.NO_AGENT, "moves.exit is Agent, and there is no agent yet: set moves.exit: Evict"
    return None


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


def as_started(move: PlannedMove, now: float) -> Move:
    """As it stands once it is let go: what a later suggestion, or a later pass, has to reckon with."""
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
