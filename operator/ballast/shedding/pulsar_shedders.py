"""Pulsar's shedders that look at usage or traffic alone: they name executors to unload, AvgShedder destinations too.

For pools that already work with them. TransferShedder and the AvgShedder that levels measured usage have their own
modules.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import floor, trunc

from ballast.model.shedders import OverloadSettings, ThresholdSettings, TrafficSettings, UniformSettings
from ballast.shedding.load import (
    ExecutorLoad,
    NodeLoad,
    PoolLoad,
    Size,
    Suggestion,
    filling,
    largest_first,
    rate,
    reaching,
    volume,
)

# ThresholdShedder: unloads nodes whose smoothed usage is above the pool's mean by a threshold.
#
# It looks back through a moving average, so it may unload too much. The mean is that of the nodes among which load is
# spread: a node that nothing may be sent to has no part in it.

_MARGIN_RATIO = 0.05
_LOWER_BOUNDARY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Averages:
    """Smoothed usage by node as a ratio, sorted by name. Plain values, fit for JSON."""

    by_node: tuple[tuple[str, float], ...] = ()

    def within(self, nodes: Container[str]) -> Averages:
        """Without the nodes that have left."""
        return Averages(tuple((name, usage) for name, usage in self.by_node if name in nodes))


@dataclass(frozen=True, slots=True)
class ThresholdResult:
    suggestions: tuple[Suggestion, ...]
    memory: Averages


def threshold_shedder(load: PoolLoad, settings: ThresholdSettings, memory: Averages) -> ThresholdResult:
    """Suggestions of one pass, without destinations."""
    history = dict(memory.by_node)
    usage = smoothed(load, history, settings.history_ratio)
    mean = _mean(load, usage)
    suggestions: list[Suggestion] = []
    if mean > 0:
        suggestions += _above_mean(load, usage, mean, settings)
        if not suggestions and settings.lower_boundary:
            if settings.average_twice:
                usage = smoothed(load, usage, settings.history_ratio)
                mean = _mean(load, usage)
            suggestions += _below_lower_boundary(load, usage, mean, settings)
    remembered = history | usage if settings.keep_departed else usage
    return ThresholdResult(tuple(suggestions), Averages(tuple(sorted(remembered.items()))))


def smoothed(load: PoolLoad, history: Mapping[str, float], history_ratio: float) -> dict[str, float]:
    """The moving average of each node's usage ratio, with this pass added, in the pool's order."""
    found: dict[str, float] = {}
    for node in load.nodes:
        now = node.score / 100
        before = history.get(node.name)
        found[node.name] = now if before is None else before * history_ratio + (1 - history_ratio) * now
    return found


def _mean(load: PoolLoad, usage: Mapping[str, float]) -> float:
    total, count = 0.0, 0
    for node in load.nodes:
        if node.receives:
            total, count = total + usage[node.name], count + 1
    return total / count if count else 0.0


def _above_mean(
    load: PoolLoad, usage: Mapping[str, float], mean: float, settings: ThresholdSettings
) -> Iterator[Suggestion]:
    threshold = settings.threshold / 100
    for node in load.nodes:
        if usage[node.name] < mean + threshold:
            continue
        need = node.bytes_per_second * (usage[node.name] - mean - threshold + _MARGIN_RATIO)
        if need >= settings.min_bytes_per_second:
            yield from _bring_to_mean(node, need, mean, idle_too=settings.idle_too)


def _below_lower_boundary(
    load: PoolLoad, usage: Mapping[str, float], mean: float, settings: ThresholdSettings
) -> Iterator[Suggestion]:
    threshold = settings.threshold / 100
    boundary = mean - threshold
    hottest = _hottest(load, usage, above=boundary)
    if hottest is None or all(usage[node.name] >= boundary for node in load.nodes if node.receives):
        return
    need = hottest.bytes_per_second * threshold * _LOWER_BOUNDARY_SHARE
    if need >= settings.min_bytes_per_second:
        yield from _bring_to_mean(hottest, need, mean, idle_too=settings.idle_too)


def _hottest(load: PoolLoad, usage: Mapping[str, float], *, above: float) -> NodeLoad | None:
    """The most used node that can spare an executor."""
    able = [node for node in load.nodes if len(node.executors) > 1 and usage[node.name] > above]
    return max(able, key=lambda node: usage[node.name], default=None)


def _bring_to_mean(node: NodeLoad, need: float, mean: float, *, idle_too: bool) -> Iterator[Suggestion]:
    for executor in reaching(node, need=need, size=volume, idle_too=idle_too):
        yield Suggestion(
            executor=executor.name,
            source=node.name,
            target=None,
            hot_score=node.score,
            difference=node.score - 100 * mean,
        )


# OverloadShedder: unloads nodes above a fixed usage, whatever the others do. It keeps nothing from pass to pass.

_OVERLOAD_MARGIN_RATIO = 0.05


def overload_shedder(load: PoolLoad, settings: OverloadSettings) -> tuple[Suggestion, ...]:
    """Suggestions of one pass, without destinations."""
    return tuple(suggestion for node in load.nodes for suggestion in _unload_overloaded(node, settings))


def _unload_overloaded(node: NodeLoad, settings: OverloadSettings) -> Iterator[Suggestion]:
    usage, threshold = node.score / 100, settings.threshold / 100
    if usage < threshold:
        return
    need = node.bytes_per_second * (usage - threshold + _OVERLOAD_MARGIN_RATIO)
    for executor in reaching(node, need=need, size=volume, idle_too=settings.idle_too):
        yield Suggestion(
            executor=executor.name,
            source=node.name,
            target=None,
            hot_score=node.score,
            difference=node.score - settings.threshold,
        )


# UniformLoadShedder: compares the busiest node with the idlest by records, then by bytes per second.
#
# It looks at traffic alone, so unequal machines end up unequally used, and keeps nothing from pass to pass. The idlest
# is one that something may be sent to.

_LARGEST_INT = 2**31 - 1
_ALMOST_NOTHING = 1e-6


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
        made = tuple(_unload(by_rate, settings, least_need=settings.min_rate_per_second, size=rate))
        if made or settings.rate_only:
            return made
    if 0 < settings.bytes_ratio < by_bytes.most / by_bytes.least:
        return tuple(_unload(by_bytes, settings, least_need=settings.min_bytes_per_second, size=volume))
    return ()


def _extremes(load: PoolLoad, value: Callable[[NodeLoad], float], settings: UniformSettings) -> _Extremes:
    busiest = max(load.nodes, key=value)
    least = min(value(node) for node in load.nodes if node.receives)
    if settings.whole_numbers:
        least = min(least, float(_LARGEST_INT))
    return _Extremes(busiest, value(busiest), 1.0 if abs(least) <= _ALMOST_NOTHING else least)


def _unload(extremes: _Extremes, settings: UniformSettings, *, least_need: float, size: Size) -> Iterator[Suggestion]:
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


# AvgShedder with unit Traffic: levels scores by moving half (or so) of the difference in traffic of each pair.
#
# As in PIP-364. Nodes are paired hottest with coldest; a pair that stays apart long enough
# sheds executors whose rates fill `max_unload_ratio` of the pair's difference, the busiest first, to its cold node.

# Pairs the hottest node with the coldest, the second hottest with the second coldest, and so on inwards.
#
# A node that nothing may be sent to is never the cold one.


@dataclass(frozen=True, slots=True)
class Pair:
    cold: NodeLoad
    hot: NodeLoad

    @property
    def difference(self) -> float:
        return self.hot.score - self.cold.score


def ascending(load: PoolLoad) -> list[NodeLoad]:
    """The nodes by score; equal ones stay in the pool's order."""
    return sorted(load.nodes, key=lambda node: node.score)


