"""A figure of every node, of which those of some nodes are asked for again and again while single ones change."""

from __future__ import annotations

from bisect import bisect_left
from math import isnan

import numpy as np

from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.pulsar.least_long_term_rate import lowest

ROUNDING = 1e-6
"""More than what adding up a pool's ratios in another order can change their mean by."""


class Figures:
    """`all`: by position in the pool; NaN where it is not known, which it then stays.

    What was picked out last is kept, and what follows from it is brought up to date node by node: placing an executor
    is not to look at every node of a large pool again.
    """

    def __init__(self, figures: FloatArray) -> None:
        self.all = figures
        self._nodes: IntArray = np.empty(0, dtype=np.int64)
        self._picked = figures[self._nodes]
        self._lowest: list[int] = []
        """Empty: to be looked for."""
        self._total: float | None = None
        """Of the known figures, of which there are `_count`; None: to be added up."""
        self._count = 0

    def of(self, nodes: IntArray) -> FloatArray:
        """The figures of these nodes (positions, ascending), in their order; not to be written to or kept."""
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
        """As `mean`, but for less than ROUNDING, and at once."""
        if self._total is None:
            known = self._picked[~np.isnan(self._picked)]
            self._total, self._count = float(known.sum()), len(known)
        return self._total / self._count if self._count else 0.0

    def set(self, node: int, figure: float) -> None:
        self.all[node] = figure
        position = int(self._nodes.searchsorted(node))
        if position == len(self._nodes) or self._nodes[position] != node:
            return
        before = float(self._picked[position])
        self._picked[position] = figure
        if self._total is not None and not isnan(figure):
            self._total += figure - before
        self._rank(position, before, figure)

    def _rank(self, position: int, before: float, figure: float) -> None:
        if self._lowest and figure != before:
            place = bisect_left(self._lowest, position)
            if figure > before and self._lowest[place : place + 1] == [position]:
                del self._lowest[place]
            elif figure < before:
                self._lowest = []
