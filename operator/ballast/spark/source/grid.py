"""The steps at which a range query is evaluated, and how they are cut into partitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MOST_STEPS = 11_000
"""Points a series that Prometheus answers at once; more it refuses."""


@dataclass(frozen=True, slots=True)
class Grid:
    """`count` steps from `start_ms` on, `step_ms` apart. A narrower grid keeps to the same steps."""

    start_ms: int
    step_ms: int
    count: int

    @classmethod
    def between(cls, start_ms: int, end_ms: int, *, step_ms: int) -> Grid:
        """Both ends included, as Prometheus does; empty if the end is before the start."""
        return cls(start_ms, step_ms, max(0, (end_ms - start_ms) // step_ms + 1))

    @property
    def last_ms(self) -> int:
        """The last step; before `start_ms` if there is none."""
        return self.start_ms + (self.count - 1) * self.step_ms

    def narrowed(self, low_us: int | None, high_us: int | None) -> Grid:
        """The steps from `low_us` to `high_us`, both included; None is no bound. In microseconds, as Spark compares."""
        step_us, start_us = self.step_ms * 1000, self.start_ms * 1000
        first = 0 if low_us is None else max(0, -((start_us - low_us) // step_us))
        last = self.count - 1 if high_us is None else min(self.count - 1, (high_us - start_us) // step_us)
        return Grid(self.start_ms + first * self.step_ms, self.step_ms, max(0, last - first + 1))

    def parts(self, most_steps: int) -> Iterator[Grid]:
        """Cut into grids of at most so many steps, in order."""
        for done in range(0, self.count, most_steps):
            yield Grid(self.start_ms + done * self.step_ms, self.step_ms, min(most_steps, self.count - done))
