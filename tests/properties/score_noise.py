"""Scores of a pool that is balanced except for noise: seeded, and alike over several passes as windowed figures are."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, exp, sqrt

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]
"""Points from balance, one row a pass and one column a node."""
Noise = Callable[[int, int, float, int], Scores]
"""`(nodes, passes, memory_passes, seed)` to scores within about ±10 points."""

DAY_PASSES = 24 * 60
"""A day of passes every minute."""
_AMPLITUDE = 10.0


def _ornstein_uhlenbeck(nodes: int, passes: int, memory_passes: float, seed: int) -> Scores:
    """Standard normal, autocorrelated as exp(−passes / memory)."""
    random = np.random.default_rng(seed)
    likeness = exp(-1.0 / memory_passes)
    rows: Scores = random.normal(size=(passes, nodes))
    rows[1:] *= sqrt(1.0 - likeness**2)
    for index in range(1, passes):
        rows[index] += likeness * rows[index - 1]
    return rows


def even(nodes: int, passes: int, memory_passes: float, seed: int) -> Scores:
    """Every deviation between −10 and 10 equally likely: it never goes beyond, and is often far out."""
    normal = _ornstein_uhlenbeck(nodes, passes, memory_passes, seed)
    shares = 0.5 * (1.0 + np.vectorize(erf)(normal / sqrt(2.0)))
    scores: Scores = _AMPLITUDE * (2.0 * shares - 1.0)
    return scores


def gaussian(nodes: int, passes: int, memory_passes: float, seed: int) -> Scores:
    """Normal with two standard deviations at ±10; now and then it goes far beyond."""
    return _AMPLITUDE / 2.0 * _ornstein_uhlenbeck(nodes, passes, memory_passes, seed)


def clipped(nodes: int, passes: int, memory_passes: float, seed: int) -> Scores:
    """Normal with one standard deviation at ±10 and cut off there: a third of the time at an end."""
    return np.clip(_AMPLITUDE * _ornstein_uhlenbeck(nodes, passes, memory_passes, seed), -_AMPLITUDE, _AMPLITUDE)


def steps(nodes: int, passes: int, memory_passes: float, seed: int) -> Scores:
    """Evenly drawn again every so many passes, for all nodes at once."""
    length = max(1, round(memory_passes))
    random = np.random.default_rng(seed)
    levels: Scores = random.uniform(-_AMPLITUDE, _AMPLITUDE, size=(passes // length + 1, nodes))
    return np.repeat(levels, length, axis=0)[:passes]


NOISES: dict[str, Noise] = {"even": even, "gaussian": gaussian, "clipped": clipped, "steps": steps}
