"""What a run comes to, in figures that can be compared between policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ballast.model.arrays import BoolArray, FloatArray
from ballast.model.reason import LIMITS_ON_MOVES
from ballast.simulation.trace import MoveRecord, Outcome, Stretch, Trace

# How few moves could have leveled the pool, had everything been known beforehand.
#
# A lower bound that no schedule of moves can beat. For any level of scores [low, low + level_points) that all nodes
# are to end in:
#
# - a node above it has to lose executors, at least as many as its largest ones together come down to the level, - a
# node below it has to gain executors, at least as many as the largest of all others would bring it up.
#
# A move takes from one node and gives to one, so the larger of both counts is needed; the level that needs the fewest
# is taken. A node that can't reach a level (its own neighbor keeps it hot) counts with all that it has. The bound is
# exact when executors are alike, and may be below what is possible when they are not. A run's bound is the largest one
# of its stretches, each with the mean loads of that stretch and with executors where they would have been without any
# move: noise averages out, and what lasted much shorter than a stretch asks for no move.

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


_LASTING_SECONDS = 300.0
"""A pool counts as level again when it has been so for this long."""
_REVERSAL_SECONDS = 3600.0
_ROUNDING = 1e-9
"""Points."""
_FAILURES = frozenset({Outcome.DID_NOT_HELP, Outcome.NEVER_LEFT, Outcome.NEVER_ARRIVED})


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """Less is better in all of them. Usage means what was asked of nodes, not what was measured.

    Moves off nodes that are about to go don't count: those have to be made.
    """

    seconds_to_balance: float | None
    """The longest time for which the pool was not level; None when it was not level at the end of the run.

    Level: the hottest node that has executors to give is at most the scenario's `level_points` above the coldest
    one that takes any, in usage averaged over the metric window, for five minutes at least.
    """
    moves: int
    """Executors that were made to leave."""
    rounds: int
    """Passes that decided on at least one of them."""
    moves_beyond_optimum: int
    """Beyond the fewest that could have leveled the pool (`optimum`); at least 0."""
    wrong_placements: int
    """Moves whose destination was more than `level_points` above the mean once the executor had arrived.

    Here and below, the mean weighs nodes by their capacity: it is what all would have if the work were spread evenly.
    """
    over_unloadings: int
    """Moves whose source was more than `level_points` below the mean once the executor had arrived elsewhere."""
    reversals: int
    """Moves from B to A within an hour of one from A to B."""
    failed_moves: int
    """Moves that did not arrive, or did not help."""
    imbalance_point_hours: float
    """Standard deviation of usage over the nodes, in points, integrated over hours."""
    locality_cost: float
    """Mean over time of the topologies' mean Σ traffic × distance; 0 when nothing ran."""
    peak_score: float
    """The largest usage of any node at any pass, percent."""
    limit_refusals: int
    """Suggestions that budgets, cooldowns or limits on concurrent moves refused."""
    longest_wait_seconds: float
    """Of any executor for its place."""


def run_metrics(trace: Trace) -> RunMetrics:
    leveling = tuple(move for move in trace.moves if not move.taint)
    done = [move for move in leveling if move.left_at is not None]
    refused = trace.refused()
    return RunMetrics(
        seconds_to_balance=seconds_to_balance(trace),
        moves=len(done),
        rounds=len({move.decided_at for move in done}),
        moves_beyond_optimum=max(0, len(done) - fewest_moves(trace.stretches, level_points=trace.level_points)),
        wrong_placements=sum(_strayed(trace, move, move.target) > trace.level_points for move in done),
        over_unloadings=sum(_strayed(trace, move, move.source) < -trace.level_points for move in done),
        reversals=len(list(reversals(leveling))),
        failed_moves=sum(move.outcome in _FAILURES for move in leveling),
        imbalance_point_hours=float((imbalance(trace) * _spans(trace)).sum()) / 3600.0,
        locality_cost=_mean_over_time(trace, trace.locality),
        peak_score=float(np.nanmax(trace.usage)) if np.isfinite(trace.usage).any() else 0.0,
        limit_refusals=sum(count for reason, count in refused.items() if reason in LIMITS_ON_MOVES),
        longest_wait_seconds=max((placed.waited_seconds for placed in trace.placements), default=0.0),
    )


