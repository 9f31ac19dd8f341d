"""The state machine of one move.

    Proposed → Approved → Leaving → Arriving → Settling → Succeeded | Failed
        │          │          └ Refused, Failed  └ Succeeded, Failed
        └──────────┴ Expired, Refused

Level-triggered: every step is decided from what is there, never from what happened.
"""

from __future__ import annotations

from collections.abc import Callable

from ballast.model import MovePhase, MovesPolicy
from ballast.moves.arriving import arriving
from ballast.moves.judgment import settling
from ballast.moves.leaving import approved, leaving, proposed
from ballast.moves.state import MoveReason, MoveState
from ballast.moves.step import Facts, Situation, Step, enter, wait

PATIENCE_SECONDS = 60.0
"""A policy may be created after its moves, or be replaced by another."""

_PHASES: dict[MovePhase, Callable[[Situation], Step]] = {
    MovePhase.PROPOSED: proposed,
    MovePhase.APPROVED: approved,
    MovePhase.LEAVING: leaving,
    MovePhase.ARRIVING: arriving,
    MovePhase.SETTLING: settling,
}


def advance(move: MoveState, facts: Facts, settings: MovesPolicy, now: float) -> Step:
    """The next step of `move`; `now` in seconds since the epoch. An ended move stays as it is."""
    at = Situation(move, facts, settings, now)
    handle = _PHASES.get(move.phase)
    return handle(at) if handle else wait(at)


def turned_away(move: MoveState, now: float) -> Step | None:
    """Refuse an orphaned move (its policy is gone) that has not begun and has waited long enough."""
    if move.phase not in (MovePhase.PROPOSED, MovePhase.APPROVED) or now - move.orders.created_at < PATIENCE_SECONDS:
        return None
    words = (
        f"{move.orders.source} is in no BalancingPolicy's pool: delete this move, and create one with from set to the "
        "node that the executor is on"
    )
    return enter(Situation(move, Facts(None), MovesPolicy(), now), MovePhase.REFUSED, MoveReason.NO_POLICY, words)
