"""What goes from a hot node to a cold one, and what comes back where nothing small enough is left to go.

Source: the inner loop of Pulsar's `TransferShedder`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ballast.shedding.transfer_pool import Allowed, TopExecutor

_RELIEF_RATIO = 0.75
"""A swap must bring the hot node below this share of its bytes."""


@dataclass(frozen=True, slots=True)
class Side:
    name: str
    bytes_per_second: float
    top: tuple[TopExecutor, ...]
    """Idlest first."""


@dataclass(slots=True)
class Exchange:
    there: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    given: float = 0.0
    """Bytes per second that leave the hot node."""
    gained: float = 0.0
    """Bytes per second that come back and count."""


@dataclass(frozen=True, slots=True)
class SwapRules:
    wanted: float
    """Bytes per second that should leave on balance."""
    swaps: bool
    ignore_gains: bool
    anything_back: bool

    def exchange(self, hot: Side, cold: Side, allowed: Allowed) -> Exchange:
        """Executors of the hot node, idlest first, until `wanted` is reached; its last one stays."""
        return _Deal(self, hot, cold, allowed, returning=iter(cold.top)).made()


@dataclass(slots=True)
class _Deal:
    rules: SwapRules
    hot: Side
    cold: Side
    allowed: Allowed
    returning: Iterator[TopExecutor]
    done: Exchange = field(default_factory=Exchange)

    def made(self) -> Exchange:
        remaining = len(self.hot.top)
        for executor in self.hot.top:
            if not (executor.owned and executor.movable and self._may_go(executor)):
                continue
            if remaining <= 1:
                break
            volume = executor.bytes_per_second
            if volume == 0:
                continue
            if self._balance() + volume > self.rules.wanted and not self._swapped(volume):
                break
            self.done.there.append(executor.name)
            self.done.given += volume
            remaining -= 1
        return self.done

    def _balance(self) -> float:
        return self.done.given - self.done.gained

    def _may_go(self, executor: TopExecutor) -> bool:
        return self.allowed(executor.name, self.hot.name, self.cold.name)

    def _swapped(self, volume: float) -> bool:
        """Whether enough can come back for `volume` to go; if so it is noted."""
        back = self._back(volume) if self.rules.swaps else None
        if back is None:
            return False
        self.done.back += [each.name for each in back]
        if not self.rules.ignore_gains:
            for each in back:
                self.done.gained += each.bytes_per_second
        return True

    def _back(self, volume: float) -> list[TopExecutor] | None:
        """What must come back so that both nodes end below the hot one's bytes; None when nothing does."""
        limit = self.hot.bytes_per_second
        found: list[TopExecutor] = []
        hot_after = limit - self.done.given + self.done.gained - volume
        cold_after = self.cold.bytes_per_second + self.done.given - self.done.gained + volume
        for executor in self._candidates():
            size = executor.bytes_per_second
            if hot_after + size >= limit or cold_after - size >= limit:
                continue
            found.append(executor)
            hot_after, cold_after = hot_after + size, cold_after - size
            if cold_after <= hot_after < limit * _RELIEF_RATIO:
                return found
        return None

    def _candidates(self) -> Iterator[TopExecutor]:
        offered = self.returning if self.rules.anything_back else iter(self.cold.top)
        for executor in offered:
            fit = executor.owned and executor.movable and executor.name not in self.done.back
            if executor.bytes_per_second == 0 or not (fit or self.rules.anything_back):
                continue
            if self.allowed(executor.name, self.cold.name, self.hot.name):
                yield executor
