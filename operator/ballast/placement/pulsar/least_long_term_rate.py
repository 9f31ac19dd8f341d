"""LeastLongTermRate: the node with the fewest records per second over the long window, unless it is overloaded.

Source: Pulsar's `LeastLongTermMessageRate`. What was just placed is added until the figures show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.pulsar.candidate import Candidate


@dataclass(frozen=True, slots=True)
class RateSettings:
    overload_threshold: float = 85.0
    """Percent; a node above it is chosen only when all are."""
    count_twice: bool = False
    """As Pulsar: an executor that has arrived and is still booked counts twice."""


def possible(candidates: Sequence[Candidate], settings: RateSettings) -> tuple[str, ...]:
    """The nodes that share the lowest rate; all of them when all are overloaded."""
    rates = np.array([_rate(candidate, settings) for candidate in candidates])
    return tuple(candidates[position].name for position in lowest(rates))


def lowest(rates: FloatArray) -> IntArray:
    """Positions of those that share the lowest rate; overloaded ones have an infinite rate."""
    return np.flatnonzero(rates == rates.min(initial=inf))


def _rate(candidate: Candidate, settings: RateSettings) -> float:
    if candidate.score / 100 > settings.overload_threshold / 100:
        return inf
    total = 0.0
    for arrival in candidate.arriving:
        if settings.count_twice or arrival.executor not in candidate.executors:
            total += arrival.rate_per_second
    return total + candidate.rate_per_second
