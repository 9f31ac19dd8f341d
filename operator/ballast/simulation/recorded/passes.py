"""When a replayed policy has its passes: when the operator had them, where it had them about as often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np

_SLOWER = 1.5
"""Passes that take long, or wait for a slow Prometheus, come later than the interval says, by up to this factor."""
_SOONER = 0.75


def due(recorded: Sequence[float], interval_seconds: float) -> Iterator[float]:
    """Seconds since the recording began, ascending and without end.

    `recorded`: the operator's passes, ascending. Where it had none for long, as before it was installed, there are
    passes at the interval.
    """
    last = -interval_seconds
    for moment in recorded if _as_often(recorded, interval_seconds) else ():
        while moment - last > _SLOWER * interval_seconds:
            last += interval_seconds
            yield last
        last = moment
        yield last
    yield from count(last + interval_seconds, interval_seconds)


def _as_often(recorded: Sequence[float], interval_seconds: float) -> bool:
    """A policy of another interval has passes of its own, and so has any where the record is too coarse to tell."""
    apart = np.diff(recorded)
    return bool(len(apart)) and _SOONER <= float(np.median(apart)) / interval_seconds <= _SLOWER