def imbalance(trace: Trace) -> FloatArray:
    """By pass: standard deviation of usage over the nodes that are there, in points."""
    counts = np.isfinite(trace.usage).sum(axis=1)
    usage = np.where(np.isfinite(trace.usage), trace.usage, 0.0)
    mean = usage.sum(axis=1) / np.maximum(counts, 1)
    squares = np.where(np.isfinite(trace.usage), (usage - mean[:, None]) ** 2, 0.0).sum(axis=1)
    deviation: FloatArray = np.sqrt(squares / np.maximum(counts, 1))
    return deviation


def gap(trace: Trace) -> FloatArray:
    """By pass: points between the hottest node with executors and the coldest that takes any; 0 where there is none."""
    usage = averaged(trace)
    there = np.isfinite(usage)
    hottest = np.where(there & (trace.executors > 0), usage, -np.inf).max(axis=1, initial=-np.inf)
    coldest = np.where(there & trace.open, usage, np.inf).min(axis=1, initial=np.inf)
    known = np.isfinite(hottest) & np.isfinite(coldest)
    wide: FloatArray = np.zeros(len(usage))
    wide[known] = np.maximum(hottest[known] - coldest[known], 0.0)
    return wide


def averaged(trace: Trace) -> FloatArray:
    """Usage as a mean over the metric window up to each pass; NaN where the node is gone."""
    first = np.searchsorted(trace.times, trace.times - trace.window_seconds, side="right")
    known = np.isfinite(trace.usage)
    sums = np.vstack([np.zeros(len(trace.nodes)), np.cumsum(np.where(known, trace.usage, 0.0), axis=0)])
    counts = np.vstack([np.zeros(len(trace.nodes)), np.cumsum(known, axis=0)])
    ends = np.arange(1, len(trace.times) + 1)
    means: FloatArray = (sums[ends] - sums[first]) / np.maximum(counts[ends] - counts[first], 1)
    means[~known] = np.nan
    return means


def seconds_to_balance(trace: Trace) -> float | None:
    """As in RunMetrics."""
    apart = gap(trace) > trace.level_points + _ROUNDING
    if not apart.any():
        return 0.0
    spells = list(_spells(trace.times, apart))
    start, end = spells[-1]
    if end is None and trace.duration_seconds - start >= _LASTING_SECONDS:
        return None
    return max((trace.duration_seconds if end is None else end) - start for start, end in spells)


def _spells(times: FloatArray, apart: BoolArray) -> Iterator[tuple[float, float | None]]:
    """Beginning and end of each time of imbalance; those that follow each other quickly are one."""
    start: float | None = None
    level_since: float | None = None
    for time, wide in zip(times, apart, strict=True):
        if wide:
            start, level_since = (time if start is None else start), None
        elif start is not None:
            level_since = time if level_since is None else level_since
            if time - level_since >= _LASTING_SECONDS:
                yield float(start), float(level_since)
                start = None
    if start is not None:
        yield float(start), None if level_since is None else float(level_since)


def reversals(moves: tuple[MoveRecord, ...]) -> Iterator[MoveRecord]:
    """Moves that go back between two nodes soon after one that went there."""
    last: dict[tuple[str, str], float] = {}
    for move in moves:
        before = last.get((move.target, move.source))
        if before is not None and move.decided_at - before <= _REVERSAL_SECONDS:
            yield move
        last[move.source, move.target] = move.decided_at


def _strayed(trace: Trace, move: MoveRecord, node: str) -> float:
    """Points between the node's usage and the mean, averaged over the window that follows the arrival; 0 if unknown."""
    if move.arrived_at is None:
        return 0.0
    rows = (trace.times >= move.arrived_at) & (trace.times <= move.arrived_at + trace.window_seconds)
    column = trace.nodes.index(node)
    seen = trace.usage[rows][np.isfinite(trace.usage[rows, column])]
    if not len(seen):
        return 0.0
    capacity = np.where(np.isfinite(seen), trace.capacity, 0.0)
    level = np.nansum(seen * capacity, axis=1) / capacity.sum(axis=1)
    return float(np.mean(seen[:, column] - level))


def _spans(trace: Trace) -> FloatArray:
    """Seconds for which each pass's figures stand."""
    spans: FloatArray = np.diff(np.append(trace.times, max(trace.duration_seconds, trace.times[-1])))
    return spans


def _mean_over_time(trace: Trace, values: FloatArray) -> float:
    known = np.isfinite(values)
    spans = _spans(trace)[known]
    return float((values[known] * spans).sum() / spans.sum()) if spans.sum() > 0 else 0.0
