"""How busy the whole machine is: a node's usage means something only while there is CPU left for all of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

_STAT = Path("/proc/stat")
_IDLE_FIELDS = (3, 4)
_STEAL_FIELD = 7


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """Shares of all cores over some time."""

    busy_percent: float
    stolen_percent: float = 0.0
    """Part of the busy share: what the machine's host, where it is a virtual one, gave to others meanwhile."""

    def __str__(self) -> str:
        told = f"{self.busy_percent:.0f} % busy"
        return f"{told} ({self.stolen_percent:.0f} % stolen by its host)" if self.stolen_percent >= 1 else told


@dataclass(frozen=True, slots=True)
class _Ticks:
    at: float
    busy: float
    stolen: float
    total: float


@dataclass(slots=True)
class Machine:
    """The share of all cores in use over the last `window_seconds`, from the kernel's own figures."""

    window_seconds: float = 15.0
    clock: Callable[[], float] = time.monotonic
    stat: Path = _STAT
    _history: deque[_Ticks] = field(default_factory=deque)
    _forget: bool = False

    def look(self) -> Use | None:
        """Since `window_seconds` ago; None until that long has passed."""
        if self._forget:
            self._history.clear()
            self._forget = False
        now = self._ticks()
        self._history.append(now)
        while len(self._history) > 1 and self._history[1].at <= now.at - self.window_seconds:
            self._history.popleft()
        first = self._history[0]
        if now.at - first.at < self.window_seconds:
            return None
        total = now.total - first.total
        if total <= 0:
            return None
        return Use(100.0 * (now.busy - first.busy) / total, 100.0 * (now.stolen - first.stolen) / total)

    def forget(self) -> None:
        """Start a new window with the next look: what was before does not count. Safe from another thread."""
        self._forget = True

    def _ticks(self) -> _Ticks:
        fields = [float(text) for text in self.stat.read_text().splitlines()[0].split()[1:9]]
        total = sum(fields)
        idle = sum(fields[index] for index in _IDLE_FIELDS)
        return _Ticks(self.clock(), total - idle, fields[_STEAL_FIELD], total)
