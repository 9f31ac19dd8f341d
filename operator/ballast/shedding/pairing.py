"""Pairs the hottest node with the coldest, the second hottest with the second coldest, and so on inwards.

A node that nothing may be sent to is nobody's cold one.
"""

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
    takers = [place for place, node in enumerate(order) if node.receives]
    for cold, hot in zip(takers, range(len(order) - 1, -1, -1), strict=False):
        if cold < hot or (middle and cold == hot):
            yield Pair(order[cold], order[hot])
