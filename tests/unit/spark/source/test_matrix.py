from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.spark.errors import SourceError
from ballast.spark.source.matrix import batches
from ballast.spark.source.moment import Grid

TIME = pa.field("timestamp", pa.timestamp("us", tz="UTC"))
VALUE = pa.field("value", pa.float64())
WITH_MAP = pa.schema([TIME, VALUE, pa.field("labels", pa.map_(pa.string(), pa.string()))])

WHENEVER = Grid(0, 1, 10**14)

Point = tuple[float, str]
Series = tuple[dict[str, str], Sequence[Point]]


def answer(series: Sequence[Series], *, compact: bool = True, **more: Any) -> bytes:
    result = [{"metric": labels, "values": [list(point) for point in points]} for labels, points in series]
    document = {"status": "success", "data": {"resultType": "matrix", "result": result}, **more}
    return json.dumps(document, separators=(",", ":") if compact else None, ensure_ascii=False).encode()


def rows(body: bytes, schema: pa.Schema = WITH_MAP, **options: Any) -> list[dict[str, Any]]:
    found = batches(body, schema=schema, **{"grid": WHENEVER, "keep": lambda _: True, **options})
    return [
        {**row, "timestamp": row["timestamp"].timestamp()}
        for batch in found
        for row in batch.to_pylist(maps_as_pydicts="strict")
    ]


values = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.sampled_from(["+Inf", "-Inf", "-0", "5e-324", "1e+21", "123456789012345678"]),
)  # fmt: skip
names = st.one_of(st.sampled_from(["values", "metric", "result", "histograms"]), st.text(min_size=1, max_size=5))
labels = st.dictionaries(names, st.text(st.sampled_from('a"\\{}[],:\né'), max_size=8), max_size=3)
points = st.lists(values, min_size=1, max_size=5).map(
    lambda texts: [(1_767_225_600 + 15 * n, text) for n, text in enumerate(texts)]
)
answers = st.lists(st.tuples(labels, points), max_size=6, unique_by=lambda one: json.dumps(one[0], sort_keys=True))


@given(answers, st.booleans(), st.sampled_from([1, 60, 1 << 20]))
def test_every_point_of_every_series_becomes_a_row(series: list[Series], compact: bool, batch_bytes: int) -> None:
    wanted = [
        {"timestamp": float(at), "value": float(text), "labels": labels}
        for labels, points in series
        for at, text in points
    ]
    assert rows(answer(series, compact=compact), batch_bytes=batch_bytes) == wanted


def test_not_a_number_stays_one() -> None:
    body = answer([({}, [(1_767_225_600, "NaN"), (1_767_225_615, "1")])])
    first, second = rows(body)
    assert math.isnan(first["value"])
    assert second["value"] == 1.0


def test_times_are_exact_to_the_millisecond() -> None:
    body = answer([({}, [(1_767_225_600.001, "1"), (1_767_225_600.999, "2")])])
    assert [row["timestamp"] for row in rows(body)] == [1_767_225_600.001, 1_767_225_600.999]


def test_named_labels_have_columns_and_are_null_where_a_series_has_none() -> None:
    schema = pa.schema([TIME, VALUE, pa.field("pod", pa.string()), pa.field("node", pa.string())])
    body = answer([({"pod": "p", "x": "y"}, [(1, "1"), (2, "2")]), ({"node": "n", "pod": ""}, [(3, "3")])])
    assert [(row["pod"], row["node"]) for row in rows(body, schema)] == [("p", None), ("p", None), (None, "n")]


WORKER = """
import sys
from ballast.spark.source.matrix import arrow_schema, batches
from ballast.spark.source.moment import Grid

body = sys.stdin.buffer.read()
for columns in (None, ("pod",)):
    found = batches(body, grid=Grid(1000, 1000, 2), schema=arrow_schema(columns), keep=bool)
    print(sum(batch.num_rows for batch in found))
print("pandas" in sys.modules)
"""


def test_a_worker_of_spark_need_not_load_pandas() -> None:
    body = answer([({"pod": "p"}, [(1, "1"), (2, "2")])])
    told = subprocess.run([sys.executable, "-c", WORKER], input=body, capture_output=True, check=True).stdout
    assert told.split() == [b"2", b"2", b"False"]


def test_only_the_series_to_keep_are_read() -> None:
    body = answer([({"a": "1"}, [(1, "1")]), ({"a": "2"}, [(1, "2")])])
    assert [row["value"] for row in rows(body, keep=lambda labels: labels["a"] == "2")] == [2.0]


def test_an_empty_answer_has_no_rows() -> None:
    assert rows(answer([])) == []


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"warnings": ["store x did not answer"]}, "series may be missing.* the server warns: store x did not answer"),
        ({"isPartial": True}, "the server warns: isPartial"),
        ({"status": "error", "errorType": "execution", "error": "it broke"}, "execution: it broke"),
    ],
)
def test_an_answer_that_is_not_whole_is_refused(more: dict[str, Any], words: str, *, compact: bool) -> None:
    body = answer([({}, [(1, "1")])], compact=compact, **more)
    with pytest.raises(SourceError, match=words):
        rows(body)


