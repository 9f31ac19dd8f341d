"""Little's law: how much a pipeline can pass, how long a record takes at least, and what parallelism a rate needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ballast.model.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a pipeline, in records of its own input."""

    name: str
    latency_seconds: float
    """The time that one record takes in one task. Above 0."""
    parallelism: int
    output_ratio: float = 1.0
    """Records sent on per record received."""
    remote_rate_limit: float = math.inf
    """The most records per second that a remote service takes."""

    @property
    def capacity(self) -> float:
        """Records per second: parallelism ÷ latency, or what the remote service takes if that is less."""
        return min(self.parallelism / self.latency_seconds, self.remote_rate_limit)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no tuning of the rest of the pipeline can exceed."""

    records_per_second: float
    """The most records of the source: a pipeline is as fast as its slowest stage."""
    latency_seconds: float
    """A record takes no less than the sum of the latencies."""
    slowest: str
    """The stage that sets the rate; the first of several."""


def bounds(stages: Sequence[Stage]) -> Bounds:
    """Of a chain of at least one stage, in records of the source."""
    limits = source_limits(stages)
    slowest = min(range(len(stages)), key=limits.__getitem__)
    return Bounds(limits[slowest], math.fsum(stage.latency_seconds for stage in stages), stages[slowest].name)


def source_limits(stages: Sequence[Stage]) -> list[float]:
    """For each stage of a chain, the records per second of the source that would fill it."""
    limits, share = [], 1.0
    for stage in stages:
        limits.append(stage.capacity / share if share > 0.0 else math.inf)
        share *= stage.output_ratio
    return limits


def parallelism_needed(*, records_per_second: float, latency_seconds: float) -> int:
    """Rate × latency, rounded up; at least 1."""
    # A product such as 2000 × 0.008 may exceed the whole number that it stands for by a rounding error.
    return max(1, math.ceil(round(records_per_second * latency_seconds, 9)))


def slowest_quantile(tasks: int) -> float:
    """The quantile of one task's time that is the median of the slowest of `tasks` parallel ones: 0.5^(1/n).

    Of 20 tasks that is the 96.6th percentile: all 20 are faster than it with probability one half.
    """
    return math.pow(0.5, 1.0 / tasks)


def median_of_slowest(seconds: Sequence[float] | FloatArray, tasks: int) -> float:
    """The typical time of a step of `tasks` parallel tasks, from measured times of single ones."""
    return float(np.quantile(np.asarray(seconds, dtype=np.float64), slowest_quantile(tasks)))
