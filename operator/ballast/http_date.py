"""What the header Date of an HTTP answer, or another stamp, says about the clock of the server that gave it."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

_RESOLUTION_SECONDS = 1.0
"""Date has whole seconds, rounded down (RFC 9110, section 5.6.7)."""


def ahead_seconds(date: str | None, *, asked_at: float, answered_at: float) -> float | None:
    """By how much the server's clock is ahead of ours, at least; negative if it is behind, 0 if both may agree.

    `asked_at`, `answered_at`: between these times of our clock the server wrote the header. None: it says nothing.
    """
    try:
        at = parsedate_to_datetime(date or "").timestamp()
    except (ValueError, OverflowError):
        return None
    return stamp_ahead_seconds(at, asked_at=asked_at, answered_at=answered_at)


def stamp_ahead_seconds(at: float, *, asked_at: float, answered_at: float) -> float:
    """The same of any stamp of the server's that was rounded down to a second."""
    if at > answered_at:
        return at - answered_at
    return min(0.0, at + _RESOLUTION_SECONDS - asked_at)
