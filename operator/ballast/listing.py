"""Lists of names for people."""

from __future__ import annotations

from collections.abc import Iterable


def named(keys: Iterable[str], *, most: int) -> str:
    """So many of these, and how many there are more."""
    ranked = list(keys)
    more = f" and {len(ranked) - most} more" if len(ranked) > most else ""
    return ", ".join(ranked[:most]) + more
