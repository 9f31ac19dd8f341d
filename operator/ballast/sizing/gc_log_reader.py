"""Reads the log of Java's garbage collectors (Java 9 and later: G1, ZGC, Shenandoah, Parallel and Serial).

The forms of lines are those that Java 17, 21 and 25 write under memory pressure with each collector.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from ballast.errors import InvalidField
from ballast.sizing.amount import amount
from ballast.sizing.gc_log import Cycle, GcLog, Generation, Pause

_LONGEST_LINE_CHARACTERS = 4096
"""Characters: what is longer is no line of a JVM, and patterns would take minutes for it."""
_UNITS = {"B": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_OF_KUBECTL = re.compile(r"^(?:\[(?P<pod>pod/[^\]]*)\] ?)?(?:(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)\d*Z )?")
"""What `kubectl logs` writes before each line, with --prefix and --timestamps."""
_DECORATED = re.compile(r"^((?:\[[^\]]*\])+) ?(.*)$")
_SECONDS = re.compile(r"\[(\d+(?:[.,]\d+)?)s\]")
_PARTS = {"ms": 1e3, "ns": 1e9}
_PART = re.compile(r"\[(\d+)(ms|ns)\]")
_WALL = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d+[+-]\d{4})\]")
_TAGS = re.compile(r"\[(?!(?:trace|debug|info|warning|error) *\])([a-z]\w*(?:,\w+)*) *\]$")
"""The last decoration, where it has words other than a level."""

_SIZES = r"(?P<before>\d+)(?P<before_unit>[BKMGT])->(?P<after>\d+)(?P<after_unit>[BKMGT])"
_MILLIS = r"(?P<millis>\d+(?:[.,]\d+)?)ms$"
_ID = r"^GC\((?P<id>\d+)\) "
_PAUSE = re.compile(
    _ID + r"(?P<old>[Oo]: )?(?:[Yy]: )?Pause (?P<what>.*?)"
    rf"(?: {_SIZES}\((?P<heap>\d+)(?P<heap_unit>[BKMGT])\))? {_MILLIS}"
)
_OLD_PAUSE = re.compile(r"Remark|Cleanup|.*\(Old\)|Degenerated(?!.*\(Young\))")
_MARKED = re.compile(rf"{_ID}Concurrent (?:Mark )?Cycle {_MILLIS}")
"""G1: a cycle of marking."""
_COLLECTED = re.compile(
    _ID + r"(?P<what>Garbage|Minor|Major) Collection \((?P<cause>[^)]*)\) "
    r"(?P<before>\d+)(?P<before_unit>[BKMGT])\(\d+%\)->(?P<after>\d+)(?P<after_unit>[BKMGT])\(\d+%\)"
    r"(?: (?P<seconds>\d+[.,]\d+)s)?$"
)
"""ZGC."""
_CLEANED = re.compile(rf"{_ID}Concurrent cleanup(?: \((?P<what>[^)]*)\))? {_SIZES}\(\d+[BKMGT]\) {_MILLIS}")
"""Shenandoah: twice in a cycle, before and after it moved what lives."""
_UPGRADED = re.compile(rf"{_ID}Degenerated GC upgrading to Full GC$")
_STALL = re.compile(rf"^(?:GC\(\d+\) )?(?:[YyOo]: )?(?P<kind>Allocation|Relocation) Stall \((?P<thread>.*)\) {_MILLIS}")
_OUT_OF_MEMORY = re.compile(r"^Out Of Memory \(")
_REGIONS = re.compile(_ID + r"(?P<kind>Survivor|Old|Humongous) regions: \d+->(?P<after>\d+)(?:\((?P<most>\d+)\))?$")
_OLD_SPACE = re.compile(
    _ID + r"(?:ParOldGen|PSOldGen|Tenured): \d+K(?:\(\d+K\))?->(?P<after>\d+)(?P<after_unit>K)\(\d+K\)"
)
"""Parallel and Serial. Java 11 writes no capacity before the arrow."""
_EXHAUSTED = re.compile(r"To-space exhausted|Evacuation Failure(?!: Pinned\))|concurrent mode failure", re.IGNORECASE)
"""`Pinned` alone tells no lack of room: native code held a region (Java 22 and later, also in an empty heap)."""
_SIZE = re.compile(
    r"^(?:GC\(\d+\) )?(?P<name>Heap [Rr]egion [Ss]ize|Heap Max Capacity|Max Capacity): (?P<size>\d+)(?P<unit>[BKMGT])\b"
)
_VERSION = re.compile(r"^Version: (\d{1,4})(?!\d)")
_USING = re.compile(
    r"^(?:Using|Initializing) (?:The )?(G1|Z Garbage Collector|Parallel|Serial|Shenandoah|Epsilon"
    r"|Concurrent Mark Sweep)"
)
_NAMES = {"Z Garbage Collector": "ZGC", "Concurrent Mark Sweep": "CMS"}
_TRACES = {
    "G1": re.compile(r"\(G1 |Concurrent Mark Cycle"),
    "ZGC": re.compile(r"\) (?:Garbage|Minor|Major) Collection \("),
    "Shenandoah": re.compile(r"Degenerated GC|Pause Init Mark|Concurrent cleanup"),
    "Parallel": re.compile(r"PSYoungGen|ParOldGen"),
    "Serial": re.compile(r"DefNew|Tenured"),
    "CMS": re.compile(r"\bParNew:|\bCMS:|Concurrent (?:Preclean|Sweep)"),
}
"""What only one collector writes, for a log whose beginning is gone."""
_DETAILS = frozenset(
    (
        "phases",
        "task",
        "metaspace",
        "heap",
        "stats",
        "cpu",
        "ergo",
        "ref",
        "age",
        "marking",
        "load",
        "mmu",
        "nmethod",
        "reloc",
        "free",
        "init",
        "exit",
        "start",
        "director",
        "tlab",
        "ihop",
        "region",
        "plab",
        "remset",
        "refine",
        "stringdedup",
        "promotion",
        "thread",
        "cset",
        "alloc",
        "humongous",
        "liveness",
        "sweep",
        "unload",
        "coops",
        "barrier",
        "survivor",
        "page",
        "jni",
        "classhisto",
        "verify",
        "tracking",
        "arguments",
        "bot",
        "sizer",
    )
)
"""Tags next to `gc` whose lines tell more of an event with another line, or of the start."""
_KNOWN = re.compile(
    r"^(?:GC\(\d+\) )?(?:[YyOo]: )?(?:"
    r"(?:Pause|Garbage Collection|Minor Collection|Major Collection)\b(?!.*(?:ms|%\))$)"
    r"|(?:Concurrent|Young Generation|Old Generation)\b"
    r"|Using |Initializing |Trigger\b|Failed to allocate|Cancelling GC|Cancel marking|Terminating old gc|Preempting old"
    r"|Heuristics ergonomically|Min heap equals|Coalescing and filling|Clearing All|Consider -XX|Uncommit|Periodic GC"
    r"|(?:Eden|Survivor|Old|Archive|Humongous) regions|Metaspace|Heap$|(?:Heap|Young|Old) |CPUs|Memory|NUMA|Large Page"
    r"|Compressed|Pre-touch|Parallel Workers|Concurrent Workers|CardTable|CDS|Narrow|Version|Soft |Min |Max |Mark "
    r"|Pacer for|Adaptive CSet|(?:Collectable|Immediate) Garbage|(?:Encountered|Discovered) +references"
    r"|Cleaned string|Phase \d|[A-Z]\w+(?: \w+)? Phase\b"
    r"|(?:Concurrent )?(?:Pre |Post )?(?:Evacuate|Merge|Choose|Other|Update|Initialize)\b| {2,}\S"
    r"|(?:User|Age|Load|MMU|NMethods|Soft|Weak|Final|Phantom|Used|Free|Live|Garbage|Allocated|Reclaimed|Capacity)\b)"
)
"""Beginnings of messages that tell of no trouble by themselves."""
_JAVA_8 = re.compile(
    r"\[(?:Full )?GC[ (\[\d]|\[(?:PSYoungGen|ParNew|DefNew|CMS|G1Ergonomics)\b|^CommandLine flags: -XX"
    r"|^\{Heap before GC|\d: \[(?:Concurrent|Pause) "
    r"|^(?:[\d.:T+-]+ )*(?:Application time: \d|Total time for which application threads)"
)
_OUT_OF_ORDER_SECONDS = 2.0
"""Threads of one JVM write within less."""


@dataclass(slots=True)
class _Reader:
    collector: str | None = None
    trace: str | None = None
    java: int | None = None
    heap: float | None = None
    grown_heap: float | None = None
    region: float | None = None
    first: float | None = None
    last: float = 0.0
    generational: bool = False
    began: dict[int, float] = field(default_factory=dict)
    pauses: list[Pause] = field(default_factory=list)
    cycles: list[Cycle] = field(default_factory=list)
    cleaned: dict[int, Cycle] = field(default_factory=dict)
    upgraded: set[int] = field(default_factory=set)
    stalls: list[float] = field(default_factory=list)
    out_of_memory: int = 0
    failed: set[int | str] = field(default_factory=set)
    """Collections by their number."""
    pods: set[str] = field(default_factory=set)
    starts: int = 0
    fell_back: bool = False
    survivors: list[tuple[int, int]] = field(default_factory=list)
    old_spaces: list[float] = field(default_factory=list)
    collected: list[float] = field(default_factory=list)
    regions: dict[str, int] = field(default_factory=dict)
    lines: int = 0
    timeless: int = 0
    passed_over: int = 0
    first_passed_over: str = ""
    java_8: int = 0

    def line(self, text: str) -> None:
        """Lines of other programs in the same file are no lines of a GC log, and count nowhere."""
        if len(text) > _LONGEST_LINE_CHARACTERS:
            return
        prefix = _OF_KUBECTL.match(text)
        decorated = _DECORATED.match(text[prefix.end() :].rstrip() if prefix else text.rstrip())
        if decorated is None:
            self.java_8 += bool(_JAVA_8.search(text))
            return
        tags = _TAGS.search(decorated[1])
        words = frozenset(tags[1].split(",")) if tags else frozenset()
        message = decorated[2]
        # What stands last may be the name of a host, too.
        of_gc = message.startswith("GC(") or _USING.match(message)
        if "gc" not in words and not of_gc and (tags or not _KNOWN.match(message)):
            return
        self.lines += 1
        if prefix and prefix["pod"]:
            self.pods.add(prefix["pod"])
        try:
            at = _moment(decorated[1], prefix["time"] if prefix else None)
            understood = self._message(at, message) or bool(words & _DETAILS) or bool(_KNOWN.match(message))
        except (ValueError, OverflowError):
            understood = False  # an amount that can't be true
        if not understood and message.strip():
            self.passed_over += 1
            self.first_passed_over = self.first_passed_over or message

    def _message(self, at: float | None, message: str) -> bool:
        if at is None:
            self.timeless += 1
            return False
        self.first = at if self.first is None else self.first
        self.fell_back = self.fell_back or at < self.last - _OUT_OF_ORDER_SECONDS
        self.last = max(self.last, at)
        if (number := re.match(_ID, message)) is not None:
            self.began.setdefault(int(number["id"]), at)
        if self.trace is None:
            self.trace = next((name for name, trace in _TRACES.items() if trace.search(message)), None)
        return self._event(at, message) or self._occupancy(message) or self._header(message)

    def _event(self, at: float, message: str) -> bool:
        if pause := _PAUSE.match(message):
            self._pause(at, pause)
        elif _MARKED.match(message):
            self.cycles.append(Cycle(at, Generation.OLD))
        elif cycle := _COLLECTED.match(message):
            self._zgc(at, cycle)
        elif cleaned := _CLEANED.match(message):
            self._shenandoah(at, cleaned)
        elif upgraded := _UPGRADED.match(message):
            self.upgraded.add(int(upgraded["id"]))
        elif stall := _STALL.match(message):
            if stall["kind"] == "Allocation":
                self.stalls.append(_millis(stall) / 1000.0)
        elif _OUT_OF_MEMORY.match(message):
            self.out_of_memory += 1
        elif _EXHAUSTED.search(message) and "Pause" not in message:
            number = re.match(_ID, message)
            self.failed.add(int(number["id"]) if number else f"line {self.lines}")
        else:
            return False
        return True

    def _pause(self, at: float, found: re.Match[str]) -> None:
        what = found["what"]
        if what.startswith("Full") or int(found["id"]) in self.upgraded:
            generation = Generation.FULL
        elif found["old"] or _OLD_PAUSE.match(what):
            generation = Generation.OLD
        else:
            generation = Generation.YOUNG
        before, after, heap = _bytes(found, "before"), _bytes(found, "after"), _bytes(found, "heap")
        pause = Pause(at, _millis(found) / 1000.0, generation, what, before, after)
        if _EXHAUSTED.search(what):
            self.failed.add(int(found["id"]))
        if heap is not None:
            self.grown_heap = max(heap, self.grown_heap or 0.0)
        self.pauses.append(pause)
        if after is not None and (generation is Generation.FULL or pause.degenerated):
            self.collected.append(after)

    def _zgc(self, at: float, found: re.Match[str]) -> None:
        what = found["what"]
        self.generational = self.generational or what in ("Minor", "Major")
        generation = Generation.YOUNG if what == "Minor" else Generation.OLD
        before, after = _bytes(found, "before"), _bytes(found, "after")
        began: float | None = self.began[int(found["id"])]
        if began == at:  # the only line of this collection: its beginning was not written
            began = at - _number(found["seconds"]) if found["seconds"] else None
        self.cycles.append(Cycle(at, generation, began, before, after))
        if generation is Generation.OLD and after is not None:
            self.collected.append(after)

    def _shenandoah(self, at: float, found: re.Match[str]) -> None:
        """One cycle from its first clean-up to its last."""
        number, before, after = int(found["id"]), _bytes(found, "before"), _bytes(found, "after")
        generation = Generation.YOUNG if found["what"] == "Young" else Generation.OLD
        self.generational = self.generational or found["what"] in ("Young", "Old", "Global")
        first = self.cleaned.get(number)
        if first is None:
            self.cleaned[number] = Cycle(at, generation, at - _millis(found) / 1000.0, before, after)
        else:
            self.cleaned[number] = Cycle(at, generation, first.began_seconds, first.before_bytes, after)

    def _occupancy(self, message: str) -> bool:
        if found := _REGIONS.match(message):
            kind, after = found["kind"], int(amount(found["after"]))
            if kind == "Survivor" and found["most"] is not None:
                self.survivors.append((after, int(amount(found["most"]))))
            self.regions[kind] = after
            if kind == "Humongous" and self.region is not None:  # the last of the three
                self.old_spaces.append(amount((self.regions.get("Old", 0) + after) * self.region))
        elif (found := _OLD_SPACE.match(message)) and (after_bytes := _bytes(found, "after")) is not None:
            self.old_spaces.append(after_bytes)
        else:
            return False
        return True

    def _header(self, message: str) -> bool:
        if size := _SIZE.match(message):
            known = amount(float(size["size"]) * _UNITS[size["unit"]])
            if size["name"].endswith("ize"):  # Java 11 writes it in lower case
                self.region = known
            else:
                self.heap = known
        elif version := _VERSION.match(message):
            self.java = int(version[1])
        elif using := _USING.match(message):
            self.starts += message.startswith("Using")
            self.collector = _NAMES.get(using[1], using[1])
        else:
            return False
        return True


def read(lines: Iterable[str], name: str) -> GcLog:
    """Of one JVM. Raises InvalidField for a file called `name` that holds no line of such a log."""
    reader = _Reader()
    for text in lines:
        reader.line(text)
    collector = reader.collector or reader.trace
    if reader.first is None or not (reader.pauses or reader.cycles or reader.cleaned or collector):
        raise InvalidField("--gc-log", name, _what_is_wrong(reader))
    if len(reader.pods) > 1 or reader.starts > 1 or reader.fell_back:
        raise InvalidField(
            "--gc-log", name, "it holds logs of several JVMs, or parts out of order: give that of one JVM"
        )
    cycles = sorted([*reader.cycles, *reader.cleaned.values()], key=lambda each: each.at_seconds)
    whole = [each.after_bytes for each in cycles if collector == "Shenandoah" and each.generation is Generation.OLD]
    return GcLog(
        collector=collector,
        java=reader.java,
        heap_bytes=reader.heap or reader.grown_heap,
        seconds=reader.last - reader.first,
        pauses=tuple(reader.pauses),
        cycles=tuple(cycles),
        stalls_seconds=tuple(reader.stalls),
        out_of_memory=reader.out_of_memory,
        failed_evacuations=len(reader.failed),
        survivors=tuple(reader.survivors),
        old_bytes=tuple(reader.old_spaces or [*reader.collected, *(each for each in whole if each is not None)]),
        generational=reader.generational or collector not in ("ZGC", "Shenandoah"),
        lines=reader.lines,
        passed_over=reader.passed_over,
        first_passed_over=reader.first_passed_over,
        region_size_missing=bool(reader.regions) and reader.region is None,
    )


def _what_is_wrong(reader: _Reader) -> str:
    write = "write one with -Xlog:gc*:file=gc.log:uptime,level,tags"
    if reader.java_8:
        return f"a GC log of Java 8 or older, which is not read; Spark 4 needs Java 17 or later: {write}"
    if reader.timeless:
        return f"its {reader.timeless} lines of a GC log have no time, by which nothing can be counted: {write}"
    if reader.lines:
        return f"its {reader.lines} lines of a GC log tell of no collection and no collector: give the whole log"
    return f"no line of a GC log: {write}"


def _moment(decorations: str, of_kubectl: str | None) -> float | None:
    """Raises ValueError for a time that can't be."""
    if found := _SECONDS.search(decorations):
        return amount(_number(found[1]))
    if found := _PART.search(decorations):
        return amount(found[1]) / _PARTS[found[2]]
    if found := _WALL.search(decorations):
        return datetime.strptime(found[1].replace(",", "."), "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
    return None if of_kubectl is None else datetime.fromisoformat(f"{of_kubectl[:26]}+00:00").timestamp()


def _number(text: str) -> float:
    return amount(text.replace(",", "."))


def _millis(found: re.Match[str]) -> float:
    return _number(found["millis"])


def _bytes(found: re.Match[str], name: str) -> float | None:
    """Raises ValueError for more than there can be."""
    size = found[name]
    return None if size is None else amount(float(size) * _UNITS[found[f"{name}_unit"]])
