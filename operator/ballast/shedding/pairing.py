"""Pairs the hottest node with the coldest, the second hottest with the second coldest, and so on inwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ballast.shedding.load import NodeLoad, PoolLoad


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
    half = (len(order) + 1) // 2 if middle else len(order) // 2
    for index in range(half):
        yield Pair(order[index], order[-1 - index])
