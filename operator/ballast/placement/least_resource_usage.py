"""Strategy LeastResourceUsage: a node whose smoothed score is clearly below the mean.

What figures do not show yet, executors on their way and those of this very pass, is added to the averages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from ballast.model import Executor, Phase, Snapshot
from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.placement_view import PlacementView, Pool
from ballast.placement.strategy import ROUNDING, Candidate, NodeValues, Seats, draw, one_by_one

# LeastResourceUsage: any of the nodes whose smoothed usage is below the mean by a threshold.
#
# Source: Pulsar's two `LeastResourceUsageWithWeight` (with and without the extensible load manager). Averages take in
# a pass once, in `averaged`; `possible` only reads them, so that placing many executors does not smooth faster.


@dataclass(frozen=True, slots=True)
class UsageSettings:
    history_ratio: float = 0.9
    """Weight of the past in the moving average."""
    difference_threshold: float = 10.0
    """Points below the mean."""


@dataclass(frozen=True, slots=True)
class Averages:
    """Smoothed usage by node as a ratio, sorted by name. Plain values, fit for JSON."""

    by_node: tuple[tuple[str, float], ...] = ()

    def within(self, nodes: Iterable[str]) -> Averages:
        kept = set(nodes)
        return Averages(tuple((name, usage) for name, usage in self.by_node if name in kept))


def averaged(candidates: Iterable[Candidate], settings: UsageSettings, averages: Averages) -> Averages:
    """The averages with the candidates' present usage added; a node that serves nothing starts again."""
    usage = dict(averages.by_node)
    for candidate in candidates:
        now, before = candidate.score / 100, usage.get(candidate.name)
        if before is None or not candidate.executors or candidate.current_rate_per_second == 0:
            usage[candidate.name] = now
        else:
            usage[candidate.name] = before * settings.history_ratio + (1 - settings.history_ratio) * now
    return Averages(tuple(sorted(usage.items())))


def possible(candidates: Sequence[str], settings: UsageSettings, averages: Averages) -> tuple[str, ...]:
    """The candidates far enough below the mean; all of them when none is. Those without an average don't count."""
    usage = dict(averages.by_node)
    found = below_mean(np.array([usage.get(name, np.nan) for name in candidates]), settings)
    return tuple(candidates[position] for position in found)


def below_mean(usage: FloatArray, settings: UsageSettings) -> IntArray:
    """Positions of those far enough below the mean of the known (NaN: not known); of all when there is none."""
    known = usage[~np.isnan(usage)]
    # Added up in the given order: the last bit of the mean decides at the threshold.
    return far_below(usage, float(np.cumsum(known)[-1]) / len(known) if len(known) else 0.0, settings)


def far_below(usage: FloatArray, mean: float, settings: UsageSettings) -> IntArray:
    """Positions of those that are the threshold or more below this mean; of all when there is none."""
    best = np.flatnonzero(usage + settings.difference_threshold / 100 <= mean)
    return best if len(best) else np.arange(len(usage))


_DIGITS = 4
"""Ten-thousandths are finer than any figure, and keep the memory short."""


def observed(snapshot: Snapshot, scores: Mapping[str, float], settings: UsageSettings, averages: Averages) -> Averages:
    """The averages with measured scores (percent) taken in; a node without executors starts again."""
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
        names = [node.name for node in pool.locations.nodes]
        known = dict(averages.by_node)
        scores = np.array([measured.get(name, np.nan) for name in names]) / 100.0
        smoothed = np.array([known.get(name, np.nan) for name in names])
        self._settings, self._random = settings, random
        self._lag = np.where(np.isnan(smoothed), 0.0, smoothed - scores)
        """Average less measured, as a ratio."""

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        space = view.pool.room
        figures = NodeValues(space.scores / 100.0 + np.nan_to_num(self._lag))
        cores = [view.workload.groups[int(group)].load_cores for group in view.groups]

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
