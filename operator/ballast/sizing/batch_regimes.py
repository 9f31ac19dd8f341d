"""The three regimes of a batch's duration: flat, slow growth and sharp growth, fitted to measured batches.

`seconds = base + slow × max(rows − flat_until, 0) + sharp × max(rows − sharp_from, 0)`, slow and sharp above 0. The two
breakpoints are searched on a grid over the measured sizes; between them the fit is linear least squares, with each
batch weighted by 1 ÷ duration², because noise grows with the duration. Of models with one, two or three regimes the one
with the best Bayesian information criterion is kept: more regimes than the data show are not reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ballast.api.topology_sizing import Goal
from ballast.model.arrays import FloatArray
from ballast.sizing.provenance import student_t

LEAST_BATCHES = 12
_LEAST_SPREAD = 2.0
"""Largest ÷ smallest batch, without the outermost twentieths. Less than that shows a point, not a curve."""
_GRID, _FINE = 40, 25
_WIDEST = 4.0
"""A breakpoint whose interval spans more than this factor is not known."""
_CLEARLY_BETTER = 6.0
"""Difference of the information criterion from which on one more regime is kept: strong evidence."""
_OUTSIDE = 2
"""Points that each side of a breakpoint needs at least."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    rows: float
    low: float
    high: float
    """The 95 % profile interval."""


@dataclass(frozen=True, slots=True)
class Regimes:
    """A fitted curve. A breakpoint is None where the measured sizes don't reach it, or don't show where it is."""

    base_seconds: float
    slow_seconds_per_row: float
    sharp_seconds_per_row: float
    flat_until: Breakpoint | None
    sharp_from: Breakpoint | None
    noise_ratio: float
    """Typical deviation of a batch from the curve, relative to its duration."""
    batches: int
    smallest_rows: float
    largest_rows: float
    knee_rows: float = 0.0
    """Where slow growth begins in the fitted curve, even if its place is not sure."""
    bend_rows: float = math.inf
    """Where sharp growth begins in the fitted curve, even if its place is not sure."""

    def seconds(self, rows: float) -> float:
        """The fitted duration of a batch."""
        slow = self.slow_seconds_per_row * max(rows - self.knee_rows, 0.0)
        sharp = self.sharp_seconds_per_row * max(rows - self.bend_rows, 0.0) if rows > self.bend_rows else 0.0
        return self.base_seconds + slow + sharp


@dataclass(frozen=True, slots=True)
class CannotTell:
    """Why the batches show no curve, and what would."""

    reason: str
    remedy: str


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    knee: float
    bend: float
    coefficients: FloatArray
    """Base, slow, sharp."""
    loss: float
    """Weighted sum of squares: relative deviations."""
    parameters: int

    def criterion(self, count: int) -> float:
        return count * math.log(max(self.loss, 1e-12) / count) + self.parameters * math.log(count)


def fit(rows: Sequence[float], seconds: Sequence[float]) -> Regimes | CannotTell:
    """Of batches with at least one row; others and those without a duration are left out."""
    pairs = sorted((r, s) for r, s in zip(rows, seconds, strict=True) if r > 0 and s > 0)
    x = np.array([pair[0] for pair in pairs], dtype=np.float64)
    y = np.array([pair[1] for pair in pairs], dtype=np.float64)
    if len(x) < LEAST_BATCHES:
        return CannotTell(f"only {len(x)} batches with rows, {LEAST_BATCHES} are needed", _MORE)
    low, high = np.quantile(x, [0.05, 0.95])
    if high < _LEAST_SPREAD * low:
        return CannotTell(f"all batches are about the same size ({low:.4g} to {high:.4g} rows)", _MORE)
    candidates = _candidates(x)
    fits = [_line(x, y), *_one_bend(x, y, candidates), *_two_bends(x, y, candidates, candidates)]
    fits += _refined(_chosen(fits, len(x)), fits, x, y)
    best = _chosen(fits, len(x))
    if best.coefficients[1] <= 0.0 and best.coefficients[2] <= 0.0:
        return CannotTell("the duration does not grow with the rows: bookkeeping or something else sets it", _LARGER)
    return _described(best, fits, x)


_MORE = "run batches of several sizes: set maxOffsetsPerTrigger to 4 values, each twice the one before"
_LARGER = "run larger batches: raise maxOffsetsPerTrigger"


def _candidates(x: FloatArray) -> FloatArray:
    """Between neighboring sizes, spread evenly over the measured range and over its logarithm."""
    inner_low, inner_high = x[_OUTSIDE], x[-1 - _OUTSIDE]
    even = np.linspace(inner_low, inner_high, _GRID)
    logarithmic = np.geomspace(inner_low, inner_high, _GRID)
    found: FloatArray = np.unique(np.concatenate([even, logarithmic]))
    return found


