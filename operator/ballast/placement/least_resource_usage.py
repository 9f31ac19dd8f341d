"""Strategy LeastResourceUsage: a node whose smoothed score is clearly below the mean.

What figures do not show yet, executors on their way and those of this very pass, is added to the averages. These take
in a pass once, in `observed`; placing only reads them, so that placing many executors does not smooth faster.
Source: Pulsar's two `LeastResourceUsageWithWeight` (with and without the extensible load manager).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from ballast.model import Executor, Phase, Snapshot
from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.placement_view import PlacementView, Pool
from ballast.placement.strategy import ROUNDING, NodeValues, Seats, draw, one_by_one


@dataclass(frozen=True, slots=True)
class Averages:
    """Smoothed usage by node as a ratio, sorted by name. Plain values, fit for JSON."""

    by_node: tuple[tuple[str, float], ...] = ()


def far_below(usage: FloatArray, mean: float, difference: float) -> IntArray:
    """Positions of those that are so much or more below this mean; of all when there is none."""
    best = np.flatnonzero(usage + difference <= mean)
    return best if len(best) else np.arange(len(usage))


_DIGITS = 4
"""Ten-thousandths are finer than any figure, and keep the memory short."""


def observed(snapshot: Snapshot, scores: Mapping[str, float], averages: Averages, *, history_ratio: float) -> Averages:
    """The averages with measured scores (percent) taken in, the past with the weight `history_ratio`.

    A node without executors starts again; one that has left is forgotten.
    """
    serving = {executor.node for executor in snapshot.executors if executor.phase is Phase.RUNNING}
    present = {node.name for node in snapshot.nodes}
    usage = {name: ratio for name, ratio in averages.by_node if name in present}
    for name, score in scores.items():
        now = score / 100
        before = usage.get(name, now) if name in serving else now
        usage[name] = round(before * history_ratio + (1 - history_ratio) * now, _DIGITS)
    return Averages(tuple(sorted(usage.items())))


class LeastResourceUsage:
    """`measured`: scores by node, percent, as they were measured."""

    def __init__(self, pool: Pool, averages: Averages, measured: Mapping[str, float], *, random: Random) -> None:
        names = [node.name for node in pool.locations.nodes]
        known = dict(averages.by_node)
        scores = np.array([measured.get(name, np.nan) for name in names]) / 100.0
        smoothed = np.array([known.get(name, np.nan) for name in names])
        self._random = random
        self._lag = np.where(np.isnan(smoothed), 0.0, smoothed - scores)
        """Average less measured, as a ratio."""

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        space = view.pool.room
        figures = NodeValues(space.scores / 100.0 + np.nan_to_num(self._lag))
        cores = [view.workload.groups[int(group)].load_cores for group in view.groups]

        threshold = view.pool.policy.min_difference / 100

        def choose(able: IntArray, row: int) -> int:
            usage = figures.of(able)
            if usage.min() + threshold > figures.rough_mean() + ROUNDING:
                node = draw(able, self._random)
            else:
                node = int(able[draw(far_below(usage, figures.mean(), threshold), self._random)])
            figures.set(node, figures.all[node] + space.points_per_core[node] * cores[row] / 100.0)
            return node

        return one_by_one(view, turns, choose)

    def took(self, executor: Executor, node: int) -> None:
        """The pool's scores show it."""
