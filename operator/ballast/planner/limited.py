"""Whether it is the limits on moves that keep a pool from being level."""

from __future__ import annotations

from ballast.model import Plan, Refusal
from ballast.model.reason import LIMITS_ON_MOVES


def limited(plan: Plan) -> tuple[Refusal, ...]:
    """The executors of hot nodes that only stay because of a limit on moves; none while others are moved.

    A refusal of a node instead of an executor says that other moves of this pass come first.
    """
    if plan.moves:
        return ()
    return tuple(each for each in plan.refusals if each.reason in LIMITS_ON_MOVES and "/" in each.subject)
