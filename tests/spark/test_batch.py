from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from tests.spark import known_data
from tests.spark.filled_prometheus import FilledPrometheus
from tests.unit.spark.faults import Answer, failure, matrix, serving

RANGE = {"start": str(known_data.START), "end": str(known_data.END), "step": "15s"}
Point = tuple[frozenset[tuple[str, str]], float, str]


def read(spark: SparkSession, prometheus: FilledPrometheus, query: str, **options: str) -> DataFrame:
    given = {**RANGE, "url": prometheus.url, "query": query, **options}
    return spark.read.format("prometheus").options(**given).load()


def told(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value)


def points(rows: list[Row]) -> Counter[Point]:
    return Counter((frozenset(row.labels.items()), row.timestamp.timestamp(), told(row.value)) for row in rows)


def own_points(prometheus: FilledPrometheus, query: str, **more: str) -> Counter[Point]:
    asked = {name: {**RANGE, **more}[name] for name in RANGE}
    return Counter(
        (frozenset(series["metric"].items()), at, told(float(text)))
        for series in prometheus.matrix(query, **asked)
        for at, text in series["values"]
    )


@pytest.mark.parametrize(
    ("query", "options"),
    [
        pytest.param("load", {}, marks=pytest.mark.soak),
        pytest.param("load", {"partitionSpan": "17m"}, marks=pytest.mark.soak),
        ("load", {"partitionBy": "node", "partitionSpan": "1h"}),
        ("load", {"step": "7.125", "partitionSpan": "33m"}),
        ("odd", {}),
        ("rate(records_total[5m])", {"partitionSpan": "40m"}),
        pytest.param("rate(records_total[5m])", {"partitionBy": "pod", "partitionSpan": "2h"}, marks=pytest.mark.soak),
        pytest.param("sum by (node) (load) / 3", {"partitionSpan": "1h"}, marks=pytest.mark.soak),
        ("load - load @ end() + load @ start()", {"partitionSpan": "1h", "step": "60s"}),
        pytest.param("42", {"step": "60s"}, marks=pytest.mark.soak),
        ("nothing", {}),
    ],
)
def test_every_point_is_the_one_that_prometheus_itself_answers(
    spark: SparkSession, prometheus: FilledPrometheus, query: str, options: dict[str, str]
) -> None:
    rows = read(spark, prometheus, query, **options).collect()
    assert points(rows) == own_points(prometheus, query, **options)


def test_odd_values_and_labels_arrive_as_they_are(spark: SparkSession, prometheus: FilledPrometheus) -> None:
    end = str(known_data.START + (len(known_data.ODD_VALUES) - 1) * known_data.EVERY_SECONDS)
    rows = read(spark, prometheus, "odd", end=end).orderBy("timestamp").collect()
    assert [told(row.value) for row in rows] == [told(float(text)) for text in known_data.ODD_VALUES]
    assert {row.labels["label"] for row in rows} == {known_data.ODD_LABEL}


def test_named_labels_have_columns_of_their_own(spark: SparkSession, prometheus: FilledPrometheus) -> None:
    frame = read(spark, prometheus, "load", labels="pod,node")
    assert frame.columns == ["timestamp", "value", "pod", "node"]
    found = {row.pod: row.node for row in frame.select("pod", "node").distinct().collect()}
    assert found == {f"p{pod}": None if pod == 7 else f"n{pod % 3}" for pod in range(8)}


FILTERS = [
    "timestamp >= '2026-01-01T01:00:00Z'",
    "timestamp > '2026-01-01T01:00:00Z' and timestamp < '2026-01-01T01:10:00.000001Z'",
    "timestamp = '2026-01-01T02:00:00Z'",
    "timestamp < '2025-01-01'",
    "node = 'n1'",
    "node <> 'n1'",
    "node in ('n0', 'n2') and pod not in ('p2', 'p3')",
    "node is null",
    "node is not null and pod like 'p%'",
    "pod like '%3' or node = 'n2'",
    "not (pod like '%3%') and value > 90",
    "node <=> 'n1'",
    "not (node <=> 'n1')",
]


