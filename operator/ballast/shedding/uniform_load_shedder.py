"""UniformLoadShedder: compares the busiest node with the idlest by records, then by bytes per second.

Source: Pulsar's `UniformLoadShedder`. It looks at traffic alone, so unequal machines end up unequally used; it names
no destination and keeps nothing from pass to pass. The idlest is one that something may be sent to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import floor, trunc

from ballast.shedding.load import NodeLoad, PoolLoad, Size, Suggestion, largest_first, rate, volume

_LARGEST_INT = 2**31 - 1
_ALMOST_NOTHING = 1e-6


@dataclass(frozen=True, slots=True)
class UniformSettings:
    rate_difference_percent: float = 50.0
    """Busiest above idlest in records per second, percent of the idlest; 0 = not compared."""
    bytes_ratio: float = 4.0
    """Busiest over idlest in bytes per second; 0 = not compared."""
    max_unload_ratio: float = 0.2
    """Of the difference."""
    min_rate_per_second: float = 1000.0
    min_bytes_per_second: float = 1024.0 * 1024.0
    max_executors: int | None = None
    """At most so many in one pass."""
    whole_numbers: bool = False
    """As Pulsar: the idlest starts at 2³¹−1, the need is cut to such a whole number, what leaves is counted in whole
    units, and executors without traffic always fit."""
    rate_only: bool = False
    """As Pulsar: if records differ too much but no executor can be moved, bytes are not considered."""


@dataclass(frozen=True, slots=True)
class _Extremes:
    busiest: NodeLoad
    most: float
    least: float


def uniform_load_shedder(load: PoolLoad, settings: UniformSettings) -> tuple[Suggestion, ...]:
    """Suggestions of one pass, without destinations; records have priority over bytes."""
    if not any(node.receives for node in load.nodes):
        return ()
    by_rate = _extremes(load, lambda node: node.rate_per_second, settings)
    by_bytes = _extremes(load, lambda node: node.bytes_per_second, settings)
    percent = (by_rate.most - by_rate.least) * 100 / by_rate.least
    if 0 < settings.rate_difference_percent < percent:
        made = tuple(_shed(by_rate, settings, least_need=settings.min_rate_per_second, size=rate))
        if made or settings.rate_only:
            return made
    if 0 < settings.bytes_ratio < by_bytes.most / by_bytes.least:
        return tuple(_shed(by_bytes, settings, least_need=settings.min_bytes_per_second, size=volume))
    return ()


def _extremes(load: PoolLoad, figure: Callable[[NodeLoad], float], settings: UniformSettings) -> _Extremes:
    busiest = max(load.nodes, key=figure)
    least = min(figure(node) for node in load.nodes if node.receives)
    if settings.whole_numbers:
        least = min(least, float(_LARGEST_INT))
    return _Extremes(busiest, figure(busiest), 1.0 if abs(least) <= _ALMOST_NOTHING else least)


def _shed(extremes: _Extremes, settings: UniformSettings, *, least_need: float, size: Size) -> Iterator[Suggestion]:
    need = (extremes.most - extremes.least) * settings.max_unload_ratio
    if settings.whole_numbers:
        need = float(min(trunc(need), _LARGEST_INT))
    node = extremes.busiest
    if need < least_need or len(node.executors) <= 1:
        return
    taken = 0
    for executor in largest_first(node, size):
        if settings.max_executors is not None and taken >= settings.max_executors:
            return
        if size(executor) > need or (size(executor) <= 0 and not settings.whole_numbers):
            continue
        need -= floor(size(executor)) if settings.whole_numbers else size(executor)
        taken += 1
        yield Suggestion(executor=executor.name, source=node.name, target=None, hot_score=node.score)
