"""Strategy LeastResourceUsage: a node whose smoothed score is clearly below the mean.

What figures do not show yet, executors on their way and those of this very pass, is added to the averages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np

from ballast.model import Executor, Phase, Snapshot
from ballast.model.arrays import IntArray
from ballast.placement.figures import ROUNDING, Figures
from ballast.placement.one_by_one import one_by_one
from ballast.placement.outlook import Outlook, Pool
from ballast.placement.pulsar.candidate import Candidate
from ballast.placement.pulsar.choice import draw
from ballast.placement.pulsar.least_resource_usage import Averages, UsageSettings, far_below
from ballast.placement.pulsar.least_resource_usage import observed as averaged
from ballast.placement.strategy import Seats

_DIGITS = 4
"""Ten-thousandths are finer than any figure, and keep the memory short."""


def observed(snapshot: Snapshot, scores: Mapping[str, float], settings: UsageSettings, averages: Averages) -> Averages:
    """The averages with measured scores (percent) taken in; a node without executors starts anew."""
    serving: dict[str, set[str]] = defaultdict(set)
    for executor in snapshot.executors:
        if executor.phase is Phase.RUNNING and executor.node is not None:
            serving[executor.node].add(executor.key)
    candidates = (
        Candidate(name, score, current_rate_per_second=len(serving[name]), executors=frozenset(serving[name]))
        for name, score in scores.items()
    )
    there = averages.within(node.name for node in snapshot.nodes)
    found = averaged(candidates, settings, there)
    return Averages(tuple((name, round(usage, _DIGITS)) for name, usage in found.by_node))


class LeastResourceUsage:
    """`measured`: scores by node, percent, as they were measured."""

    def __init__(
        self, pool: Pool, averages: Averages, measured: Mapping[str, float], *, settings: UsageSettings, random: Random
    ) -> None:
        names = [node.name for node in pool.grid.nodes]
        known = dict(averages.by_node)
        scores = np.array([measured.get(name, np.nan) for name in names]) / 100.0
        smoothed = np.array([known.get(name, np.nan) for name in names])
        self._settings, self._random = settings, random
        self._lag = np.where(np.isnan(smoothed), 0.0, smoothed - scores)
        """Average less measured, as a ratio."""

    def seats(self, view: Outlook, turns: Sequence[int]) -> Seats:
        space = view.pool.room
        figures = Figures(space.scores / 100.0 + np.nan_to_num(self._lag))
        cores = [view.crew.groups[int(group)].load_cores for group in view.groups]

        threshold = self._settings.difference_threshold / 100

        def choose(able: IntArray, row: int) -> int:
            usage = figures.of(able)
            if usage.min() + threshold > figures.rough_mean() + ROUNDING:
                node = draw(able, self._random)
            else:
                node = int(able[draw(far_below(usage, figures.mean(), self._settings), self._random)])
            figures.set(node, figures.all[node] + space.points_per_core[node] * cores[row] / 100.0)
            return node

        return one_by_one(view, turns, choose)

    def took(self, executor: Executor, node: int) -> None:
        """The pool's scores show it."""
