"""Following a query as time goes on: each step belongs to exactly one micro-batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ballast.errors import InvalidField
from ballast.spark.source import promql
from ballast.spark.source.batch_reader import Part, Reading, parts
from ballast.spark.source.grid import Grid
from ballast.spark.source.moment import as_rfc3339, time_ms
from ballast.spark.source.options import Options

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
        if promql.pinned(options.query, start_ms=0, end_ms=0) != options.query:
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


def _moment(offset: Offset) -> int:
    return time_ms(offset["next"], now_ms=0, field="offset")
