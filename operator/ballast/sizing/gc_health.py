"""What a healthy garbage collector looks like in a steady pipeline, and what the measured one does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ballast.sizing.gc_log import GcLog, Generation

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
    """All rules, in the order of their weight.

    A rule is only said to hold for a log that is understood: what is not understood may be what breaks it.
    """
    return tuple(_as_far_as_understood(check, log) for check in _checks(log))


def _as_far_as_understood(check: Check, log: GcLog) -> Check:
    if check.healthy is not True or log.understood:
        return check
    if log.passed_over:
        told = f"{log.passed_over} of {log.lines} lines are not understood"
    else:
        told = "the log doesn't tell its collector" if log.collector is None else f"{log.collector} is not judged"
    return replace(check, healthy=None, evidence=f"{told}; in the others: {check.evidence}")


def _checks(log: GcLog) -> Iterator[Check]:
    yield _full(log)
    yield _aborted(log)
    old = [each.seconds for each in log.pauses if each.generation in (Generation.OLD, Generation.FULL)]
    yield _pauses("old-generation pauses last 1 s at most", old, OLD_PAUSE_SECONDS, _OLD_REMEDY, log)
    yield _old_interval(log)
    young = [each.seconds for each in log.pauses if each.generation is Generation.YOUNG]
    yield _pauses("young pauses last 50 ms at most (goal 10 ms)", young, YOUNG_PAUSE_SECONDS, _YOUNG_REMEDY, log)
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
    metadata = sum("Metadata GC Threshold" in each.cause for each in full)
    if metadata and metadata + asked == len(full):
        of_code = f", {asked} by System.gc()" if asked else ""
        evidence = f"{evidence}, {metadata} because metaspace grew{of_code}"
        remedy = "set -XX:MetaspaceSize above what classes take: Java collects each time metaspace grows past it"
        return Check("no full collections", healthy=False, evidence=evidence, remedy=remedy)
    if asked == len(full):
        remedy = "the code calls System.gc(): raise spark.cleaner.periodicGC.interval, or find the call"
        return Check("no full collections", healthy=False, evidence=f"{evidence}, all by System.gc()", remedy=remedy)
    return Check("no full collections", healthy=False, evidence=evidence, remedy=_OLD_REMEDY)


def _aborted(log: GcLog) -> Check:
    rule = "no collection came too late"
    found = tuple(_too_late(log))
    if found:
        return Check(rule, healthy=False, evidence=", ".join(found), remedy=_OLD_REMEDY)
    return Check(rule, healthy=True, evidence="no allocation failed or waited in the log")


def _too_late(log: GcLog) -> Iterator[str]:
    if log.out_of_memory:
        yield f"{log.out_of_memory} threads got no memory"
    if log.stalls_seconds:
        yield f"{len(log.stalls_seconds)} allocation stalls, the longest {max(log.stalls_seconds) * 1000.0:.3g} ms"
    if log.failed_evacuations:
        yield f"{log.failed_evacuations} young collections found no room for survivors"
    degenerated = [each.seconds for each in log.pauses if each.degenerated]
    if degenerated:
        yield (
            f"{len(degenerated)} collections degenerated after a failed allocation, the longest "
            f"{max(degenerated) * 1000.0:.3g} ms"
        )


def _pauses(rule: str, seconds: Sequence[float], most: float, remedy: str, log: GcLog) -> Check:
    if not seconds and log.collector == "ZGC" and not log.pauses:
        return Check(rule, healthy=None, evidence="the log shows no pauses (ZGC's are in gc+phases)")
    if not seconds:
        return Check(rule, healthy=True, evidence="no such pause in the log")
    longer = sum(each > most for each in seconds)
    evidence = f"{len(seconds)} pauses, the longest {max(seconds) * 1000.0:.3g} ms, {longer} above {most * 1000.0:g} ms"
    healthy = longer <= _RARE_SHARE * len(seconds)
    return Check(rule, healthy=healthy, evidence=evidence, remedy="" if healthy else remedy)


def _old_interval(log: GcLog) -> Check:
    rule = "old-generation collections are 10 minutes or more apart"
    if not log.generational:
        return Check(rule, healthy=True, evidence=f"not judged: this {log.collector} has one generation")
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
