"""The condition that limits on moves keep a pool, or a topology, from being level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ballast.controller.status.outlook import Verdict
from ballast.model import MovesPolicy, Reason, Refusal

_NAMED = 3
"""The most limits in one message."""


def moves_limited(refusals: Sequence[Refusal], moves: MovesPolicy) -> Verdict | None:
    """By the limit that keeps the most executors; the message has its figures, and the field to change."""
    if not refusals:
        return None
    ranked = sorted(Counter((each.reason, _figures(each, moves)) for each in refusals).items(), key=_most_first)
    words = "; ".join(f"{count} by {reason} ({figures})" for (reason, figures), count in ranked[:_NAMED])
    more = f" and {len(ranked) - _NAMED} more limits" if len(ranked) > _NAMED else ""
    message = f"limits on moves keep executors on hot nodes: {words}{more}; {_remedy(ranked[0][0][0])}, or wait"
    return Verdict(True, ranked[0][0][0], message)


def _most_first(ranked: tuple[tuple[Reason, str], int]) -> tuple[int, Reason, str]:
    (reason, figures), count = ranked
    return -count, reason, figures


def _figures(refusal: Refusal, moves: MovesPolicy) -> str:
    """What stays as it is while the limit holds: a countdown would write the status in each pass."""
    if refusal.reason is Reason.COOLDOWN:
        return f"moves.cooldown is {moves.cooldown_seconds:.0f} s"
    return refusal.detail


def _remedy(reason: Reason) -> str:
    if reason is Reason.COOLDOWN:
        return "shorten moves.cooldown"
    if reason is Reason.BUDGET:
        return "raise moves or percent of that budget"
    return "raise that field"
