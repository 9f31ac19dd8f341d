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

TIME = pa.field("timestamp", pa.timestamp("us", tz="UTC"))
VALUE = pa.field("value", pa.float64())
WITH_MAP = pa.schema([TIME, VALUE, pa.field("labels", pa.map_(pa.string(), pa.string()))])

Point = tuple[float, str]
Series = tuple[dict[str, str], Sequence[Point]]


def answer(series: Sequence[Series], *, compact: bool = True, **more: Any) -> bytes:
    result = [{"metric": labels, "values": [list(point) for point in points]} for labels, points in series]
    document = {"status": "success", "data": {"resultType": "matrix", "result": result}, **more}
    return json.dumps(document, separators=(",", ":") if compact else None, ensure_ascii=False).encode()


def rows(body: bytes, schema: pa.Schema = WITH_MAP, **options: Any) -> list[dict[str, Any]]:
    found = batches(body, schema=schema, **{"keep": lambda _: True, **options})
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
answers = st.lists(st.tuples(labels, points), max_size=6)


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

body = sys.stdin.buffer.read()
for columns in (None, ("pod",)):
    print(sum(batch.num_rows for batch in batches(body, schema=arrow_schema(columns), keep=bool)))
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
        ({"warnings": ["store x did not answer"]}, "may be partial; the server warns: store x did not answer"),
        ({"isPartial": True}, "may be partial"),
        ({"status": "error", "errorType": "execution", "error": "it broke"}, "execution: it broke"),
    ],
)
def test_an_answer_that_is_not_whole_is_refused(more: dict[str, Any], words: str, *, compact: bool) -> None:
    body = answer([({}, [(1, "1")])], compact=compact, **more)
    with pytest.raises(SourceError, match=words):
        rows(body)


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
