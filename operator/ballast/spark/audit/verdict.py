"""Whether the stages of each micro-batch agree: what a stage emits, the stages after it must consume.

Source: Storm's acker. Its tuple tree is complete when the XOR of all ids, each sent and acked, is zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

_MOST_MISSING = 1000
"""Missing micro-batches in a row that are reported."""
_MOST_MISSING_OF_QUERY = 10_000
"""In all: one that numbers its micro-batches absurdly would make millions."""


@dataclass(frozen=True, slots=True)
class Sum:
    """Of a set of records: how many, and the XOR of the hashes of their ids (64 bits, signed)."""

    count: int = 0
    xor: int = 0

    def plus(self, other: Sum) -> Sum:
        return Sum(self.count + other.count, self.xor ^ other.xor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What one stage of one micro-batch recorded. `after` names the stages that it reads; none for a source."""

    query: str
    batch: int
    stage: str
    after: tuple[str, ...] = ()
    consumed: Sum
    emitted: Sum
    recorded_ms: int
    run: str = ""
    recomputed: bool = False
    """Spark ran tasks of this micro-batch again: stages before a shuffle may count their records twice."""


class Status(StrEnum):
    BALANCED = "balanced"
    OPEN = "open"
    """Stages disagree or are not recorded yet, and the timeout is not over."""
    RECOMPUTED = "recomputed"
    """Stages disagree, but Spark counted some records twice: nothing is proved."""
    UNBALANCED = "unbalanced"
    UNRECORDED = "unrecorded"
    """The ledger has later micro-batches of the query, and nothing of this one."""

    @property
    def is_finding(self) -> bool:
        return self in (Status.UNBALANCED, Status.UNRECORDED)


@dataclass(frozen=True, slots=True)
class Gap:
    """Between what `stage` should have consumed and what it did; `consumed` is None if it recorded nothing."""

    stage: str
    after: tuple[str, ...]
    expected: Sum
    consumed: Sum | None

    @property
    def difference(self) -> int:
        """The hash of the id of the one record that is missing or too many, if there is only one."""
        return self.expected.xor ^ (self.consumed or Sum()).xor

    def __str__(self) -> str:
        before = " and ".join(self.after)
        if self.consumed is None:
            return f"{self.stage} recorded nothing; {before} emitted {self.expected.count}"
        numbers = f"{before} emitted {self.expected.count}, {self.stage} consumed {self.consumed.count}"
        missing = self.expected.count - self.consumed.count
        if abs(missing) == 1:
            return f"{numbers}: one {'missing' if missing > 0 else 'too many'}, whose id has xxhash64 {self.difference}"
        if missing:
            return f"{numbers}: {abs(missing)} {'missing' if missing > 0 else 'too many'}"
        return f"{numbers}, with other ids"


@dataclass(frozen=True, slots=True)
class Verdict:
    query: str
    batch: int
    status: Status
    records: int = 0
    """What the sources emitted."""
    gaps: tuple[Gap, ...] = ()
    without: tuple[str, ...] = ()
    """Stages that the query has from a later micro-batch on: nothing tells of what they consumed of this one."""


@dataclass(slots=True)
class _Query:
    batches: dict[int, dict[str, Entry]] = field(default_factory=lambda: defaultdict(dict))
    since: dict[str, Entry] = field(default_factory=dict)
    """By stage: its entry in the first micro-batch that has it."""


def verdicts(entries: Iterable[Entry], *, now_ms: int, timeout_ms: int) -> list[Verdict]:
    """One for each micro-batch of each query, in order. Of two entries of a stage, the later one counts.

    A micro-batch is unbalanced if stages disagree `timeout_ms` after the last of them was recorded. A stage is expected
    from the first micro-batch on that has it.
    """
    return [
        verdict
        for name, query in sorted(_by_query(entries).items())
        for verdict in _of_query(name, query, now_ms=now_ms, timeout_ms=timeout_ms)
    ]


def _of_query(name: str, query: _Query, *, now_ms: int, timeout_ms: int) -> Iterator[Verdict]:
    """From the first micro-batch to the last, without most of a long gap: one record that arrives with an absurd number
    of its micro-batch would make as many.
    """
    known = sorted(query.batches)
    later_ms = _earliest_from(query)
    left = _MOST_MISSING_OF_QUERY
    for number, following in pairwise([*known, known[-1] + 1]):
        yield _verdict(name, number, query, now_ms=now_ms, timeout_ms=timeout_ms)
        missing = range(number + 1, min(following, number + 1 + min(left, _MOST_MISSING)))
        left -= len(missing)
        for each in missing:
            late = now_ms - later_ms[following] >= timeout_ms
            yield Verdict(name, each, Status.UNRECORDED if late else Status.OPEN)


def _earliest_from(query: _Query) -> dict[int, int]:
    """By micro-batch, when first something of it or of a later one was recorded."""
    found: dict[int, int] = {}
    earliest: int | None = None
    for number in sorted(query.batches, reverse=True):
        own = min(entry.recorded_ms for entry in query.batches[number].values())
        earliest = found[number] = own if earliest is None else min(own, earliest)
    return found


def _by_query(entries: Iterable[Entry]) -> Mapping[str, _Query]:
    queries: dict[str, _Query] = defaultdict(_Query)
    for entry in sorted(entries, key=lambda one: one.recorded_ms):
        queries[entry.query].batches[entry.batch][entry.stage] = entry
    for query in queries.values():
        for number in sorted(query.batches):
            for name, entry in query.batches[number].items():
                query.since.setdefault(name, entry)
    return queries


def _verdict(name: str, number: int, query: _Query, *, now_ms: int, timeout_ms: int) -> Verdict:
    recorded = query.batches[number]
    expected = [entry for entry in query.since.values() if entry.batch <= number]
    gaps = _gaps(recorded, expected)
    records = sum(entry.emitted.count for entry in recorded.values() if not entry.after)
    without = tuple(sorted(entry.stage for entry in query.since.values() if entry.batch > number))
    return Verdict(name, number, _status(recorded, gaps, now_ms=now_ms, timeout_ms=timeout_ms), records, gaps, without)


def _status(recorded: Mapping[str, Entry], gaps: Sequence[Gap], *, now_ms: int, timeout_ms: int) -> Status:
    if not gaps:
        return Status.BALANCED
    if now_ms - max(entry.recorded_ms for entry in recorded.values()) < timeout_ms:
        return Status.OPEN
    silent = any(gap.consumed is None for gap in gaps)
    recomputed = any(entry.recomputed for entry in recorded.values())
    return Status.RECOMPUTED if recomputed and not silent else Status.UNBALANCED


def _gaps(recorded: Mapping[str, Entry], expected: Iterable[Entry]) -> tuple[Gap, ...]:
    stages = {entry.stage: entry.after for entry in (*expected, *recorded.values())}
    gaps = []
    for stage, after in stages.items():
        due = Sum()
        for before in after:
            due = due.plus(recorded[before].emitted if before in recorded else Sum())
        entry = recorded.get(stage)
        consumed = None if entry is None else entry.consumed
        if (after or entry is None) and consumed != due:
            gaps.append(Gap(stage, after, due, consumed))
    return tuple(gaps)
