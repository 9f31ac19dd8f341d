"""The log of Java's garbage collectors (Java 9 and later: G1, ZGC, Parallel and Serial), read and judged."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from statistics import median

from ballast.errors import InvalidField
from ballast.sizing.amount import amount

_LONGEST_LINE_CHARACTERS = 4096
"""Characters: what is longer is no line of a JVM, and patterns would take minutes for it."""
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
_VERSION = re.compile(r"Version: (\d{1,4})(?!\d)")
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
        """Passed over if it is none of a GC log, or tells an amount that can't be true."""
        if len(text) <= _LONGEST_LINE_CHARACTERS:
            with suppress(ValueError, OverflowError):
                self._line(text)

    def _line(self, text: str) -> None:
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
            self.stalls.append(amount(stall["millis"]) / 1000.0)
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
        self.pauses.append(Pause(at, amount(found["millis"]) / 1000.0, generation, what, before, after))
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
        kind, after = found["kind"], int(amount(found["after"]))
        if kind == "Survivor" and found["most"] is not None:
            self.survivors.append((after, int(amount(found["most"]))))
        self.regions[kind] = after
        if kind == "Humongous" and self.region_bytes is not None:  # the last of the three
            self.old.append(amount((self.regions.get("Old", 0) + after) * self.region_bytes))

    def _header(self, message: str) -> None:
        if size := _SIZE.search(message):
            known = amount(float(size["size"]) * _UNITS[size["unit"]])
            if size["name"] == "Heap Region Size":
                self.region_bytes = known
            else:
                self.heap_bytes = known
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
    """Raises ValueError for a time that can't be."""
    if found := _UPTIME.search(decorations):
        return amount(found[1])
    if found := _UPTIME_MILLIS.search(decorations):
        return amount(found[1]) / 1000.0
    if found := _WALL.search(decorations):
        return datetime.strptime(found[1], "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
    return None


def _bytes(found: re.Match[str], name: str) -> float | None:
    """Raises ValueError for more than there can be."""
    size = found[name]
    return None if size is None else amount(float(size) * _UNITS[found[f"{name}_unit"]])


# What a healthy garbage collector looks like in a steady pipeline, and what the measured one does.

YOUNG_PAUSE_SECONDS = 0.050
YOUNG_INTERVAL_SECONDS = 10.0
OLD_PAUSE_SECONDS = 1.0
OLD_INTERVAL_SECONDS = 600.0
_RARE_SHARE = 0.05
"""A rule is broken where more than this share of the pauses breaks it: one slow pause at the start is no finding."""


@dataclass(frozen=True, slots=True)
class Check:
    """One rule, judged. `healthy` is None where the log can't tell."""

    rule: str
    healthy: bool | None
    evidence: str
    remedy: str = ""


def gc_checks(log: GcLog) -> tuple[Check, ...]:
    """All rules, in the order of their weight."""
    return tuple(_checks(log))


def _checks(log: GcLog) -> Iterator[Check]:
    yield _full(log)
    yield _aborted(log)
    old = [each.seconds for each in log.pauses if each.generation in (Generation.OLD, Generation.FULL)]
    yield _pauses("old-generation pauses last 1 s at most", old, OLD_PAUSE_SECONDS, _OLD_REMEDY)
    yield _old_interval(log)
    young = [each.seconds for each in log.pauses if each.generation is Generation.YOUNG]
    yield _pauses("young pauses last 50 ms at most (goal 10 ms)", young, YOUNG_PAUSE_SECONDS, _YOUNG_REMEDY)
    yield _young_interval(log)
    yield _survivors(log)


_OLD_REMEDY = "raise spark.executor.memory, or lower what the heap keeps (state in RocksDB, fewer cached blocks)"
_YOUNG_REMEDY = "lower -XX:MaxGCPauseMillis, or use generational ZGC (Java 21)"
_ROOM_REMEDY = "raise spark.executor.memory: the new generation must hold ten seconds of allocation"


def _full(log: GcLog) -> Check:
    full = [each for each in log.pauses if each.generation is Generation.FULL]
    if not full:
        return Check("no full collections", healthy=True, evidence="none in the log")
    longest = max(each.seconds for each in full)
    asked = sum("System.gc" in each.cause for each in full)
    evidence = f"{len(full)} in the log, the longest {longest * 1000.0:.3g} ms"
    if asked == len(full):
        remedy = "the code calls System.gc(): raise spark.cleaner.periodicGC.interval, or find the call"
        return Check("no full collections", healthy=False, evidence=f"{evidence}, all by System.gc()", remedy=remedy)
    return Check("no full collections", healthy=False, evidence=evidence, remedy=_OLD_REMEDY)


def _aborted(log: GcLog) -> Check:
    rule = "no collection came too late"
    if log.stalls_seconds:
        evidence = f"{len(log.stalls_seconds)} allocation stalls, the longest {max(log.stalls_seconds) * 1000.0:.3g} ms"
        return Check(rule, healthy=False, evidence=evidence, remedy=_OLD_REMEDY)
    if log.failed_evacuations:
        evidence = f"{log.failed_evacuations} young collections found no room for survivors"
        return Check(rule, healthy=False, evidence=evidence, remedy=_OLD_REMEDY)
    return Check(rule, healthy=True, evidence="no allocation stall and no failed evacuation in the log")


def _pauses(rule: str, seconds: Sequence[float], most: float, remedy: str) -> Check:
    if not seconds:
        return Check(rule, healthy=True, evidence="no such pause in the log")
    longer = sum(each > most for each in seconds)
    evidence = f"{len(seconds)} pauses, the longest {max(seconds) * 1000.0:.3g} ms, {longer} above {most * 1000.0:g} ms"
    healthy = longer <= _RARE_SHARE * len(seconds)
    return Check(rule, healthy=healthy, evidence=evidence, remedy="" if healthy else remedy)


def _old_interval(log: GcLog) -> Check:
    rule = "old-generation collections are 10 minutes or more apart"
    if not log.generational:
        return Check(rule, healthy=True, evidence="not judged: this ZGC has one generation")
    # G1 shows a cycle of marking as a whole, and its pauses next to it: the cycle counts.
    full = [each.at_seconds for each in log.pauses if each.generation is Generation.FULL]
    marked = [each.at_seconds for each in log.cycles if each.generation is Generation.OLD]
    return _interval(rule, sorted([*full, *marked]), OLD_INTERVAL_SECONDS, log, remedy=_OLD_REMEDY)


def _young_interval(log: GcLog) -> Check:
    rule = "young collections are 10 s or more apart"
    if log.concurrent:
        evidence = f"not judged: {log.collector} collects next to the application"
        return Check(rule, healthy=True, evidence=evidence)
    young = [each.at_seconds for each in log.pauses if each.generation is Generation.YOUNG]
    return _interval(rule, young, YOUNG_INTERVAL_SECONDS, log, remedy=_ROOM_REMEDY)


def _interval(rule: str, at: Sequence[float], least: float, log: GcLog, *, remedy: str) -> Check:
    if len(at) < 2:
        if log.seconds < least:
            return Check(rule, healthy=None, evidence=f"the log spans {log.seconds:.3g} s only")
        return Check(rule, healthy=True, evidence=f"{len(at)} in {log.seconds:.3g} s")
    gaps = sorted(later - earlier for earlier, later in pairwise(at))
    middle = gaps[len(gaps) // 2]
    healthy = middle >= least
    evidence = f"{len(at)} in {log.seconds:.3g} s, typically {middle:.3g} s apart"
    return Check(rule, healthy=healthy, evidence=evidence, remedy="" if healthy else remedy)


def _survivors(log: GcLog) -> Check:
    rule = "survivors are not filled"
    if not log.survivors:
        return Check(rule, healthy=None, evidence="the log shows no survivor regions (they are in gc+heap)")
    filled = sum(used >= most for used, most in log.survivors if most > 0)
    healthy = filled <= _RARE_SHARE * len(log.survivors)
    evidence = f"filled after {filled} of {len(log.survivors)} young collections"
    remedy = "" if healthy else "raise spark.executor.memory, or lower -XX:SurvivorRatio: records age too early"
    return Check(rule, healthy=healthy, evidence=evidence, remedy=remedy)
