"""What every placement strategy answers: where executors go, of the nodes that admit them and have room."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from math import inf, isnan
from random import Random
from typing import Protocol

import numpy as np

from ballast.model import Executor
from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.placement.placement_view import PlacementView
from ballast.placement.room import fits

Seats = list[list[int]]
"""For each row of a view's groups, the nodes (positions in the pool) of as many executors as find one."""


class Strategy(Protocol):
    """One strategy during one pass; what it knows of the nodes changes as executors are placed."""

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        """`turns`: rows of the view's groups, one per executor, in the order of placing."""

    def took(self, executor: Executor, node: int) -> None:
        """An executor is going there, for a reason that is not the strategy's: a move, or because it was there."""


# Which nodes can take one more executor, kept up to date as executors take their places one by one.


class Openings:
    """Room, limits and separations of a view; rows are the view's groups, columns the pool's nodes."""

    def __init__(self, view: PlacementView) -> None:
        self._view = view
        self._codes = view.pool.locations.codes
        self._room, self._unasked = view.room.copy(), view.demand <= 0
        self._node_left = view.node_limit.copy()
        self._zone_left = view.zone_limit.copy()
        self._open = (view.capacity > 0) & (self._zone_left > 0)[view.component][:, self._codes[0]]
        self._listed: dict[int, IntArray] = {}
        """The open nodes of those rows that were asked for since they changed."""

    def able(self, row: int) -> IntArray:
        """Positions of the nodes that can take one more of the group, ascending; the same array until they change."""
        known = self._listed.get(row)
        if known is None:
            known = self._listed[row] = np.flatnonzero(self._open[row])
        return known

    def admits(self, row: int, node: int) -> bool:
        return bool(self._open[row, node])

    def copy(self) -> Openings:
        other = object.__new__(Openings)
        other._view, other._codes, other._unasked = self._view, self._codes, self._unasked
        other._room, other._open = self._room.copy(), self._open.copy()
        other._node_left, other._zone_left = self._node_left.copy(), self._zone_left.copy()
        other._listed = self._listed.copy()
        return other

    def give_back(self, row: int, node: int) -> None:
        """Undoes a `take`; not where components must keep apart, because the others there are not known here."""
        component = int(self._view.component[row])
        self._room[node] += self._view.demand[row]
        self._node_left[component, node] += 1
        self._zone_left[component, self._codes[0, node]] += 1
        self._open = np.array([self._able(each) for each in range(len(self._view.groups))])
        self._listed.clear()

    def take(self, row: int, node: int) -> None:
        """One of the group goes to the node."""
        view, component = self._view, int(self._view.component[row])
        zone = self._codes[0, node]
        self._room[node] -= view.demand[row]
        self._node_left[component, node] -= 1
        self._zone_left[component, zone] -= 1
        holds = np.logical_and.reduce((self._room[node] + view.slack >= view.demand) | self._unasked, axis=1)
        closed = self._open[:, node] & ~(holds & (self._node_left[view.component, node] > 0))
        if closed.any():
            self._open[closed, node] = False
            for each in np.flatnonzero(closed).tolist():
                self._listed.pop(each, None)
        if self._zone_left[component, zone] <= 0:
            self._open[np.ix_(view.component == component, self._codes[0] == zone)] = False
            self._listed.clear()
        for level, members in view.apart:
            if component in members:
                others = np.isin(view.component, members[members != component])
                self._open[np.ix_(others, self._codes[level] == self._codes[level, node])] = False
                self._listed.clear()

    def _able(self, row: int) -> BoolArray:
        view, component = self._view, int(self._view.component[row])
        mask: BoolArray = view.allowed[row] & fits(self._room, view.demand[row], view.slack)
        mask &= self._node_left[component] > 0
        mask &= self._zone_left[component][self._codes[0]] > 0
        return mask


# Executors one after the other, each to the node that a strategy finds right among those that can take it.

Choose = Callable[[IntArray, int], int]
"""One of these nodes (positions in the pool, ascending, at least one) for an executor of this row of the view.

The same array again means the same nodes.
"""


