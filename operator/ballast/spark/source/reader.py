"""Readers of the data source: a range of the past in partitions, and a stream of what has come since."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from ballast.errors import InvalidField
from ballast.prometheus.server import Server
from ballast.spark.source.asking import asking
from ballast.spark.source.matrix import batches
from ballast.spark.source.moment import Grid, as_rfc3339, rfc3339_ms, time_ms
from ballast.spark.source.options import Asks, LabelTest, Options

_STRING = r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)"""
_NAME = r"(?!(?i:inf|nan)\b)[a-zA-Z_:][a-zA-Z0-9_:]*"
_MATCHERS = rf"\{{(?P<matchers>(?:{_STRING}|[^{{}}\"'`#])*)\}}"
_SPAN = r"(?:[0-9]+(?:ms|[smhdwy]))+"
_WHEN = rf"(?:\s*(?:offset\s+-?\s*{_SPAN}|@\s*[0-9.]+))*"

# Each series of these comes from one series of their selector alone and keeps its labels, the name aside.
_KEEPING = (
    "avg_over_time|changes|count_over_time|delta|deriv|idelta|increase|irate|last_over_time|max_over_time"
    "|min_over_time|present_over_time|rate|resets|stddev_over_time|stdvar_over_time|sum_over_time"
)

_SELECTOR = rf"(?:{_NAME}\s*(?:{_MATCHERS})?|{_MATCHERS.replace('matchers', 'bare')})"
_INSTANT = re.compile(rf"\s*{_SELECTOR}{_WHEN}\s*", re.DOTALL)
_RANGE = re.compile(rf"\s*(?:{_KEEPING})\s*\(\s*{_SELECTOR}\s*\[\s*{_SPAN}\s*\]{_WHEN}\s*\)\s*", re.DOTALL)
_SELECTOR_AT = re.compile(rf"(?<![\w:])(?!(?:{_KEEPING})\s*\(){_SELECTOR}", re.DOTALL)
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_END_OF_RANGE = re.compile(rf"{_STRING}|#[^\n]*|@\s*(?P<which>start|end)\s*\(\s*\)", re.DOTALL)

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_MOST_VALUES = 5_000
_LOOKBACK_MS = 3_600_000
"""Before the range, values of a label are looked for too: a point's samples are older than its step."""


class Part(InputPartition):
    """One request: a query over some steps."""

    def __init__(self, query: str, grid: Grid) -> None:
        super().__init__((query, grid))
        self.query = query
        self.grid = grid


@dataclass(frozen=True, slots=True)
class Reading:
    """What every task needs, whichever part it reads."""

    server: Server
    schema: pa.Schema
    tests: tuple[LabelTest, ...] = ()

    def of(self, part: Part) -> Iterator[pa.RecordBatch]:
        grid = part.grid
        with asking(self.server) as transport:
            fetched = transport.range(part.query, start_ms=grid.start_ms, end_ms=grid.last_ms, step_ms=grid.step_ms)
        return batches(
            fetched.body,
            grid=grid,
            schema=self.schema,
            keep=lambda labels: all(test.holds(labels) for test in self.tests),
        )


class PrometheusReader(DataSourceReader):
    """Every row that the query gives at each step from `start` to `end`, both included, as of `now_ms`."""

    def __init__(self, options: Options, schema: pa.Schema, *, now_ms: int) -> None:
        self._options = options
        self._now_ms = now_ms
        self._grid = options.grid(now_ms=self._now_ms)
        self._reading = Reading(options.server, schema)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 -- Spark's name
        from ballast.spark.source.options import push  # noqa: PLC0415 -- Spark 4.0 has neither filters nor this call

        pushed, left = push(filters, self._options.label_columns or ())
        self._grid = self._grid.narrowed(pushed.low_us, pushed.high_us)
        self._reading = Reading(self._reading.server, self._reading.schema, pushed.tests)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        if not self._grid.count:
            return []
        start_ms, end_ms = self._options.range_ms(now_ms=self._now_ms)
        query = pinned(self._options.query, start_ms=start_ms, end_ms=end_ms)
        return list(parts(self._options, query, self._grid, self._reading.tests))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark asks for a partition even where there is none.
        return self._reading.of(partition) if isinstance(partition, Part) else iter(())


def parts(options: Options, query: str, grid: Grid, tests: Sequence[LabelTest]) -> Iterator[Part]:
    """The requests that together ask for the grid, each series and step by exactly one of them."""
    exact = takes_matchers(query)
    if exact:
        known = [test.matcher() for test in tests if is_plain_label(test.label)]
        query = with_matchers(query, known)
    queries = [query]
    if options.partition_by:
        if not exact or not is_plain_label(options.partition_by):
            raise InvalidField(
                "partitionBy", options.partition_by,
                "works where the query is one selector, or a function such as rate over one, and the label's name is"
                " of letters, digits and _: leave it out",
            )  # fmt: skip
        queries = list(_by_value(options, query, grid))
    for span in grid.parts(options.span_steps):
        yield from (Part(one, span) for one in queries)


def _by_value(options: Options, query: str, grid: Grid) -> Iterator[str]:
    label = options.partition_by or ""
    start_ms = grid.start_ms - _LOOKBACK_MS
    with asking(options.server) as transport:
        found = transport.label_values(label, selector(query), start_ms=start_ms, end_ms=grid.last_ms)
    if len(found) > _MOST_VALUES:
        raise InvalidField("partitionBy", label, f"has {len(found)} values: choose a label with at most {_MOST_VALUES}")
    for value in found:
        yield with_matchers(query, [LabelTest(label, Asks.EQUAL, (value,)).matcher()])
    # Series without the label, and those that came since the values were asked for.
    rest = LabelTest(label, Asks.EQUAL, tuple(found), negated=True)
    yield with_matchers(query, [rest.matcher()]) if found else query


