from __future__ import annotations

import pickle
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import InputPartition

from ballast.errors import InvalidField
from ballast.spark.source.options import Options
from ballast.spark.source.reader import (
    Part,
    PrometheusStreamReader,
    is_plain_label,
    pinned,
    selector,
    takes_matchers,
    with_matchers,
)

STEP_MS = 15_000


@pytest.mark.parametrize(
    ("query", "changed"),
    [
        ("up", 'up{a="1"}'),
        ("up{}", 'up{a="1"}'),
        ('up{b="2"}', 'up{b="2",a="1"}'),
        ('up{b="2",}', 'up{b="2",a="1"}'),
        ('{__name__=~"x.*"}', '{__name__=~"x.*",a="1"}'),
        ('up{b="}{\\"#"}', 'up{b="}{\\"#",a="1"}'),
        ("up{b='x', c=`}`}", "up{b='x', c=`}`,a=\"1\"}"),
        ("up offset 5m", 'up{a="1"} offset 5m'),
        ("up @ 1767225600.000", 'up{a="1"} @ 1767225600.000'),
        ("rate(x_total[5m])", 'rate(x_total{a="1"}[5m])'),
        (' max_over_time ( a:b {c!="d"} [1h] offset 5m )', ' max_over_time ( a:b {c!="d",a="1"} [1h] offset 5m )'),
        ("rate(rate[5m])", 'rate(rate{a="1"}[5m])'),
    ],
)  # fmt: skip
def test_a_matcher_is_added_to_the_one_selector_of_a_query(query: str, changed: str) -> None:
    assert takes_matchers(query)
    assert with_matchers(query, ['a="1"']) == changed
    assert with_matchers(query, []) == query


@pytest.mark.parametrize(
    "query",
    [
        "sum(up)", "up + up", "a and b", "topk(1, up)", "rate(x[5m:1m])", "rate(x[5m]) > 1", "absent(up)", "time()",
        "vector(1)", "1", "NaN", "Inf", '"text"', "up # note", 'label_replace(up, "a", "$1", "b", "(.*)")',
        "quantile_over_time(0.5, x[5m])", "-up", "(up)", "up offset 5m + 1", "",
    ],
)  # fmt: skip
def test_other_queries_are_left_as_they_are(query: str) -> None:
    assert not takes_matchers(query)


@pytest.mark.parametrize(
    ("query", "expected"),
    [("up", "up"), ('rate(x{a="b"} [5m])', 'x{a="b"}'), ('{a="b"} offset 1h', '{a="b"}')],
)
def test_the_selector_of_a_query_is_found(query: str, expected: str) -> None:
    assert selector(query) == expected


def test_the_ends_of_the_range_are_pinned_outside_of_texts_and_remarks() -> None:
    query = 'x @ end() + y{a="@ start()"} @start( ) # @ end()'
    assert pinned(query, start_ms=1_500, end_ms=20_007) == 'x @ 20.007 + y{a="@ start()"} @ 1.500 # @ end()'


@pytest.mark.parametrize(("name", "plain"), [("pod", True), ("__name__", False), ("my.label", False), ("1a", False)])
def test_matchers_are_added_for_plain_labels_alone(name: str, *, plain: bool) -> None:
    assert is_plain_label(name) is plain


class Clock:
    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def reader(clock: Clock, **options: str) -> PrometheusStreamReader:
    given = {"url": "http://prometheus:9090", "query": "up", "step": "15s", "delay": "30s", **options}
    return PrometheusStreamReader(Options.read(given), pa.schema([]), now_ms=clock)


def steps(partitions: Sequence[InputPartition]) -> list[int]:
    grids = [part.grid for part in partitions if isinstance(part, Part)]
    return [grid.start_ms + n * grid.step_ms for grid in grids for n in range(grid.count)]


def test_a_new_stream_begins_at_the_first_step_that_is_not_delay_old() -> None:
    stream = reader(Clock(1_000_000))
    assert stream.initialOffset() == {"next": "1970-01-01T00:16:15.000Z"}  # 975 s is the first step after 970 s


def test_a_new_stream_begins_where_it_is_told() -> None:
    assert reader(Clock(1_000_000), start="61").initialOffset() == {"next": "1970-01-01T00:01:15.000Z"}


def test_a_step_is_read_as_soon_as_it_is_delay_old_and_not_before() -> None:
    clock = Clock(1_000_000)
    stream = reader(clock)
    start = stream.initialOffset()
    clock.now_ms = 975_000 + 30_000 - 1
    assert stream.latestOffset(start) == start
    assert stream.partitions(start, start) == []
    clock.now_ms = 975_000 + 30_000
    assert steps(stream.partitions(start, stream.latestOffset(start))) == [975_000]


