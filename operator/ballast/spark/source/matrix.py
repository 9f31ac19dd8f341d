"""From the text of a range query's answer to Arrow record batches, a few hundred thousand points at a time.

The points of a series, `[1700000000,"0.5"],[1700000015,"0.25"]`, are lines of CSV without their brackets: Arrow reads
them in bulk, with no Python object per point.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from ballast.prometheus.endpoint import PrometheusError
from ballast.prometheus.envelope import Data, data_of
from ballast.spark.errors import SourceError
from ballast.spark.source.moment import Grid, as_rfc3339

_RESULT = b'"result":['
# In compact JSON no label's value can hold what follows the labels: its quotes would be escaped.
_HEAD = re.compile(
    rb',?\{"metric":(?P<labels>\{(?:"(?:[^"\\]|\\.)*":"(?:[^"\\]|\\.)*",?)*\}),"(?P<kind>values|histograms)":\[',
    re.DOTALL,
)
_POINTS_END = b"]]"
_OPENING = ord("[")
_BATCH_BYTES = 1 << 20
"""Of text in one record batch: some forty thousand points."""

_TO_LINES = bytes.maketrans(b"]", b"\n")
_READ = csv.ReadOptions(column_names=["", "timestamp", "value"], use_threads=False, block_size=1 << 26)
_PARSE = csv.ParseOptions(quote_char=False)
_CONVERT = csv.ConvertOptions(
    column_types={"timestamp": pa.float64(), "value": pa.float64()},
    include_columns=["timestamp", "value"],
    null_values=[],
)
_TIME = pa.timestamp("us", tz="UTC")

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Series:
    name: bytes
    """Its labels, as the server writes them."""
    labels: Labels
    points: bytes
    """`[time,"value"],…`, at least one."""


def arrow_schema(label_columns: tuple[str, ...] | None) -> pa.Schema:
    """The data source's schema as Spark hands it to its workers: they compare both."""
    labels = (
        [pa.field("labels", pa.map_(pa.string(), pa.string()))]
        if label_columns is None
        else [pa.field(name, pa.string()) for name in label_columns]
    )
    return pa.schema([pa.field("timestamp", _TIME), pa.field("value", pa.float64()), *labels])


