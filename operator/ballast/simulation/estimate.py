"""A mean over cases, and how well it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from statistics import fmean, stdev

_T = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
"""97.5 % quantiles of Student's t, by degrees of freedom from 1 on."""
_NORMAL = 1.95996


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of the mean: two-sided 95 % interval by Student's t over the cases, each of which counts as one drawing."""

    mean: float
    """NaN where no case tells."""
    half_width: float
    """Half the interval's width; NaN where fewer than two cases tell."""
    cases: int
    """That tell."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """NaN = this case does not tell."""
        known = [value for value in values if isfinite(value)]
        if len(known) < 2:
            return cls(known[0] if known else nan, nan, len(known))
        return cls(fmean(known), quantile(len(known) - 1) * stdev(known) / sqrt(len(known)), len(known))

    @property
    def low(self) -> float:
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        return self.mean + self.half_width


def quantile(freedom: int) -> float:
    """97.5 % of Student's t; beyond 30 degrees of freedom to four figures (Cornish-Fisher's first terms)."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = _NORMAL
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
