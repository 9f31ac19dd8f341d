"""Which executors to move so that together they come closest to a wanted load without exceeding it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

_STEPS = 256
"""Sums of load are told apart in this many steps of the wanted load."""
ROUNDING = 1e-9
"""Relative; so much above the wanted load still counts as that load."""


@dataclass(frozen=True, slots=True)
class Item:
    name: str
    load: float
    """Above 0."""
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Combination:
    items: tuple[Item, ...] = ()
    load: float = 0.0
    cost: float = 0.0

    def plus(self, item: Item) -> Combination:
        return Combination((*self.items, item), self.load + item.load, self.cost + item.cost)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.items)


def closest(items: Iterable[Item], *, wanted: float, most: int, slack: float) -> Combination:
    """The combination of at most `most` items whose load comes closest to `wanted` and does not exceed it.

    Those whose load is within `slack` of the closest one count as equally close: then the fewest items win, then the
    lowest cost, then the load, then the names. Empty when nothing fits.
    """
    by_size = _reachable(sorted(items, key=lambda item: item.name), wanted=wanted, most=most)
    found = [combination for sums in by_size[1:] for combination in sums.values()]
    reached = max((combination.load for combination in found), default=0.0)
    close = [combination for combination in found if combination.load >= reached - slack]
    return min(close, key=lambda each: (len(each.items), each.cost, -each.load, each.names), default=Combination())


def _reachable(items: Sequence[Item], *, wanted: float, most: int) -> list[dict[int, Combination]]:
    """By number of items, the best combination of each step of load; `items` must be in the order of their names."""
    by_size: list[dict[int, Combination]] = [{0: Combination()}, *({} for _ in range(most))]
    limit = wanted * (1.0 + ROUNDING)
    for item in _few_of_a_kind(items, most):
        if not 0.0 < item.load <= limit:
            continue
        for size in range(most, 0, -1):
            for before in list(by_size[size - 1].values()):
                if before.load + item.load <= limit:
                    _keep(by_size[size], before.plus(item), wanted)
    return by_size


def _few_of_a_kind(items: Sequence[Item], most: int) -> list[Item]:
    """More than `most` items with the same load and cost are never needed."""
    seen: dict[tuple[float, float], int] = {}
    kept = []
    for item in items:
        kind = (item.load, item.cost)
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= most:
            kept.append(item)
    return kept


def _keep(sums: dict[int, Combination], new: Combination, wanted: float) -> None:
    step = int(new.load / wanted * _STEPS)
    old = sums.get(step)
    cost, load = (old.cost, old.load) if old else (inf, 0.0)
    if (new.cost, -new.load) < (cost, -load):
        sums[step] = new
