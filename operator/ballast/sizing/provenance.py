"""Every value says where it comes from: measured, declared or assumed, from what, and how sure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from statistics import NormalDist

CONFIDENCE = 0.95
_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2.0)


class Origin(StrEnum):
    MEASURED = "Measured"
    DECLARED = "Declared"
    ASSUMED = "Assumed"


_WEAKNESS = {Origin.MEASURED: 0, Origin.DECLARED: 1, Origin.ASSUMED: 2}


@dataclass(frozen=True, slots=True)
class Value:
    """An amount with its origin. `low` and `high` bound it; None for a declared value, which is taken as is."""

    amount: float
    unit: str
    origin: Origin
    source: str
    """A field of the spec, a file, a query, or the reason for an assumption."""
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds; the amount itself where there are none."""
        return (self.amount if self.low is None else self.low, self.amount if self.high is None else self.high)

    def times(self, factor: float, source: str) -> Value:
        """The what-if value: `factor` times this one."""
        low, high = (None if end is None else end * factor for end in (self.low, self.high))
        return replace(self, amount=self.amount * factor, low=low, high=high, source=source)


@dataclass(frozen=True, slots=True)
class Variable:
    """A value that has a name, and for a computed one its formula and inputs."""

    name: str
    value: Value
    formula: str = ""
    inputs: tuple[str, ...] = ()
    note: str = ""
    """What is surprising about it, such as a declared value that the formula contradicts."""


def declared(amount: float, unit: str, field: str) -> Value:
    return Value(float(amount), unit, Origin.DECLARED, field)


def assumed(amount: float, unit: str, reason: str, *, low: float | None = None, high: float | None = None) -> Value:
    return Value(float(amount), unit, Origin.ASSUMED, reason, low, high)


def measured(amount: float, unit: str, source: str, *, low: float | None = None, high: float | None = None) -> Value:
    return Value(float(amount), unit, Origin.MEASURED, source, low, high)


def measured_ratio(tops: Sequence[float], bottoms: Sequence[float], unit: str, source: str) -> Value:
    """Σ tops ÷ Σ bottoms with its 95 % interval (linearization); for pairs such as seconds and records of a batch.

    An interval that is as wide as that reaches as far below as above by factor: the ratio is above 0, and others are
    divided by it.
    """
    total = sum(bottoms)
    ratio = sum(tops) / total
    count = len(tops)
    if count < 3:
        return measured(ratio, unit, source)
    residuals = [top - ratio * bottom for top, bottom in zip(tops, bottoms, strict=True)]
    spread = math.sqrt(sum(each * each for each in residuals) / (count - 1) * count) / total
    half = student_t(count - 1) * spread
    low = ratio - half if half < ratio / 2.0 else ratio * ratio / (ratio + half)
    return measured(ratio, unit, source, low=low, high=ratio + half)


def student_t(freedom: int) -> float:
    """The quantile of Student's t that bounds a two-sided 95 % interval, by the Cornish-Fisher expansion.

    Exact for one and two degrees of freedom; within 0.5 % above.
    """
    tail = 0.5 + CONFIDENCE / 2.0
    if freedom == 1:
        return math.tan(math.pi * (tail - 0.5))
    if freedom == 2:
        return (2.0 * tail - 1.0) / math.sqrt(2.0 * tail * (1.0 - tail))
    z, n = _Z, float(freedom)
    terms = (
        z,
        (z**3 + z) / 4.0 / n,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0 / n**2,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0 / n**3,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0 / n**4,
    )
    return sum(terms)


def weakest(values: Sequence[Value]) -> Origin:
    """Assumed if one of them is, else Declared if one is, else Measured."""
    return max((value.origin for value in values), key=_WEAKNESS.__getitem__, default=Origin.MEASURED)


def derived(
    name: str,
    unit: str,
    formula: str,
    compute: Callable[..., float],
    *,
    inputs: Mapping[str, Value],
    note: str = "",
) -> Variable:
    """A computed variable. Its origin is that of its weakest input, its bounds those over all ends of its inputs.

    `compute` takes the inputs by position, and is monotone in each of them.
    """
    values = tuple(inputs.values())
    amount = compute(*(value.amount for value in values))
    bounded = any(value.low is not None or value.high is not None for value in values)
    results = [compute(*corner) for corner in product(*({*value.ends} for value in values))] if bounded else []
    origin = weakest(values)
    source = ", ".join(label for label, value in inputs.items() if value.origin is origin)
    low, high = (min(results), max(results)) if results else (None, None)
    return Variable(name, Value(amount, unit, origin, source, low, high), formula, tuple(inputs), note)
