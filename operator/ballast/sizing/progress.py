"""What a streaming query reported: StreamingQueryProgress as JSON, or in the log of a driver."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ballast.errors import InvalidField
from ballast.sizing.amount import amount
from ballast.sizing.progress_log import reported

_BOOKKEEPING = ("queryPlanning", "walCommit", "latestOffset", "getBatch", "commitOffsets", "commitBatch", "getOffset")
_REMEDY = (
    "write one StreamingQueryProgress (its `json`) a line, or give the driver's log with INFO of MicroBatchExecution"
)


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch."""

    number: int
    rows: float
    seconds: float
    """The whole trigger."""
    bookkeeping_seconds: float = 0.0
    """Of this: planning, offsets and the write-ahead log, which don't depend on the rows."""
    arriving_per_second: float | None = None
    """Rows per second that arrived since the batch before."""
    behind_rows: float | None = None
    """Rows that wait in the source after the batch, of the partition that lags most; Kafka tells it.

    None where each batch took all there was, as without maxOffsetsPerTrigger: then it is 0 whatever arrives meanwhile.
    """
    read_all: bool = False
    """It read as far as the source had come when it began."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The batches of one query, in order, without idle triggers and without the first batch of each run.

    The first one loads classes and warms caches: it tells nothing of the others.
    """

    query: str
    batches: tuple[Batch, ...]

    @property
    def rows(self) -> list[float]:
        return [each.rows for each in self.batches]

    @property
    def seconds(self) -> list[float]:
        return [each.seconds for each in self.batches]

    @property
    def bookkeeping_share(self) -> float:
        """Of the batches' time."""
        return sum(each.bookkeeping_seconds for each in self.batches) / sum(self.seconds)


def read(lines: Iterable[str], name: str) -> Progress:
    """Of the file `name`. Raises InvalidField for a line that is no progress, and for a file without a batch of rows.

    Where several queries report to one file, the one that took most time is read.
    """
    by_query: dict[str, list[tuple[str, Batch]]] = {}
    for number, line in reported(lines):
        if line.strip():
            query, run, batch = _batch(line, f"{name}:{number}")
            by_query.setdefault(query, []).append((run, batch))
    warm = {query: _without_first(batches) for query, batches in by_query.items()}
    longest = max(warm, key=lambda each: math.fsum(batch.seconds for batch in warm[each]), default="")
    if not warm.get(longest):
        raise InvalidField("--progress", name, f"no batch with rows after the first one of a run: {_REMEDY}")
    batches = warm[longest]
    if all(each.read_all and not each.behind_rows for each in batches):
        batches = [replace(each, behind_rows=None) for each in batches]
    return Progress(longest, tuple(batches))


def _without_first(batches: Sequence[tuple[str, Batch]]) -> list[Batch]:
    """Idle triggers are left out first: they are no batches."""
    seen: set[str] = set()
    kept = []
    for run, batch in batches:
        if batch.rows <= 0.0 or batch.seconds <= 0.0:
            continue
        if run in seen:
            kept.append(batch)
        seen.add(run)
    return kept


def _batch(line: str, at: str) -> tuple[str, str, Batch]:
    try:
        document = json.loads(line)
        durations = document["durationMs"]
        sources = document.get("sources") or []
        return (
            str(document.get("name") or document.get("id") or ""),
            str(document.get("runId") or ""),
            Batch(
                number=int(document["batchId"]),
                rows=_number(document.get("numInputRows", 0)),
                seconds=_number(durations.get("triggerExecution", document.get("batchDuration", 0))) / 1000.0,
                bookkeeping_seconds=sum(_number(durations.get(part, 0)) for part in _BOOKKEEPING) / 1000.0,
                arriving_per_second=_sum([source.get("inputRowsPerSecond") for source in sources]),
                behind_rows=_largest(_behind(sources)),
                read_all=any(map(_read_all, sources)) and all(map(_read_all, sources)),
            ),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise InvalidField("--progress", at, f"not a StreamingQueryProgress: {_REMEDY}") from None


def _behind(sources: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    for source in sources:
        behind = (source.get("metrics") or {}).get("maxOffsetsBehindLatest")
        if behind is not None:
            yield _number(behind)


def _read_all(source: Mapping[str, Any]) -> bool:
    end = source.get("endOffset")
    return end is not None and end == source.get("latestOffset")


def _sum(parts: Sequence[Any]) -> float | None:
    """None where no part is a finite number above 0."""
    known = [number for part in parts if part is not None and (number := _number(part)) > 0.0]
    return math.fsum(known) if known else None


def _largest(parts: Iterable[float]) -> float | None:
    return max(parts, default=None)


def _number(value: Any) -> float:
    """0 for NaN and infinity, which Spark writes as text. Raises ValueError."""
    number = float(value)
    return amount(number) if math.isfinite(number) else 0.0
