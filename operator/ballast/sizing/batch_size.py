"""How many records a batch should have, and how many a Kafka source can give it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ballast.api.topology_sizing import Goal
from ballast.sizing.batch_regimes import Regimes

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