def takes_matchers(query: str) -> bool:
    """Whether each series of the answer comes from one selected series and has its labels.

    So it is for one selector, alone or in a function over a range that keeps labels. Then, and only then, a matcher
    more in the selector leaves out series of the answer and changes no other.
    """
    return bool(_INSTANT.fullmatch(query) or _RANGE.fullmatch(query))


def is_plain_label(name: str) -> bool:
    """Whether a matcher on it can be written as in every version, and added next to a metric's name."""
    return bool(_LABEL.fullmatch(name)) and name != "__name__"


def with_matchers(query: str, matchers: Iterable[str]) -> str:
    """The query with more matchers in its selector, where `takes_matchers`."""
    added = ",".join(matchers)
    if not added:
        return query
    found = _selector_of(query)
    inside = found["matchers"] if found["matchers"] is not None else found["bare"]
    if inside is None:
        at = found.end() - (len(found[0]) - len(found[0].rstrip()))
        return f"{query[:at]}{{{added}}}{query[at:]}"
    at = found.end() - 1
    comma = "," if inside.strip() and not inside.rstrip().endswith(",") else ""
    return f"{query[:at]}{comma}{added}{query[at:]}"


def selector(query: str) -> str:
    """The selector alone of a query that takes matchers."""
    return _selector_of(query)[0].strip()


def pinned(query: str, *, start_ms: int, end_ms: int) -> str:
    """The query with the times of the whole range for `@ start()` and `@ end()`: a part of it has others."""
    times = {"start": start_ms, "end": end_ms}

    def pin(found: re.Match[str]) -> str:
        which = found["which"]
        return f"@ {times[which] // 1000}.{times[which] % 1000:03d}" if which else found[0]

    return _END_OF_RANGE.sub(pin, query)


def _selector_of(query: str) -> re.Match[str]:
    found = _SELECTOR_AT.search(query)
    if found is None:
        raise ValueError(f"no selector in {query!r}")
    return found


try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Unknown to this Spark: it reads what there is in one batch."""


Offset = dict[str, str]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class PrometheusStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is the time of the first step that has not been read: `{"next": "2026-11-21T17:00:00.000Z"}`.

    Steps are multiples of `step` since 1970, and are read once they are `delay` old. Which steps a batch has stands
    in the query's checkpoint, so that a batch read again after a crash has the same ones.
    """

    def __init__(self, options: Options, schema: pa.Schema, *, now_ms: Callable[[], int] = _now_ms) -> None:
        if options.end is not None:
            raise InvalidField("end", options.end, "leave it out: a stream has none")
        if pinned(options.query, start_ms=0, end_ms=0) != options.query:
            raise InvalidField(
                "query", options.query, "a stream has no range for @ start() and @ end(): use @ with a time"
            )
        self._options = options
        self._reading = Reading(options.server, schema)
        self._clock = now_ms
        self._goal_ms: int | None = None
        self._reached_ms: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 -- Spark's name
        now_ms = self._clock()
        start = self._options.start
        start_ms = now_ms - self._options.delay_ms if start is None else time_ms(start, now_ms=now_ms, field="start")
        self._reached_ms = _step_from(start_ms, self._options.step_ms)
        return _offset(self._reached_ms)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 -- Spark's name
        self._goal_ms = self._ripe_ms()

    def latestOffset(self, start: Offset | None = None, limit: object = None) -> Offset:  # noqa: ARG002, N802 -- Spark's
        """At most `maxSpanPerTrigger` after `start`, whatever Spark's own limit: it knows none of time."""
        end_ms = self._ripe_ms() if self._goal_ms is None else self._goal_ms
        # Before Spark 4.2 the start is not said; it is where this reader got to.
        reached_ms = _moment(start) if start else self._reached_ms
        if reached_ms is not None:
            bound_ms = reached_ms + self._options.trigger_steps * self._options.step_ms
            end_ms = max(reached_ms, min(end_ms, bound_ms))
        return _offset(end_ms)

    def reportLatestOffset(self) -> Offset:  # noqa: N802 -- Spark's name
        return _offset(self._ripe_ms())

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        start_ms, end_ms = _moment(start), _moment(end)
        self._reached_ms = end_ms
        # A checkpoint of another step may have got to between two steps.
        step_ms = self._options.step_ms
        grid = Grid.between(_step_from(start_ms, step_ms), end_ms - 1, step_ms=step_ms)
        return list(parts(self._options, self._options.query, grid, ())) if grid.count else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.of(partition) if isinstance(partition, Part) else iter(())

    def commit(self, end: Offset) -> None:
        self._reached_ms = _moment(end)

    def _ripe_ms(self) -> int:
        """The first step that is not `delay` old yet."""
        step_ms = self._options.step_ms
        return ((self._clock() - self._options.delay_ms) // step_ms + 1) * step_ms


def _step_from(start_ms: int, step_ms: int) -> int:
    """The first step that is not before a time."""
    return -(-start_ms // step_ms) * step_ms


def _offset(milliseconds: int) -> Offset:
    return {"next": as_rfc3339(milliseconds)}


def _moment(offset: object) -> int:
    """Raises InvalidField for one of a checkpoint that is damaged, or of another source."""
    text = offset.get("next") if isinstance(offset, dict) else None
    if not isinstance(text, str):
        remedy = "restore the checkpoint, or start the query with another one and `start` where it got to"
        raise InvalidField("offset", json.dumps(offset), remedy)
    return rfc3339_ms(text, field="offset")
