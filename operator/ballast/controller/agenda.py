"""When the next round is due: at once, or later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable


class Agenda:
    """The time at which the next round is due. Marking it later than it is due already changes nothing.

    Belongs to one event loop.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = float("inf")
        self._rested = -float("inf")
        self._changed = asyncio.Event()

    def mark(self, *, after_seconds: float = 0.0) -> None:
        """Have a round, now or after a delay."""
        at = self._clock() + after_seconds
        if at < self._due:
            self._due = at
            self._changed.set()

    def rest(self, seconds: float) -> None:
        """Have no round before so many seconds are over, whatever is marked."""
        self._rested = self._clock() + seconds

    def take(self) -> bool:
        """Whether a round is due; if so it is off the agenda until it is marked again."""
        due = max(self._due, self._rested) <= self._clock()
        if due:
            self._due = float("inf")
        return due

    async def wait(self) -> None:
        """Wait until a round is due, and take it."""
        while not self.take():
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), self._pause())
            except TimeoutError:
                continue

    def _pause(self) -> float | None:
        return max(0.0, self._due - self._clock(), self._rested - self._clock()) if self._due < float("inf") else None


def earliest(times: Iterable[float | None]) -> float | None:
    """The first of those that there are; None where there is none."""
    return min((at for at in times if at is not None), default=None)