def _line(x: FloatArray, y: FloatArray) -> _Fit:
    """One regime: straight growth from 0 rows on."""
    fitted, loss = _solve(np.stack([np.ones_like(x), x]), y)
    if fitted[1] < 0.0:
        fitted, loss = _solve(np.ones_like(x)[None, :], y)
        return _Fit(0.0, math.inf, np.array([fitted[0], 0.0, 0.0]), loss, 1)
    return _Fit(0.0, math.inf, np.array([fitted[0], fitted[1], 0.0]), loss, 2)


def _one_bend(x: FloatArray, y: FloatArray, candidates: FloatArray) -> Iterator[_Fit]:
    """Two regimes: flat then growing, or growing then growing sharply."""
    for at in candidates:
        hinge = np.maximum(x - at, 0.0)
        fitted, loss = _solve(np.stack([np.ones_like(x), hinge]), y)
        if fitted[1] > 0.0:
            yield _Fit(float(at), math.inf, np.array([fitted[0], fitted[1], 0.0]), loss, 3)
        fitted, loss = _solve(np.stack([np.ones_like(x), x, hinge]), y)
        if fitted[1] > 0.0 and fitted[2] > fitted[1]:
            yield _Fit(0.0, float(at), fitted, loss, 4)


def _two_bends(x: FloatArray, y: FloatArray, knees: FloatArray, bends: FloatArray) -> Iterator[_Fit]:
    """Three regimes; sharp means that growth at least doubles."""
    for knee in knees:
        first = np.maximum(x - knee, 0.0)
        for bend in bends[bends > knee]:
            between = np.count_nonzero((x > knee) & (x <= bend))
            if between < _OUTSIDE:
                continue
            fitted, loss = _solve(np.stack([np.ones_like(x), first, np.maximum(x - bend, 0.0)]), y)
            if fitted[1] > 0.0 and fitted[2] > fitted[1]:
                yield _Fit(float(knee), float(bend), fitted, loss, 5)


def _refined(best: _Fit, fits: Sequence[_Fit], x: FloatArray, y: FloatArray) -> Iterator[_Fit]:
    """The same model on a finer grid around its best places, so that intervals are not those of the grid."""
    if best.parameters < 3:
        return
    near = _near(best, fits, len(x))
    knees, bends = (_finer([getattr(each, name) for each in near], x) for name in ("knee", "bend"))
    if best.parameters == 5:
        yield from _two_bends(x, y, knees, bends)
    else:
        yield from _one_bend(x, y, knees if best.parameters == 3 else bends)


def _finer(places: Sequence[float], x: FloatArray) -> FloatArray:
    """A grid over the places and one step of the coarse grid to both sides."""
    low, high = min(places), max(places)
    if not (math.isfinite(high) and low > 0.0):
        return np.empty(0)
    step = (x[-1 - _OUTSIDE] - x[_OUTSIDE]) / (_GRID - 1)
    return np.linspace(max(low - min(step, low / 4.0), x[0]), min(high + step, x[-1 - _OUTSIDE]), _FINE)


def _near(best: _Fit, fits: Sequence[_Fit], count: int) -> list[_Fit]:
    """Fits of the same model that the data don't tell from the best: its profile interval."""
    freedom = count - best.parameters
    most = best.loss * (1.0 + student_t(freedom) ** 2 / freedom)
    return [each for each in fits if each.parameters == best.parameters and each.loss <= most]


