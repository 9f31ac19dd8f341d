"""What TransferShedder looks at: nodes with smoothed load, and each one's report of its busiest executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import floor


@dataclass(frozen=True, slots=True)
class TopExecutor:
    name: str
    bytes_per_second: float
    """Bytes in and out; one without any is never moved."""
    movable: bool = True
    """False: moved recently, or of a kind that is not moved."""
    owned: bool = True
    """False: it has left the node since the report."""


@dataclass(frozen=True, slots=True)
class TransferNode:
    name: str
    score: float
    """Largest weighted resource usage now, percent of its own capacity."""
    bytes_per_second: float
    """Bytes in and out now."""
    reported: bool = True
    """False: nothing new since the last pass; the averages stay."""
    stored: bool = True
    """False: its values are not to be had."""
    age_seconds: float = 0.0
    """Age of its values."""
    since_unload_seconds: float | None = None
    """From its last unload to its values; None when it was not unloaded recently."""
    top: tuple[TopExecutor, ...] = ()
    """Its busiest executors, idlest first."""
    receives: bool = True
    """False: nothing new may be sent there; it takes part while it is above the mean of the others, to give."""


@dataclass(frozen=True, slots=True)
class TransferPool:
    """One moment of a pool. Where values tie, the node that stands first wins."""

    nodes: tuple[TransferNode, ...]
    registered: frozenset[str]
    """Nodes that are alive; one of them without metrics stops the pass."""
    silent: frozenset[str] = frozenset()
    """Others that have no metrics now and take no part: their averages stay as they are."""


Allowed = Callable[[str, str, str], bool]
"""Whether an executor may go from one node to another: `(executor, source, target)`."""


@dataclass(frozen=True, slots=True)
class Average:
    """One node's moving averages. Plain values, fit for JSON."""

    load_ratio: float
    bytes_per_second: float


_UNREPORTED = Average(1.0, 0.0)
"""As Pulsar: a node that has not reported yet counts as full, so that nothing is sent to it."""


def smoothed(pool: TransferPool, before: dict[str, Average], history_ratio: float) -> dict[str, Average]:
    """The averages with this pass added; a node that left loses its own."""
    found = {name: before[name] for name in pool.silent if name in before}
    for node in pool.nodes:
        old = before.get(node.name)
        if not node.reported:
            found[node.name] = old or _UNREPORTED
            continue
        load, volume = node.score / 100, node.bytes_per_second
        if old is not None:
            load = old.load_ratio * history_ratio + (1 - history_ratio) * load
            volume = old.bytes_per_second * history_ratio + (1 - history_ratio) * volume
        found[node.name] = Average(load, volume)
    return found


# The busiest executors of a node, idlest first: what a node reports to TransferShedder.
#
# Source: Pulsar's `TopKBundles` and the order of its `NamespaceBundleStats`. The values are compared one after the
# other, in coarse steps, so that small differences do not reorder the report.

_BYTES_STEP = 1e5
_RATE_STEP = 100.0
_CONNECTIONS_STEP = 500
_CACHE_STEP = 100_000


@dataclass(frozen=True, slots=True)
class Activity:
    name: str
    bytes_in_per_second: float
    bytes_out_per_second: float
    rate_per_second: float
    """Records in and out."""
    connections: int = 0
    """Topics, producers and consumers."""
    cache_bytes: int = 0


def top_executors(activities: Iterable[Activity], *, most: int, inbound_first: bool = False) -> tuple[str, ...]:
    """The names of the `most` busiest, idlest first; those that move no bytes are left out.

    Busiest by bytes in and out; with `inbound_first` by bytes in, then by bytes out, as Pulsar has it.
    """
    busy = [activity for activity in activities if activity.bytes_in_per_second + activity.bytes_out_per_second > 0]
    busiest = sorted(busy, key=_inbound if inbound_first else _total, reverse=True)[:most]
    return tuple(activity.name for activity in reversed(busiest))


def _total(activity: Activity) -> tuple[int, ...]:
    return (_steps(activity.bytes_in_per_second + activity.bytes_out_per_second, _BYTES_STEP), *_other(activity))


def _inbound(activity: Activity) -> tuple[int, ...]:
    inbound, outbound = activity.bytes_in_per_second, activity.bytes_out_per_second
    return (_steps(inbound, _BYTES_STEP), _steps(outbound, _BYTES_STEP), *_other(activity))


def _other(activity: Activity) -> tuple[int, ...]:
    return (
        _steps(activity.rate_per_second, _RATE_STEP),
        activity.connections // _CONNECTIONS_STEP,
        activity.cache_bytes // _CACHE_STEP,
    )


def _steps(value: float, step: float) -> int:
    return floor(value / step + 0.5)


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
