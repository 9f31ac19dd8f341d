"""LeastResourceUsage: any of the nodes whose smoothed usage is below the mean by a threshold.

Source: Pulsar's two `LeastResourceUsageWithWeight` (with and without the extensible load manager). Averages take in
a pass once, in `observed`; `possible` only reads them, so that placing many executors does not smooth faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.pulsar.candidate import Candidate


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


def observed(candidates: Iterable[Candidate], settings: UsageSettings, averages: Averages) -> Averages:
    """The averages with the candidates' present usage added; a node that serves nothing starts anew."""
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