def _solve(columns: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
    """Least squares of relative deviations."""
    weighted = columns / y
    fitted: FloatArray = np.linalg.lstsq(weighted.T, np.ones_like(y), rcond=None)[0].astype(np.float64)
    residuals = 1.0 - fitted @ weighted
    return fitted, float(residuals @ residuals)


def _chosen(fits: Sequence[_Fit], count: int) -> _Fit:
    """The simplest model that no richer one beats clearly."""
    best: _Fit | None = None
    for parameters in (1, 2, 3, 4, 5):
        of_kind = [each for each in fits if each.parameters == parameters]
        candidate = min(of_kind, key=lambda each: each.loss, default=None)
        if candidate is None:
            continue
        if best is None or candidate.criterion(count) < best.criterion(count) - _CLEARLY_BETTER:
            best = candidate
    assert best is not None  # noqa: S101 -- a line or a constant always fits
    return best


def _described(best: _Fit, fits: Sequence[_Fit], x: FloatArray) -> Regimes:
    near = _near(best, fits, len(x))
    base, slow, sharp = (float(each) for each in best.coefficients)
    knees = [each.knee for each in near] if best.parameters in (3, 5) else []
    bends = [each.bend for each in near] if best.parameters in (4, 5) else []
    knee, bend = best.knee, best.bend
    if best.parameters == 3 and slow * knee > base:
        # Beyond the only breakpoint larger batches pass fewer rows per second: that is the sharp regime.
        knee, bend, slow, sharp, knees, bends = 0.0, knee, 0.0, slow, [], knees
    return Regimes(
        base_seconds=max(base, 0.0),
        slow_seconds_per_row=slow,
        sharp_seconds_per_row=sharp,
        flat_until=_breakpoint(knee, knees),
        sharp_from=_breakpoint(bend, bends),
        noise_ratio=math.sqrt(best.loss / (len(x) - best.parameters)),
        batches=len(x),
        smallest_rows=float(x[0]),
        largest_rows=float(x[-1]),
        knee_rows=knee,
        bend_rows=bend,
    )


def _breakpoint(at: float, near: Sequence[float]) -> Breakpoint | None:
    if not near:
        return None
    low, high = min(near), max(near)
    return None if high > _WIDEST * low else Breakpoint(at, low, high)


# How many records a batch should have, and how many a Kafka source can give it.

COMFORT_RATIO = 0.8
"""How near to the lower bound of the sharp regime, or to the full use of the time, a plan may go."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """What one batch of a Kafka source holds, at least and at most."""

    fewest_records: int
    most_records: int
    fewest_bytes: int
    most_bytes: int


def kafka_batch(
    *, partitions: int, max_fetch_bytes: int, smallest_record_bytes: int, largest_record_bytes: int
) -> Fetch:
    """Each partition gives the largest whole number of records within the limit of a fetch.

    The records of a fetch are alike, and have a whole number of bytes between the two sizes. A record larger than the
    limit comes alone: Kafka never withholds the first.
    """
    fewest = max(max_fetch_bytes // largest_record_bytes, 1)
    most = max(max_fetch_bytes // smallest_record_bytes, 1)
    sizes = [
        _bytes_of(count, max_fetch_bytes, smallest_record_bytes, largest_record_bytes)
        for count in range(fewest, most + 1)
    ]
    least, largest = min(low for low, _ in sizes), max(high for _, high in sizes)
    return Fetch(partitions * fewest, partitions * most, partitions * least, partitions * largest)


def _bytes_of(count: int, limit: int, smallest: int, largest: int) -> tuple[int, int]:
    """The least and the most bytes of a fetch of exactly `count` records."""
    at_least = max(smallest, limit // (count + 1) + 1)
    at_most = largest if count == 1 else min(largest, limit // count)
    return count * at_least, count * at_most


@dataclass(frozen=True, slots=True)
class Choice:
    """A batch size, why it is this one, and what it brings by the curve."""

    rows: float
    seconds: float
    reason: str

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds


def choose(regimes: Regimes, goal: Goal, *, rate: float | None = None, most_seconds: float | None = None) -> Choice:
    """Near the top of slow growth, comfortably under sharp growth; for latency and memory the smallest stable one.

    Never larger than measured batches where no sharp growth was seen: nothing is known beyond. `most_seconds` bounds
    the duration.
    """
    if regimes.sharp_from is not None:
        rows = COMFORT_RATIO * regimes.sharp_from.low
        reason = f"{COMFORT_RATIO:.0%} of where sharp growth begins at the earliest"
    elif regimes.bend_rows <= regimes.largest_rows:
        rows = COMFORT_RATIO * regimes.bend_rows
        reason = "below the fitted begin of sharp growth, whose place is not sure"
    else:
        rows, reason = regimes.largest_rows, "the largest measured: no sharp growth was seen up to there"
    if goal in (Goal.LATENCY, Goal.MEMORY) and rate is not None:
        least = smallest_stable(regimes, rate)
        if least is not None and least < rows:
            rows, reason = float(math.ceil(least)), "the smallest batch that keeps the rate"
    if most_seconds is not None and regimes.seconds(rows) > most_seconds:
        rows = _within(regimes, most_seconds, rows)
        reason = "as much as the batch time allows"
    whole = float(max(math.floor(rows), 1))
    return Choice(whole, regimes.seconds(whole), reason)


def smallest_stable(regimes: Regimes, rate: float) -> float | None:
    """The fewest rows that are done in 80 % of the time in which they arrive; None if no measured size is."""
    low, high = regimes.smallest_rows, min(regimes.largest_rows, regimes.bend_rows)
    if regimes.seconds(high) > COMFORT_RATIO * high / rate:
        return None
    for _ in range(60):
        middle = (low + high) / 2.0
        if regimes.seconds(middle) <= COMFORT_RATIO * middle / rate:
            high = middle
        else:
            low = middle
    return high


def _within(regimes: Regimes, most_seconds: float, most_rows: float) -> float:
    """The largest batch that takes no longer; at least one row."""
    low, high = 1.0, most_rows
    for _ in range(60):
        middle = (low + high) / 2.0
        if regimes.seconds(middle) <= most_seconds:
            low = middle
        else:
            high = middle
    return low