def batches(
    body: bytes, *, grid: Grid, schema: pa.Schema, keep: Callable[[Labels], bool], batch_bytes: int = _BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """The points of the series to keep, in the server's order. NaN and ±Inf stay what they are.

    `grid`: what was asked for. `schema`: timestamp, value, then `labels` (a map) or columns of labels' names (null
    where a series has no such label). Raises SourceError if the answer is partial, holds native histograms, is no
    matrix, or has a point that was not asked for, or twice.
    """
    try:
        yield from _batches(body, grid, schema, keep, batch_bytes)
    except PrometheusError as error:
        raise SourceError(str(error)) from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise SourceError(f"not an answer of Prometheus: {type(error).__name__}: {error}") from error


def _batches(
    body: bytes, grid: Grid, schema: pa.Schema, keep: Callable[[Labels], bool], batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    waiting: list[Series] = []
    size = 0
    seen: set[frozenset[tuple[str, str]]] = set()
    for one in _series(*_whole(body)):
        # A server may write the labels in any order, and letters in several ways.
        labels = frozenset(one.labels.items())
        if labels in seen:
            raise SourceError(
                f"the answer has the series {one.name.decode('utf-8', 'replace')} twice: see to the server"
            )
        seen.add(labels)
        if not keep(one.labels):
            continue
        waiting.append(one)
        size += len(one.points)
        if size >= batch_bytes:
            yield _batch(waiting, schema, grid)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting, schema, grid)


def _whole(body: bytes) -> tuple[bytes, int, int]:
    """The text that holds the list of series, and from where to where, checked to be whole.

    The body itself if it is laid out as Prometheus does it; otherwise it is written again.
    """
    start = body.find(_RESULT) + len(_RESULT)
    end = _end_of_result(body, start) if start >= len(_RESULT) else None
    if end is not None:
        _check(data_of(body[:start] + body[end:]))
        return body, start, end
    data = data_of(body)
    _check(data)
    text = b",".join(_rewritten(series) for series in json.loads(bytes(data.result)))
    return text, 0, len(text)


def _end_of_result(body: bytes, at: int) -> int | None:
    """Where the list's bracket closes; None if the text is laid out in another way."""
    while body[at : at + 1] != b"]":
        head = _HEAD.match(body, at)
        if head is None:
            return None
        _refuse_histograms(head["kind"], head["labels"])
        end = body.find(_POINTS_END, head.end())
        if body.startswith(b',"histograms":', end + 2):
            _refuse_histograms(b"histograms", head["labels"])
        at = end + 3
        if end < 0 or body[end + 2 : at] != b"}":
            return None
    return at


def _check(data: Data) -> None:
    if data.result_type != "matrix":
        raise SourceError(f"not the answer to a range query: its type is {data.result_type!r}")


def _rewritten(series: Mapping[str, Any]) -> bytes:
    if series.get("histograms"):
        _refuse_histograms(b"histograms", json.dumps(series["metric"]).encode())
    ordered = {"metric": series["metric"], "values": series["values"]}
    return json.dumps(ordered, separators=(",", ":"), ensure_ascii=False).encode()


def _refuse_histograms(kind: bytes, labels: bytes) -> None:
    if kind == b"histograms":
        raise SourceError(
            f"{labels.decode('utf-8', 'replace')} holds native histograms, which are no single value: ask for one with"
            " histogram_quantile, histogram_avg, histogram_count or histogram_sum"
        )


def _series(text: bytes, at: int, stop: int) -> Iterator[Series]:
    while at < stop:
        head = _HEAD.match(text, at)
        if head is None:
            raise SourceError(f"not an answer of Prometheus: {text[at : at + 100]!r}")
        end = text.find(_POINTS_END, head.end())
        yield Series(head["labels"], json.loads(head["labels"]), text[head.end() : end + 1])
        at = end + 3


def _batch(series: list[Series], schema: pa.Schema, grid: Grid) -> pa.RecordBatch:
    text = b"," + b",".join(one.points for one in series).translate(_TO_LINES, b'"[').replace(b"+Inf", b"Inf")
    try:
        points = csv.read_csv(
            pa.BufferReader(text), read_options=_READ, parse_options=_PARSE, convert_options=_CONVERT
        ).combine_chunks()
    except pa.ArrowInvalid as error:
        raise SourceError(f"a point that is no number: {error}") from error
    with np.errstate(invalid="ignore"):  # times that are none are refused below
        milliseconds = np.rint(_doubles(points["timestamp"].chunk(0)) * 1000).astype(np.int64)
    # Ten times as fast as bytes.count, which stops at each one that it finds.
    counts = [np.count_nonzero(np.frombuffer(one.points, np.uint8) == _OPENING) for one in series]
    owners = np.repeat(np.arange(len(series), dtype=np.int32), counts)
    _check_times(milliseconds, owners, grid)
    of_series = _array(pa.int32(), owners)
    columns = [
        _array(_TIME, milliseconds * 1000),
        points["value"].chunk(0),
        *(_labels(field, series).take(of_series) for field in list(schema)[2:]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _check_times(milliseconds: np.ndarray, owners: np.ndarray, grid: Grid) -> None:
    """Rows of two parts of a range must not be the same ones: each part has its own steps.

    A server that caches answers may move all steps to multiples of theirs before (VictoriaMetrics, Thanos' query
    frontend).
    """
    outside = (milliseconds <= grid.start_ms - grid.step_ms) | (milliseconds > grid.last_ms)
    again = np.zeros(len(milliseconds), np.bool_)
    again[1:] = (np.diff(milliseconds) < grid.step_ms) & (np.diff(owners) == 0)
    wrong = np.flatnonzero(outside | again)
    if wrong.size:
        at = int(milliseconds[wrong[0]]) / 1000
        asked = f"steps of {grid.step_ms} ms from {as_rfc3339(grid.start_ms)} to {as_rfc3339(grid.last_ms)}"
        raise SourceError(f"the answer has a point at {at:.3f} that was not asked for ({asked}): see to the server")


def _labels(field: pa.Field, series: list[Series]) -> pa.Array:
    if not pa.types.is_map(field.type):
        return _texts([one.labels.get(field.name) or None for one in series])
    names = [name for one in series for name in one.labels]
    values = [value for one in series for value in one.labels.values()]
    offsets = _array(pa.int32(), _ends([len(one.labels) for one in series]))
    return pa.MapArray.from_arrays(offsets, _texts(names), _texts(values))


# pa.array and to_numpy would load pandas, if there is one, for nothing: more than a second in every worker of Spark.


def _array(kind: pa.DataType, values: np.ndarray) -> pa.Array:
    """Of numbers that have the layout of `kind` already."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _doubles(column: pa.Array) -> np.ndarray:
    numbers = np.frombuffer(column.buffers()[1], np.float64)
    return numbers[column.offset : column.offset + len(column)]


def _texts(values: Sequence[str | None]) -> pa.StringArray:
    written = [(value or "").encode() for value in values]
    present = np.packbits(np.array([value is not None for value in values], bool), bitorder="little")
    ends = _ends([len(each) for each in written])
    text = pa.py_buffer(b"".join(written))
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), text, pa.py_buffer(present))


def _ends(lengths: Sequence[int]) -> np.ndarray:
    """Where each begins and, last, where all end."""
    return np.cumsum([0, *lengths], dtype=np.int32)
