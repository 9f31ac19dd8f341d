"""What is left alone for a while, and for twice as long where it comes up again soon after."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Term:
    until: float
    seconds: float


class Backoff:
    """Keys that are left alone. Times are monotonic seconds."""

    def __init__(self, *, first_seconds: float, longest_seconds: float) -> None:
        self._first_seconds, self._longest_seconds = first_seconds, longest_seconds
        self._terms: dict[str, _Term] = {}

    def add(self, key: str, now: float) -> None:
        """Leave `key` alone from now on, for twice as long if its last term is over for no longer than it was."""
        before = self._terms.get(key)
        seconds = self._first_seconds
        if before is not None and now < before.until:
            seconds = before.seconds
        elif before is not None and now < before.until + before.seconds:
            seconds = min(2.0 * before.seconds, self._longest_seconds)
        self._terms[key] = _Term(now + seconds, seconds)

    def keys(self, now: float) -> frozenset[str]:
        """Those that are left alone now."""
        self._terms = {key: term for key, term in self._terms.items() if now < term.until + term.seconds}
        return frozenset(key for key, term in self._terms.items() if now < term.until)
