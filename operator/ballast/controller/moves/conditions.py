"""A move's conditions, as kstatus reads them, and one of its own."""

from __future__ import annotations

from dataclasses import dataclass

from ballast.controller.moves.state import MoveState
from ballast.model import MovePhase

WITHDRAWN = "Withdrawn"
"""No eviction is sent any more. Part of the durable state, not only for people."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """A condition without its times."""

    type: str
    holds: bool | None
    reason: str
    message: str


def conditions(move: MoveState) -> tuple[Aspect, ...]:
    """Ready always (unknown until the move has ended); Reconciling, Stalled and Withdrawn only while they hold."""
    reason, message = move.reason or MovePhase.PROPOSED, f"{move.phase}: {move.message}"
    ready = Aspect("Ready", _ready(move), reason, message)
    others = {
        "Reconciling": not move.phase.ended,
        "Stalled": move.phase is MovePhase.FAILED or move.phase is MovePhase.REFUSED,
        WITHDRAWN: move.withdrawn,
    }
    return (ready, *(Aspect(name, holds, reason, message) for name, holds in others.items() if holds))


def _ready(move: MoveState) -> bool | None:
    return move.phase is MovePhase.SUCCEEDED if move.phase.ended else None
