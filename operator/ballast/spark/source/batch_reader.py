"""Reading a range of the past, one partition per span of it, and per value of a label when asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from ballast.errors import InvalidField
from ballast.spark.source import promql
from ballast.spark.source.api import Api
from ballast.spark.source.grid import Grid
from ballast.spark.source.label_test import Asks, LabelTest
from ballast.spark.source.matrix import batches
from ballast.spark.source.options import Options
from ballast.spark.source.server import Server

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
        api = Api(self.server)
        try:
            body = api.range(part.query, part.grid)
        finally:
            api.close()
        return batches(body, schema=self.schema, keep=lambda labels: all(test.holds(labels) for test in self.tests))


class PrometheusReader(DataSourceReader):
    """Every row that the query gives at each step from `start` to `end`, both included, as of `now_ms`."""

    def __init__(self, options: Options, schema: pa.Schema, *, now_ms: int) -> None:
        self._options = options
        self._now_ms = now_ms
        self._grid = options.grid(now_ms=self._now_ms)
        self._reading = Reading(options.server, schema)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 -- Spark's name
        from ballast.spark.source.pushdown import push  # noqa: PLC0415 -- Spark 4.0 has neither filters nor this call

        pushed, left = push(filters, self._options.label_columns or ())
        self._grid = self._grid.narrowed(pushed.low_us, pushed.high_us)
        self._reading = Reading(self._reading.server, self._reading.schema, pushed.tests)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        if not self._grid.count:
            return []
        start_ms, end_ms = self._options.range_ms(now_ms=self._now_ms)
        query = promql.pinned(self._options.query, start_ms=start_ms, end_ms=end_ms)
        return list(parts(self._options, query, self._grid, self._reading.tests))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark asks for a partition even where there is none.
        return self._reading.of(partition) if isinstance(partition, Part) else iter(())


def parts(options: Options, query: str, grid: Grid, tests: Sequence[LabelTest]) -> Iterator[Part]:
    """The requests that together ask for the grid, each series and step by exactly one of them."""
    exact = promql.takes_matchers(query)
    if exact:
        known = [test.matcher() for test in tests if promql.is_plain_label(test.label)]
        query = promql.with_matchers(query, known)
    queries = [query]
    if options.partition_by:
        if not exact or not promql.is_plain_label(options.partition_by):
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
    api = Api(options.server)
    try:
        selector = promql.selector(query)
        found = api.label_values(label, selector, start_ms=grid.start_ms - _LOOKBACK_MS, end_ms=grid.last_ms)
    finally:
        api.close()
    if len(found) > _MOST_VALUES:
        raise InvalidField("partitionBy", label, f"has {len(found)} values: choose a label with at most {_MOST_VALUES}")
    for value in found:
        yield promql.with_matchers(query, [LabelTest(label, Asks.EQUAL, (value,)).matcher()])
    # Series without the label, and those that came since the values were asked for.
    rest = LabelTest(label, Asks.EQUAL, tuple(found), negated=True)
    yield promql.with_matchers(query, [rest.matcher()]) if found else query
