"""What to look at next: keys that are dirty now, and keys that are due later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class Agenda:
    """Keys with the time at which each is due. Marking a key that is due earlier changes nothing.

    Safe to be marked from other threads; `wait` and `take` belong to one event loop.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: dict[str, float] = {}
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def mark(self, key: str, *, after_seconds: float = 0.0) -> None:
        """Have `key` looked at, now or after a delay."""
        at = self._clock() + after_seconds
        if at < self._due.get(key, float("inf")):
            self._due[key] = at
            self._wake()

    def take(self) -> list[str]:
        """The keys that are due, sorted; they are off the agenda until they are marked again."""
        now = self._clock()
        ready = sorted(key for key, at in self._due.items() if at <= now)
        for key in ready:
            del self._due[key]
        return ready

    async def wait(self) -> list[str]:
        """Wait until at least one key is due, and take those that are."""
        self._loop = asyncio.get_running_loop()
        while not (ready := self.take()):
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), self._pause())
            except TimeoutError:
                continue
        return ready

    def _pause(self) -> float | None:
        return max(0.0, min(self._due.values()) - self._clock()) if self._due else None

    def _wake(self) -> None:
        if self._loop is None:
            self._changed.set()
        else:
            self._loop.call_soon_threadsafe(self._changed.set)