def pairs(load: PoolLoad, *, middle: bool = False) -> Iterator[Pair]:
    """The pairs, the widest first. With `middle`, the middle one of an odd number is paired with itself."""
    order = ascending(load)
    destinations = [place for place, node in enumerate(order) if node.receives]
    for cold, hot in zip(destinations, range(len(order) - 1, -1, -1), strict=False):
        if cold < hot or (middle and cold == hot):
            yield Pair(order[cold], order[hot])


# How often in a row each node's pair was apart: over the low threshold, and over the high one.


@dataclass(frozen=True, slots=True)
class Hits:
    low: int = 0
    high: int = 0


@dataclass(frozen=True, slots=True)
class HitCounts:
    """The nodes that have any, sorted by node. Plain values, fit for JSON."""

    by_node: tuple[tuple[str, Hits], ...] = ()

    def beyond(self, nodes: Container[str]) -> dict[str, Hits]:
        """Those of nodes that have left."""
        return {name: hits for name, hits in self.by_node if name not in nodes}


def counted(
    before: HitCounts, found: Iterable[Pair], *, low_threshold: float, high_threshold: float
) -> tuple[list[Pair], dict[str, Hits]]:
    """The pairs apart by the low threshold or more, and the counts of their nodes with this pass added.

    All others are back at zero, and so is the high count of a pair below the high threshold. Counts are kept by
    node, not by pair.
    """
    known = dict(before.by_node)
    tally: dict[str, Hits] = {}
    apart = [pair for pair in found if pair.difference >= low_threshold]
    for pair in apart:
        for name in (pair.cold.name, pair.hot.name):
            so_far = tally.get(name, known.get(name, Hits()))
            tally[name] = Hits(so_far.low + 1, so_far.high + 1 if pair.difference >= high_threshold else 0)
    return apart, tally


