"""Samples of the last while, and their means: what a query over a metric window gives."""

from __future__ import annotations

import numpy as np

from ballast.model.arrays import BoolArray, FloatArray


class Window:
    """A ring of samples, one row a scrape; NaN where a sample is missing."""

    def __init__(self, width: int, rows: int) -> None:
        self._values = np.full((rows, width), np.nan)
        self._times = np.full(rows, -np.inf)
        self._next = 0

    def add(self, time: float, values: FloatArray) -> None:
        self._values[self._next] = values
        self._times[self._next] = time
        self._next = (self._next + 1) % len(self._times)

    def forget(self, lanes: BoolArray) -> None:
        """What is sampled there from now on is something else."""
        self._values[:, lanes] = np.nan

    def mean(self, after: float, until: float) -> FloatArray:
        """Of the samples in (after, until]; NaN where there are none."""
        rows = self._values[(self._times > after) & (self._times <= until)]
        known = ~np.isnan(rows)
        counts = known.sum(axis=0)
        sums = np.where(known, rows, 0.0).sum(axis=0)
        means: FloatArray = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return means

    def newest(self, until: float) -> FloatArray:
        """When the last sample was taken that is known at `until`; -inf where there is none."""
        seen = ~np.isnan(self._values) & (self._times <= until)[:, None]
        times: FloatArray = np.where(seen, self._times[:, None], -np.inf).max(axis=0)
        return times
