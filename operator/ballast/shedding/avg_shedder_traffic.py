"""AvgShedder with unit Traffic: levels scores by moving half (or so) of the difference in traffic of each pair.

Source: Pulsar's `AvgShedder` (PIP-364). Nodes are paired hottest with coldest; a pair that stays apart long enough
sheds executors whose rates fill `max_unload_ratio` of the pair's difference, the busiest first, to its cold node.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from ballast.shedding.load import ExecutorLoad, NodeLoad, PoolLoad, Suggestion, filling, rate, volume

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
class TrafficSettings:
    low_threshold: float = 15.0
    """Points of score."""
    high_threshold: float = 40.0
    low_hits: int = 8
    high_hits: int = 2
    max_unload_ratio: float = 0.5
    min_rate_per_second: float = 1000.0
    """The rate to unload must exceed this, or the bytes the next one."""
    min_bytes_per_second: float = 1024.0 * 1024.0
    keep_departed: bool = False
    """As Pulsar: a node that left keeps its counts for the day it returns."""
    pair_middle: bool = False
    """As Pulsar: the middle node of an odd number is its own partner (felt only at a low threshold of 0)."""
    forget_in_vain: bool = False
    """As Pulsar: a pair that reached its hits but sheds nothing starts counting again."""


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
        suggestions += _shed(pair, settings, tally)
    return TrafficResult(tuple(suggestions), frozen(tally))


def _shed(pair: Pair, settings: TrafficSettings, tally: dict[str, Hits]) -> list[Suggestion]:
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