def frozen(tally: dict[str, Hits]) -> HitCounts:
    return HitCounts(tuple(sorted(tally.items())))


@dataclass(frozen=True, slots=True)
class TrafficResult:
    suggestions: tuple[Suggestion, ...]
    memory: HitCounts


def avg_shedder_traffic(load: PoolLoad, settings: TrafficSettings, memory: HitCounts) -> TrafficResult:
    """Suggestions of one pass, the widest pair first, each with the cold node of its pair as target."""
    found = pairs(load, middle=settings.pair_middle)
    apart, tally = counted(memory, found, low_threshold=settings.low_threshold, high_threshold=settings.high_threshold)
    if apart and settings.keep_departed:
        tally |= memory.beyond(load.names())
    suggestions: list[Suggestion] = []
    for pair in apart:
        suggestions += _shed_pair(pair, settings, tally)
    return TrafficResult(tuple(suggestions), frozen(tally))


def _shed_pair(pair: Pair, settings: TrafficSettings, tally: dict[str, Hits]) -> list[Suggestion]:
    sides = (pair.cold.name, pair.hot.name)
    hits = [tally.get(name, Hits()) for name in sides]
    if not any(hit.high >= settings.high_hits or hit.low >= settings.low_hits for hit in hits):
        return []
    made = [_suggestion(victim, pair, hits) for victim in _victims(pair, settings)]
    if made or settings.forget_in_vain:
        for name in sides:
            tally.pop(name, None)
    return made


def _suggestion(victim: ExecutorLoad, pair: Pair, hits: list[Hits]) -> Suggestion:
    return Suggestion(
        executor=victim.name,
        source=pair.hot.name,
        target=pair.cold.name,
        hot_score=pair.hot.score,
        cold_score=pair.cold.score,
        difference=pair.difference,
        hits=max(hit.low for hit in hits),
    )


def _victims(pair: Pair, settings: TrafficSettings) -> Iterator[ExecutorLoad]:
    records = (pair.hot.rate_per_second - pair.cold.rate_per_second) * settings.max_unload_ratio
    traffic = (pair.hot.bytes_per_second - pair.cold.bytes_per_second) * settings.max_unload_ratio
    if records > settings.min_rate_per_second:
        yield from filling(pair.hot, need=records, size=rate)
    elif traffic > settings.min_bytes_per_second:
        yield from filling(pair.hot, need=traffic, size=volume)
