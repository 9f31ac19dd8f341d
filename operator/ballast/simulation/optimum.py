"""How few moves could have leveled the pool, had everything been known beforehand.

A lower bound that no schedule of moves can beat. For any level of scores [low, low + level_points) that all nodes
are to end in:

- a node above it has to lose executors, at least as many as its largest ones together come down to the level,
- a node below it has to gain executors, at least as many as the largest of all others would bring it up.

A move takes from one node and gives to one, so the larger of both counts is needed; the level that needs the fewest is
taken. A node that can't reach a level (its own neighbor keeps it hot) counts with all that it has. The bound is
exact when executors are alike, and may be below what is possible when they are not. A run's bound is
the largest one of its stretches, each with the mean loads of that stretch and with executors where they would have been
without any move: noise averages out, and what lasted much shorter than a stretch asks for no move.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ballast.model.arrays import FloatArray
from ballast.simulation.trace import Stretch

_STEP_POINTS = 0.25


def fewest_moves(stretches: Iterable[Stretch], *, level_points: float) -> int:
    """Of a run; 0 for one without stretches."""
    return max((fewest_moves_of(each, level_points=level_points) for each in stretches), default=0)


def fewest_moves_of(stretch: Stretch, *, level_points: float) -> int:
    """Of one stretch, whose figures are taken for constant."""
    nodes = np.flatnonzero(stretch.up)
    if len(nodes) < 2:
        return 0
    scores = _scores(stretch)
    lows = np.arange(scores[nodes].min() - level_points, scores[nodes].max() + _STEP_POINTS, _STEP_POINTS)
    # One step wider than asked for, so that no level between two steps would have needed fewer moves.
    highs = lows + level_points + _STEP_POINTS
    down, up = np.zeros(len(lows)), np.zeros(len(lows))
    for node in nodes.tolist():
        down += _steps_down(_shed(stretch, node, scores[node]), highs)
        up += _steps_up(_gained(stretch, node, scores[node], most=scores[nodes].max()), lows)
    return int(np.maximum(down, up).min())


def _scores(stretch: Stretch) -> FloatArray:
    """By node, percent."""
    placed = stretch.homes >= 0
    held = np.bincount(stretch.homes[placed], weights=stretch.loads[placed], minlength=len(stretch.capacity))
    scores: FloatArray = 100.0 * (held + stretch.others) / stretch.capacity
    return scores


def _shed(stretch: Stretch, node: int, score: float) -> FloatArray:
    """Scores of the node after 0, 1, 2 … of its movable executors have left, the largest first."""
    loads = np.sort(stretch.loads[(stretch.homes == node) & stretch.movable])[::-1]
    path: FloatArray = score - 100.0 * np.concatenate([[0.0], np.cumsum(loads)]) / stretch.capacity[node]
    return path


def _gained(stretch: Stretch, node: int, score: float, *, most: float) -> FloatArray:
    """Scores after 0, 1, 2 … of the largest executors from elsewhere have come, until above `most`."""
    elsewhere = (stretch.homes != node) & (stretch.homes >= 0) & stretch.movable
    loads = np.sort(stretch.loads[elsewhere])[::-1]
    path: FloatArray = score + 100.0 * np.concatenate([[0.0], np.cumsum(loads)]) / stretch.capacity[node]
    return path[: int((path <= most).sum()) + 1]


def _steps_down(path: FloatArray, highs: FloatArray) -> FloatArray:
    """Executors to lose to come below each of `highs`; all there are where even that is not enough."""
    steps: FloatArray = np.searchsorted(-path, -highs, side="left").astype(float)
    return np.minimum(steps, len(path) - 1)


def _steps_up(path: FloatArray, lows: FloatArray) -> FloatArray:
    """Executors to gain to reach each of `lows`; all there are where even that is not enough."""
    steps: FloatArray = np.searchsorted(path, lows, side="left").astype(float)
    return np.minimum(steps, len(path) - 1)
