"""What all ways read, and what they make of it, to show that it is the same."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

START = 1_767_225_600
STEP_SECONDS = 15
STEPS = 66_000
"""Eleven and a half days: six times what Prometheus answers at once."""
MOST_STEPS = 11_000
PARTITION_SPAN = "24h"
"""What the data source is tuned to here; with its own default, 11 000 steps, there would be six partitions."""
QUERY = "load"
LABELS = ("cluster", "container", "instance", "job", "namespace", "node", "pod")


@dataclass(frozen=True, slots=True)
class Outcome:
    rows: int
    seconds: float
    means: dict[str, float]
    """By pod."""
    again_seconds: float | None = None
    """For the same once more in the same process."""
    worker_bytes: int = 0
    """The most that any one of Spark's Python workers had for itself."""

    def tell(self) -> None:
        json.dump(asdict(self), sys.stdout)


def spans() -> Iterator[tuple[int, int]]:
    """The first and the last second of each request that Prometheus answers at once."""
    for first in range(0, STEPS, MOST_STEPS):
        last = min(first + MOST_STEPS, STEPS) - 1
        yield START + first * STEP_SECONDS, START + last * STEP_SECONDS


def keep_to(cores: int) -> None:
    """This process and all that it starts."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
