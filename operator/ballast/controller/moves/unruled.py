"""A move that no policy answers for: nobody would ever say why nothing comes of it."""

from __future__ import annotations

from ballast.controller.moves.facts import Facts
from ballast.controller.moves.state import MoveState
from ballast.controller.moves.step import Situation, Step, enter
from ballast.controller.moves.word import Word
from ballast.model import MovePhase, MovesPolicy

PATIENCE_SECONDS = 60.0
"""A policy may be created after its moves, or be replaced by another."""


def turned_away(move: MoveState, now: float) -> Step | None:
    """Its end, if it has not begun and has waited long enough; None: it is left alone."""
    if move.phase not in (MovePhase.PROPOSED, MovePhase.APPROVED) or now - move.orders.created_at < PATIENCE_SECONDS:
        return None
    words = (
        f"{move.orders.source} is in no BalancingPolicy's pool: delete this move, and create one with from set to the "
        "node that the executor is on"
    )
    return enter(Situation(move, Facts(None), MovesPolicy(), now), MovePhase.REFUSED, Word.NO_POLICY, words)
