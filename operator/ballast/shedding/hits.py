"""How often in a row each node's pair was apart: over the low threshold, and over the high one."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from ballast.shedding.pairing import Pair


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

    Everybody else is back at zero, and so is the high count of a pair below the high threshold. Counts are kept by
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