def test_what_promql_says_of_values_is_no_warning() -> None:
    """Any pod can export a bucket without a bound, or a histogram next to others' plain numbers: reads of all ended."""
    said = 'PromQL warning: bucket label "le" is missing or has a malformed value of "abc" for metric name "" (1:25)'
    assert len(rows(answer([({}, [(1, "1")])], warnings=[said]))) == 1
    with pytest.raises(SourceError, match=r"the server warns: store x did not answer$"):
        rows(answer([({}, [(1, "1")])], warnings=[said, "store x did not answer"]))


def test_notes_are_no_warnings() -> None:
    assert len(rows(answer([({}, [(1, "1")])], infos=["metric might not be a counter"], isPartial=False))) == 1


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize(
    "points",
    [
        {"histograms": [[1, {"count": "4", "sum": "2"}]]},
        {"values": [[1, "1"]], "histograms": [[2, {"count": "4", "sum": "2"}]]},
    ],
)
def test_native_histograms_are_refused_with_what_to_ask_for(points: dict[str, Any], *, compact: bool) -> None:
    result = [{"metric": {"__name__": "h"}, **points}, {"metric": {}, "values": [[1, "1"]]}]
    document = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    body = json.dumps(document, separators=(",", ":") if compact else None).encode()
    with pytest.raises(SourceError, match=r'"h"\} holds native histograms.*histogram_quantile'):
        rows(body)


WHOLE = answer([({"a": "b"}, [(1, "1"), (2, "2")]), ({"a": "c"}, [(1, "3")])])


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_an_answer_that_is_cut_off_is_refused_wherever_it_ends(length: int) -> None:
    with pytest.raises(SourceError):
        rows(WHOLE[:length])


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>sign in</html>", b"null", b"[]", b'{"status":"success"}',
        b'{"status":"success","data":{"resultType":"vector","result":[]}}',
        b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"one"]]}]}}',
    ],
)  # fmt: skip
def test_what_is_no_answer_to_a_range_query_is_refused(body: bytes) -> None:
    with pytest.raises(SourceError):
        rows(body)


QUARTERS = Grid(1_767_225_600_000, 15_000, 3)
"""From a multiple of the step on: 0, 15 and 30 seconds."""


def at(*seconds: float) -> list[Point]:
    return [(1_767_225_600 + after, "1") for after in seconds]


@pytest.mark.parametrize(
    "points",
    [
        pytest.param(at(-15, 0), id="before the first step"),
        pytest.param(at(30, 45), id="after the last step"),
        pytest.param(at(0, 15, 15, 30), id="twice"),
        pytest.param(at(15, 0), id="in another order"),
        pytest.param(at(0, 10, 20, 30), id="of shorter steps"),
        pytest.param([(1e300, "1")], id="at no time"),
    ],
)
def test_points_that_were_not_asked_for_are_refused(points: list[Point]) -> None:
    """Another partition has them too, or they are doubled here."""
    with pytest.raises(SourceError, match="was not asked for"):
        rows(answer([({"pod": "p"}, at(0, 30)), ({"pod": "q"}, points)]), grid=QUARTERS)


@pytest.mark.parametrize("points", [at(0, 15, 30), at(-5, 10, 25), at(-14.999, 0.001), at(30)])
def test_steps_that_a_caching_server_has_moved_are_read(points: list[Point]) -> None:
    """VictoriaMetrics and Thanos' query frontend move them to multiples of the step, all by the same time."""
    assert len(rows(answer([({}, points)]), grid=QUARTERS)) == len(points)


def test_a_series_that_comes_twice_is_refused() -> None:
    body = answer([({"pod": "p"}, at(0)), ({"pod": "q"}, at(0)), ({"pod": "p"}, at(15))])
    with pytest.raises(SourceError, match=r"\"pod\":\"p\".* twice"):
        rows(body, grid=QUARTERS)


@pytest.mark.parametrize("again", [{"b": "2", "a": "1"}, {"a": "\\u0031", "b": "2"}], ids=["order", "escape"])
def test_a_series_is_the_same_however_its_labels_are_written(again: dict[str, str]) -> None:
    body = answer([({"a": "1", "b": "2"}, at(0)), (again, at(0))]).replace(b"\\\\u", b"\\u")
    with pytest.raises(SourceError, match="twice"):
        rows(body, grid=QUARTERS)


@pytest.mark.parametrize(
    "result",
    [
        '{"metric":{"a":"\\ud800"},"values":[[1,"1"]]}',
        '{"metric":null,"values":[[1,"1"]]}',
        '{"metric":{"a":["b"]},"values":[[1,"1"]]}',
        '{"values":[[1,"1"]]}',
        "[]",
    ],
)
def test_a_series_that_is_none_is_refused_in_own_words(result: str) -> None:
    body = f'{{"status":"success","data":{{"resultType":"matrix","result":[{result}]}}}}'.encode()
    with pytest.raises(SourceError, match="not an answer of Prometheus"):
        rows(body)
