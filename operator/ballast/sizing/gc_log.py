"""What the log of one of Java's garbage collectors tells, as values: pauses, cycles, occupancy, allocation.

`gc_log_reader` reads it. Every line that has the tag `gc` is either understood or counted in `passed_over`, so that
nothing is claimed about the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import median

_APART_SHARE = 0.1
"""Of the time, that must lie between collections for what is allocated there to stand for the whole."""
_RARE_SHARE = 0.01
"""Lines that are not understood, from which on health is unknown."""


class Generation(StrEnum):
    YOUNG = "young"
    OLD = "old"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Pause:
    """The application stood still."""

    at_seconds: float
    """Its end, since the start of the JVM, or of the log if that shows wall time only."""
    seconds: float
    generation: Generation
    cause: str
    before_bytes: float | None = None
    after_bytes: float | None = None

    @property
    def degenerated(self) -> bool:
        """Shenandoah: an allocation failed, and the collection was ended while the application stood still."""
        return self.cause.startswith("Degenerated")


@dataclass(frozen=True, slots=True)
class Cycle:
    """A collection next to the running application: a cycle of marking of G1, or any one of ZGC and Shenandoah."""

    at_seconds: float
    generation: Generation
    began_seconds: float | None = None
    """When `before_bytes` were counted; None where the log doesn't tell."""
    before_bytes: float | None = None
    after_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class GcLog:
    collector: str | None
    """G1, ZGC, Parallel, Serial, Shenandoah or Epsilon; None if the log doesn't tell."""
    java: int | None
    heap_bytes: float | None
    seconds: float
    """From the first line to the last."""
    pauses: tuple[Pause, ...]
    cycles: tuple[Cycle, ...] = ()
    stalls_seconds: tuple[float, ...] = ()
    """ZGC: threads that waited for memory."""
    out_of_memory: int = 0
    """ZGC: threads that got none."""
    failed_evacuations: int = 0
    """G1: a young collection that found no room for survivors."""
    survivors: tuple[tuple[int, int], ...] = ()
    """G1: regions used and the most, after each young collection."""
    old_bytes: tuple[float, ...] = ()
    """Occupancy of the old generation (humongous objects included) after collections, in order."""
    generational: bool = True
    lines: int = 0
    """With the tag `gc`."""
    passed_over: int = 0
    """Of these, not understood."""
    first_passed_over: str = ""
    region_size_missing: bool = False
    """G1: it shows regions, but not how large one is, which only the log's beginning tells."""

    @property
    def understood(self) -> bool:
        """Whether health can be judged: the collector is known, and at most 1 % of its lines are not understood."""
        return self.collector not in (None, "Epsilon", "CMS") and self.passed_over <= _RARE_SHARE * self.lines

    @property
    def concurrent(self) -> bool:
        """Whether collections run next to the application, so that their number costs no pause."""
        return self.collector in ("ZGC", "Shenandoah")

    @property
    def allocation_bytes_per_second(self) -> float | None:
        """What the application allocates: the growth from the end of a collection to the beginning of the next one.

        None for fewer than three collections, where the log doesn't tell when one began, and where a collection was
        under way for nearly all of the time.
        """
        marks = self._marks()
        if len(marks) < 3 or any(began is None for began, *_ in marks):
            return None
        gaps = [
            (later[0] - earlier[1], max(later[2] - earlier[3], 0.0))
            for earlier, later in pairwise(marks)
            if later[0] is not None and later[0] > earlier[1]
        ]
        seconds = math.fsum(gap for gap, _ in gaps)
        if seconds <= 0.0 or seconds < _APART_SHARE * (marks[-1][1] - marks[0][1]):
            return None
        return math.fsum(grown for _, grown in gaps) / seconds

    @property
    def steady_old_bytes(self) -> float | None:
        """The median occupancy of the old generation in the second half of the log; None if it shows none."""
        return _later_median(self.old_bytes)

    @property
    def occupied_bytes(self) -> float | None:
        """The median occupancy of the heap after collections in the second half of the log; None if it shows none."""
        return _later_median([after for *_, after in self._marks()])

    def _marks(self) -> list[tuple[float | None, float, float, float]]:
        """Beginning, end, occupancy before and after of each collection that tells both, by its end."""
        found: list[tuple[float | None, float, float, float]] = [
            (each.at_seconds, each.at_seconds, each.before_bytes, each.after_bytes)  # nothing is allocated meanwhile
            for each in self.pauses
            if each.before_bytes is not None and each.after_bytes is not None
        ]
        found += [
            (each.began_seconds, each.at_seconds, each.before_bytes, each.after_bytes)
            for each in self.cycles
            if each.before_bytes is not None and each.after_bytes is not None
        ]
        return sorted(found, key=lambda mark: mark[1])


def _later_median(values: tuple[float, ...] | list[float]) -> float | None:
    tail = values[len(values) // 2 :]
    return median(tail) if tail else None