def one_by_one(view: PlacementView, turns: Sequence[int], choose: Choose) -> Seats:
    """`turns`: rows of the view's groups, one per executor. Favored nodes come first while they have room."""
    openings = Openings(view)
    favored = np.flatnonzero(view.pool.named(view.pool.policy.favored_nodes))
    seats: list[list[int]] = [[] for _ in view.groups]
    full: set[int] = set()
    for row in _by_turns(view, turns) if view.apart else turns:
        if row in full:
            continue
        able = openings.able(row)
        if not len(able):
            full.add(row)
            continue
        liked = np.intersect1d(able, favored, assume_unique=True) if len(favored) else favored
        node = choose(liked if len(liked) else able, row)
        openings.take(row, node)
        seats[row].append(node)
    return seats


def _by_turns(view: PlacementView, rows: Sequence[int]) -> list[int]:
    """The first of each component, then the second: so none takes every place from one that must be apart from it."""
    seen = Counter(dict(enumerate(view.workload.present[view.component].sum(axis=1).tolist())))
    numbered = []
    for row in rows:
        numbered.append((seen[row], row))
        seen[row] += 1
    return [row for _, row in sorted(numbered)]


def draw(possible: IntArray | list[int], random: Random) -> int:
    """One of the equally right positions, of which there is at least one; they must be in ascending order."""
    return int(possible[random.randrange(len(possible))])


# A value of every node, of which those of some nodes are asked for again and again while single ones change.

ROUNDING = 1e-6
"""More than what adding up a pool's ratios in another order can change their mean by."""


class NodeValues:
    """`all`: by position in the pool; NaN where it is not known, which it then stays.

    What was picked out last is kept, and what follows from it is brought up to date node by node: placing an executor
    is not to look at every node of a large pool again.
    """

    def __init__(self, values: FloatArray) -> None:
        self.all = values
        self._nodes: IntArray = np.empty(0, dtype=np.int64)
        self._picked = values[self._nodes]
        self._lowest: list[int] = []
        """Empty: to be looked for."""
        self._total: float | None = None
        """Of the known values, of which there are `_count`; None: to be added up."""
        self._count = 0

    def of(self, nodes: IntArray) -> FloatArray:
        """The values of these nodes (positions, ascending), in their order; not to be written to or kept."""
        if nodes is not self._nodes:
            self._nodes, self._picked = nodes, self.all[nodes]
            self._lowest, self._total = [], None
        return self._picked

    def lowest(self) -> list[int]:
        """Where the lowest stand, ascending, among those that were picked out last; not to be kept."""
        if not self._lowest:
            self._lowest = lowest(self._picked).tolist()
        return self._lowest

    def mean(self) -> float:
        """Of the known ones that were picked out last, added up in their order; 0 without any."""
        known = self._picked[~np.isnan(self._picked)]
        return float(np.cumsum(known)[-1]) / len(known) if len(known) else 0.0

    def rough_mean(self) -> float:
        """As `mean`, except for less than ROUNDING, and at once."""
        if self._total is None:
            known = self._picked[~np.isnan(self._picked)]
            self._total, self._count = float(known.sum()), len(known)
        return self._total / self._count if self._count else 0.0

    def set(self, node: int, value: float) -> None:
        self.all[node] = value
        position = int(self._nodes.searchsorted(node))
        if position == len(self._nodes) or self._nodes[position] != node:
            return
        before = float(self._picked[position])
        self._picked[position] = value
        if self._total is not None and not isnan(value):
            self._total += value - before
        self._rank(position, before, value)

    def _rank(self, position: int, before: float, value: float) -> None:
        if self._lowest and value != before:
            place = bisect_left(self._lowest, position)
            if value > before and self._lowest[place : place + 1] == [position]:
                del self._lowest[place]
            elif value < before:
                self._lowest = []


def lowest(rates: FloatArray) -> IntArray:
    """Positions of those that share the lowest rate; overloaded ones have an infinite rate."""
    return np.flatnonzero(rates == rates.min(initial=inf))