def test_catching_up_takes_at_most_so_much_a_batch() -> None:
    stream = reader(Clock(10_000_000), start="0", maxSpanPerTrigger="10m", partitionSpan="4m")
    start = stream.initialOffset()
    end = stream.latestOffset(start)
    parts = stream.partitions(start, end)
    assert len(steps(parts)) == 40
    assert [part.grid.count for part in parts if isinstance(part, Part)] == [16, 16, 8]


def test_catching_up_is_bounded_too_where_spark_does_not_say_the_start() -> None:
    stream = reader(Clock(10_000_000), start="0", maxSpanPerTrigger="10m")
    start = stream.initialOffset()
    first = stream.latestOffset()
    assert len(steps(stream.partitions(start, first))) == 40
    assert len(steps(stream.partitions(first, stream.latestOffset()))) == 40


def test_with_what_is_available_now_the_end_stays_where_it_was() -> None:
    clock = Clock(1_000_000)
    stream = reader(clock, start="900")
    stream.prepareForTriggerAvailableNow()
    clock.now_ms += 3_600_000
    assert steps(stream.partitions(stream.initialOffset(), stream.latestOffset(stream.initialOffset())))[-1] == 960_000


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        [],
        {},
        {"next": None},
        {"next": 1767225600},
        {"next": "now"},
        {"next": "5"},
        {"next": ""},
        {"partition-0": "7"},
    ],
)
def test_an_offset_of_a_damaged_checkpoint_is_refused_and_not_taken_for_another_time(damaged: Any) -> None:
    """It would be read from 1970 on, or from now."""
    stream = reader(Clock(1_000_000))
    with pytest.raises(InvalidField, match="offset"):
        stream.partitions(damaged, stream.latestOffset())


def test_a_clock_that_goes_back_takes_nothing_back() -> None:
    clock = Clock(1_000_000)
    stream = reader(clock)
    start = stream.initialOffset()
    clock.now_ms = 500_000
    assert stream.latestOffset(start) == start


@given(st.lists(st.integers(-20_000, 400_000), min_size=1, max_size=20), st.integers(1, 9), st.integers(1, 4))
def test_each_step_belongs_to_exactly_one_batch(waits_ms: list[int], trigger: int, span: int) -> None:
    clock = Clock(1_000_000)
    options = {"maxSpanPerTrigger": f"{trigger * 15}s", "partitionSpan": f"{span * 15}s"}
    offset = reader(clock, **options).initialOffset()
    read = []
    for wait_ms in waits_ms:
        clock.now_ms += wait_ms
        stream = reader(clock, **options)  # as after a restart: only the offset is known
        end = stream.latestOffset(offset)
        read += steps(stream.partitions(offset, end))
        offset = end
    assert all(later - earlier == STEP_MS for earlier, later in pairwise(read))
    assert read[:1] in ([], [975_000])


def test_a_batch_that_is_read_again_has_the_same_steps() -> None:
    start, end = {"next": "2026-01-01T00:00:00.000Z"}, {"next": "2026-01-01T00:10:00.000Z"}
    first = reader(Clock(1_767_300_000_000)).partitions(start, end)
    again = reader(Clock(1_767_400_000_000)).partitions(start, end)
    assert len(steps(first)) == 40
    assert steps(first) == steps(again)


def test_a_stream_whose_step_was_changed_goes_on_with_multiples_of_the_new_one() -> None:
    offset = {"next": "1970-01-01T00:00:15.000Z"}
    stream = reader(Clock(400_000), step="60s", maxSpanPerTrigger="2m")
    read = []
    for _ in range(4):
        end = stream.latestOffset(offset)
        read += steps(stream.partitions(offset, end))
        offset = end
    assert read == [60_000, 120_000, 180_000, 240_000, 300_000, 360_000]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"end": "now"}, "end: 'now': leave it out"), ({"query": "x - x @ end()"}, "query: .*use @ with a time")],
)
def test_what_a_stream_does_not_have_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidField, match=words):
        reader(Clock(0), **options)


def test_a_reader_travels_to_the_executors() -> None:
    options = Options.read({"url": "http://prometheus:9090", "query": "up", "step": "15s"})
    stream = PrometheusStreamReader(options, pa.schema([]))
    assert isinstance(pickle.loads(pickle.dumps(stream)), PrometheusStreamReader)
