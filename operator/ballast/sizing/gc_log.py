"""Reads the unified log of Java's garbage collectors (Java 9 and later): G1, ZGC, Parallel and Serial."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from statistics import median

from ballast.errors import InvalidField

_UNITS = {"B": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_DECORATED = re.compile(r"^((?:\[[^\]]*\])+) ?(.*)$")
_UPTIME = re.compile(r"\[(\d+(?:\.\d+)?)s\]")
_UPTIME_MILLIS = re.compile(r"\[(\d+)ms\]")
_WALL = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+[+-]\d{4})\]")
_PAUSE = re.compile(
    r"GC\((?P<id>\d+)\) (?:[YyOo]: )?Pause (?P<what>.*?)"
    r"(?: (?P<before>\d+)(?P<before_unit>[BKMGT])->(?P<after>\d+)(?P<after_unit>[BKMGT])"
    r"\((?P<heap>\d+)(?P<heap_unit>[BKMGT])\))? (?P<millis>\d+(?:\.\d+)?)ms$"
)
_OLD_PHASE = re.compile(r"GC\(\d+\) O: ")
_CYCLE = re.compile(
    r"GC\(\d+\) (?P<what>Garbage Collection|Minor Collection|Major Collection|Concurrent (?:Mark )?Cycle)"
    r" ?(?:\((?P<cause>[^)]*)\) (?P<before>\d+)(?P<before_unit>[BKMGT])\(\d+%\)->(?P<after>\d+)(?P<after_unit>[BKMGT])"
    r"\(\d+%\)(?: (?P<seconds>\d+\.\d+)s)?| (?P<millis>\d+(?:\.\d+)?)ms)$"
)
_STALL = re.compile(r"Allocation Stall \((?P<thread>[^)]*)\) (?P<millis>\d+(?:\.\d+)?)ms$")
_REGIONS = re.compile(r"GC\(\d+\) (?P<kind>Survivor|Old|Humongous) regions: \d+->(?P<after>\d+)(?:\((?P<most>\d+)\))?$")
_EXHAUSTED = re.compile(r"To-space exhausted|Evacuation Failure|concurrent mode failure", re.IGNORECASE)
_SIZE = re.compile(r"(?P<name>Heap Region Size|Heap Max Capacity|Max Capacity): (?P<size>\d+)(?P<unit>[BKMGT])\b")
_VERSION = re.compile(r"Version: (\d+)")
_USING = re.compile(r"Using (?:The )?(G1|Z Garbage Collector|Parallel|Serial|Shenandoah)")


class Generation(StrEnum):
    YOUNG = "young"
    OLD = "old"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Pause:
    """The application stood still."""

    at_seconds: float
    """Since the start of the JVM, or of the log if that shows wall time only."""
    seconds: float
    generation: Generation
    cause: str
    before_bytes: float | None = None
    after_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class Cycle:
    """A collection next to the running application: a cycle of marking of G1, or any collection of ZGC."""

    at_seconds: float
    generation: Generation
    before_bytes: float | None = None
    after_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class GcLog:
    collector: str | None
    """G1, ZGC, Parallel, Serial or Shenandoah."""
    java: int | None
    heap_bytes: float | None
    seconds: float
    """From the first line to the last."""
    pauses: tuple[Pause, ...]
    cycles: tuple[Cycle, ...] = ()
    stalls_seconds: tuple[float, ...] = ()
    """ZGC: threads that waited for memory."""
    failed_evacuations: int = 0
    """G1: a young collection that found no room for survivors."""
    survivors: tuple[tuple[int, int], ...] = ()
    """G1: regions used and the most, after each young collection."""
    old_bytes: tuple[float, ...] = ()
    """Occupancy of the old generation (humongous objects included) after collections, in order."""
    generational: bool = True

    @property
    def concurrent(self) -> bool:
        """Whether collections run next to the application, so that their number costs no pause."""
        return self.collector in ("ZGC", "Shenandoah")

    @property
    def allocation_bytes_per_second(self) -> float | None:
        """What the application allocates: the growth between collections. None for fewer than three of them."""
        events: list[Pause | Cycle] = [*self.pauses, *self.cycles]
        marks = sorted(
            (each.at_seconds, each.before_bytes, each.after_bytes)
            for each in events
            if each.before_bytes is not None and each.after_bytes is not None
        )
        if len(marks) < 3 or marks[-1][0] <= marks[0][0]:
            return None
        grown = math.fsum(max(later[1] - earlier[2], 0.0) for earlier, later in pairwise(marks))
        return grown / (marks[-1][0] - marks[0][0])

    @property
    def steady_old_bytes(self) -> float | None:
        """The median occupancy of the old generation in the second half of the log; None if it shows none."""
        tail = self.old_bytes[len(self.old_bytes) // 2 :]
        return median(tail) if tail else None


@dataclass(slots=True)
class _Reader:
    collector: str | None = None
    java: int | None = None
    heap_bytes: float | None = None
    region_bytes: float | None = None
    first: float | None = None
    last: float = 0.0
    generational: bool = False
    pauses: list[Pause] = field(default_factory=list)
    cycles: list[Cycle] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    failed: int = 0
    survivors: list[tuple[int, int]] = field(default_factory=list)
    old: list[float] = field(default_factory=list)
    regions: dict[str, int] = field(default_factory=dict)

    def line(self, text: str) -> None:
        found = _DECORATED.match(text.rstrip())
        at = _moment(found[1]) if found else None
        if found is None or at is None:
            return
        self.first = at if self.first is None else self.first
        self.last = max(self.last, at)
        message = found[2].strip()
        if pause := _PAUSE.search(message):
            self._pause(at, pause, message)
        elif cycle := _CYCLE.search(message):
            self._cycle(at, cycle)
        elif regions := _REGIONS.search(message):
            self._regions(regions)
        elif stall := _STALL.search(message):
            self.stalls.append(float(stall["millis"]) / 1000.0)
        elif _EXHAUSTED.search(message) and "Pause" not in message:
            self.failed += 1
        else:
            self._header(message)

    def _pause(self, at: float, found: re.Match[str], message: str) -> None:
        what = found["what"]
        if what.startswith("Full"):
            generation = Generation.FULL
        elif what.startswith(("Remark", "Cleanup")) or _OLD_PHASE.search(message):
            generation = Generation.OLD
        else:
            generation = Generation.YOUNG
        self.failed += bool(_EXHAUSTED.search(what))
        before, after = _bytes(found, "before"), _bytes(found, "after")
        self.heap_bytes = self.heap_bytes or _bytes(found, "heap")
        self.pauses.append(Pause(at, float(found["millis"]) / 1000.0, generation, what, before, after))
        if generation is Generation.FULL and after is not None:
            self.old.append(after)

    def _cycle(self, at: float, found: re.Match[str]) -> None:
        what = found["what"]
        self.generational = self.generational or what in ("Minor Collection", "Major Collection")
        young = what == "Minor Collection"
        before, after = _bytes(found, "before"), _bytes(found, "after")
        self.cycles.append(Cycle(at, Generation.YOUNG if young else Generation.OLD, before, after))
        if not young and after is not None:
            self.old.append(after)

    def _regions(self, found: re.Match[str]) -> None:
        kind, after = found["kind"], int(found["after"])
        if kind == "Survivor" and found["most"] is not None:
            self.survivors.append((after, int(found["most"])))
        self.regions[kind] = after
        if kind == "Humongous" and self.region_bytes is not None:  # the last of the three
            self.old.append((self.regions.get("Old", 0) + after) * self.region_bytes)

    def _header(self, message: str) -> None:
        if size := _SIZE.search(message):
            amount = int(size["size"]) * float(_UNITS[size["unit"]])
            if size["name"] == "Heap Region Size":
                self.region_bytes = amount
            else:
                self.heap_bytes = amount
        elif version := _VERSION.match(message):
            self.java = int(version[1])
        elif (using := _USING.match(message)) and self.collector is None:
            self.collector = "ZGC" if using[1].startswith("Z ") else using[1]


def read(lines: Iterable[str], name: str) -> GcLog:
    """Of one JVM. Raises InvalidField for a file called `name` that holds no line of such a log."""
    reader = _Reader()
    for text in lines:
        reader.line(text)
    if reader.first is None or not (reader.pauses or reader.cycles or reader.collector):
        raise InvalidField("--gc-log", name, "no line of a GC log: write one with -Xlog:gc*:file=gc.log:uptime,tags")
    return GcLog(
        collector=reader.collector,
        java=reader.java,
        heap_bytes=reader.heap_bytes,
        seconds=reader.last - reader.first,
        pauses=tuple(reader.pauses),
        cycles=tuple(reader.cycles),
        stalls_seconds=tuple(reader.stalls),
        failed_evacuations=reader.failed,
        survivors=tuple(reader.survivors),
        old_bytes=tuple(reader.old),
        generational=reader.generational or reader.collector != "ZGC",
    )


def _moment(decorations: str) -> float | None:
    if found := _UPTIME.search(decorations):
        return float(found[1])
    if found := _UPTIME_MILLIS.search(decorations):
        return float(found[1]) / 1000.0
    if found := _WALL.search(decorations):
        return datetime.strptime(found[1], "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
    return None


def _bytes(found: re.Match[str], name: str) -> float | None:
    size = found[name]
    return None if size is None else float(int(size) * _UNITS[found[f"{name}_unit"]])
