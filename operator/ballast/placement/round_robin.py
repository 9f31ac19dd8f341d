"""Strategy RoundRobin: one node after the other, by name, going on after the one chosen last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ballast.model import Executor
from ballast.model.arrays import IntArray
from ballast.placement.grid import Grid
from ballast.placement.one_by_one import one_by_one
from ballast.placement.outlook import Outlook
from ballast.placement.pulsar.round_robin import following
from ballast.placement.strategy import Seats


class RoundRobin:
    """`turn`: name of the node that was chosen last; it need not exist any more."""

    def __init__(self, grid: Grid, turn: str) -> None:
        self._names = [node.name for node in grid.nodes]
        self.turn = turn

    def seats(self, view: Outlook, turns: Sequence[int]) -> Seats:
        return one_by_one(view, turns, self._choose)

    def took(self, executor: Executor, node: int) -> None:
        """Nobody's turn was used."""

    def _choose(self, able: IntArray, _row: int) -> int:
        position = int(np.searchsorted(able, following(self._names, self.turn)))
        node = int(able[position % len(able)])
        self.turn = self._names[node]
        return node
