"""The state machine of one move.

    Proposed → Approved → Leaving → Arriving → Settling → Succeeded | Failed
        │          │          └ Refused, Failed  └ Succeeded, Failed
        └──────────┴ Expired, Refused

Level-triggered: every step is decided from what is there, never from what happened.
"""

from __future__ import annotations

from collections.abc import Callable

from ballast.controller.moves.arriving import arriving
from ballast.controller.moves.facts import Facts
from ballast.controller.moves.leaving import leaving
from ballast.controller.moves.settling import settling
from ballast.controller.moves.standing import approved, proposed
from ballast.controller.moves.state import MoveState
from ballast.controller.moves.step import Situation, Step, wait
from ballast.model import MovePhase, MovesPolicy

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
