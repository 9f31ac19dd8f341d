"""Why an executor that opted in is not placed, or not as its pod asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Stable words: status, metrics and users rely on them; docs/placement.md explains each."""

    RELEASE_REFUSED = "ReleaseRefused"
    GATE_MISSING = "GateMissing"
    FOREIGN_SCHEDULER = "ForeignScheduler"
    GANG = "Gang"
    FOREIGN_GATE = "ForeignGate"
    WAITING = "Waiting"
    OVERDUE = "Overdue"
    NO_ROOM = "NoRoom"
    RELEASED_AS_IS = "ReleasedAsIs"
    NOT_GATED = "NotGated"
    POLICY_MISSING = "PolicyMissing"
    # Placed, but …
    METRICS_MISSING = "MetricsMissing"
    CONSTRAINTS_OVERRULED = "ConstraintsOverruled"


FAULTS = frozenset(
    {
        Cause.RELEASE_REFUSED,
        Cause.GATE_MISSING,
        Cause.FOREIGN_SCHEDULER,
        Cause.GANG,
        Cause.OVERDUE,
        Cause.NO_ROOM,
        Cause.RELEASED_AS_IS,
    }
)
"""Causes that a user should see to. The others end by themselves, or were there before the operator was."""
PLACED = frozenset({Cause.METRICS_MISSING, Cause.CONSTRAINTS_OVERRULED})
"""The executor has a place, which is not all that its pod or its policy asks for."""


@dataclass(frozen=True, slots=True)
class Unplaced:
    """One executor that opted in, and why it is not placed."""

    executor: str
    """`namespace/pod`."""
    cause: Cause
    detail: str
    """What follows `because`, with the names and the remedy."""


@dataclass(frozen=True, slots=True)
class CauseCount:
    cause: Cause
    executors: int
    first: Unplaced
    """An example: the first by name."""


def by_cause(rows: Iterable[Unplaced]) -> tuple[CauseCount, ...]:
    """Faults first, then the most frequent."""
    first: dict[Cause, Unplaced] = {}
    counts: Counter[Cause] = Counter()
    for row in rows:
        first.setdefault(row.cause, row)
        counts[row.cause] += 1
    ranked = sorted(counts, key=lambda cause: (cause not in FAULTS, -counts[cause], cause))
    return tuple(CauseCount(cause, counts[cause], first[cause]) for cause in ranked)


def within(rows: Iterable[Unplaced], namespace: str | None) -> tuple[Unplaced, ...]:
    """Those of one namespace; all of them if None."""
    return tuple(row for row in rows if namespace in (None, row.executor.partition("/")[0]))


def counts_of(rows: Iterable[Unplaced]) -> Mapping[Cause, int]:
    """Of every cause that a policy's executors may have, also of those that none has."""
    counts = Counter(row.cause for row in rows)
    return {cause: counts[cause] for cause in Cause if cause is not Cause.POLICY_MISSING}