@pytest.mark.parametrize("query", ["load", pytest.param("load * 2", marks=pytest.mark.soak)])
def test_a_filter_gives_the_same_rows_pushed_down_or_not(
    spark: SparkSession, prometheus: FilledPrometheus, query: str
) -> None:
    # The rows that Spark filters on its own come from a table in memory, to which nothing is pushed.
    everything = read(spark, prometheus, query, labels="pod,node", step="60s").cache()
    for condition in FILTERS:
        pushed = read(spark, prometheus, query, labels="pod,node", step="60s").where(condition)
        assert Counter(pushed.collect()) == Counter(everything.where(condition).collect()), condition
    everything.unpersist()


def test_filters_on_time_and_labels_narrow_what_is_asked(spark: SparkSession) -> None:
    with serving(matrix()) as server:
        asked = {**RANGE, "url": server.url, "query": 'load{a="b"}', "labels": "pod"}
        frame = spark.read.format("prometheus").options(**asked).load()
        frame.where("timestamp >= '2026-01-01T01:00:01Z' and pod = 'p1'").collect()
    (one,) = server.asked
    assert one.fields["query"] == 'load{a="b",pod!="",pod="p1"}'
    assert one.fields["start"] == f"{known_data.START + 3615}.000"


def test_a_range_is_read_in_parallel_by_spans_and_by_values(spark: SparkSession, prometheus: FilledPrometheus) -> None:
    by_span = read(spark, prometheus, "load", partitionSpan="1h")
    assert by_span.rdd.getNumPartitions() == 4
    # Three nodes, and whatever has none or is new.
    by_value = read(spark, prometheus, "load", partitionSpan="2h", partitionBy="node")
    assert by_value.rdd.getNumPartitions() == 8


def test_spark_asks_again_after_a_passing_fault(spark: SparkSession) -> None:
    series = {"metric": {"pod": "p"}, "values": [[known_data.START, "1"]]}
    faults = [failure(429, "limit", "slow down", **{"Retry-After": "0"}), Answer(b"{", promised_bytes=9)]
    with serving(*faults, matrix(series)) as server:
        frame = spark.read.format("prometheus").options(**RANGE, url=server.url, query="load").load()
        assert [(row.value, row.labels) for row in frame.collect()] == [(1.0, {"pod": "p"})]


@pytest.mark.parametrize(
    ("query", "options", "words"),
    [
        ("sum(", {}, r"bad_data: .*parse error: unclosed left parenthesis"),
        ("load", {"stpe": "3"}, "stpe: '3': there is no such option: did you mean step"),
        ("load", {"start": ""}, "start: ''"),
        ("sum(load)", {"partitionBy": "pod"}, "partitionBy: 'pod': works where"),
        ("load", {"bearerTokenFile": "/nowhere/token"}, "bearerTokenFile: '/nowhere/token'"),
    ],
)
def test_what_cannot_be_read_is_said(
    spark: SparkSession, prometheus: FilledPrometheus, query: str, options: dict[str, str], words: str
) -> None:
    with pytest.raises(PySparkException, match=words):
        read(spark, prometheus, query, **options).collect()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"warnings": ["store east is away"]}, "the server warns: store east is away"),
        ({"isPartial": True}, "series may be missing from its answer"),
    ],
)
def test_a_partial_answer_is_refused(spark: SparkSession, more: dict[str, Any], words: str) -> None:
    series = {"metric": {}, "values": [[known_data.START, "1"]]}
    with serving(matrix(series, **more)) as server, pytest.raises(PySparkException, match=words):
        spark.read.format("prometheus").options(**RANGE, url=server.url, query="load").load().collect()


def test_a_schema_of_the_users_own_is_refused(spark: SparkSession, prometheus: FilledPrometheus) -> None:
    reader = spark.read.format("prometheus").options(**RANGE, url=prometheus.url, query="load").schema("x INT")
    with pytest.raises(PySparkException, match=r"schema: 'struct<x:int>': leave it out"):
        reader.load().collect()
