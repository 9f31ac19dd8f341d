from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import datasource as spark

from ballast.spark.source.options import Asks, LabelTest, Pushdown, push

TIME = ("timestamp",)
POD = ("pod",)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_US = 1_767_268_800_000_000

texts = st.text(st.sampled_from('ab.*+?()[]{}^$|\\"\n é'), max_size=4)

several = st.lists(texts, min_size=1, max_size=3).map(tuple)

tests = st.one_of(
    st.builds(LabelTest, st.just("a"), st.just(Asks.EQUAL), several, st.booleans()),
    st.builds(
        LabelTest,
        st.just("a"),
        st.sampled_from([Asks.STARTS, Asks.ENDS, Asks.CONTAINS]),
        texts.map(lambda text: (text,)),
        st.booleans(),
    ),
    st.builds(LabelTest, st.just("a"), st.just(Asks.ABSENT), st.just(()), st.booleans()),
)  # fmt: skip

series = st.one_of(st.just({}), st.builds(lambda value: {"a": value}, texts))


def asking(asks: Asks, *texts: str, negated: bool = False) -> Pushdown:
    return Pushdown(tests=(LabelTest("pod", asks, texts, negated),))


@pytest.mark.parametrize(
    ("one", "pushed"),
    [
        (spark.EqualTo(POD, "x"), asking(Asks.EQUAL, "x")),
        (spark.EqualNullSafe(POD, "x"), asking(Asks.EQUAL, "x")),
        (spark.Not(spark.EqualTo(POD, "x")), asking(Asks.EQUAL, "x", negated=True)),
        (spark.In(POD, ("x", "y")), asking(Asks.EQUAL, "x", "y")),
        (spark.StringStartsWith(POD, "x"), asking(Asks.STARTS, "x")),
        (spark.StringEndsWith(POD, "x"), asking(Asks.ENDS, "x")),
        (spark.StringContains(POD, "x"), asking(Asks.CONTAINS, "x")),
        (spark.IsNull(POD), asking(Asks.ABSENT)),
        (spark.IsNotNull(POD), asking(Asks.ABSENT, negated=True)),
        (spark.Not(spark.IsNull(POD)), asking(Asks.ABSENT, negated=True)),
    ],
)  # fmt: skip
def test_an_exact_filter_is_pushed_and_not_left_to_spark(one: spark.Filter, pushed: Pushdown) -> None:
    assert push([one], ["pod"]) == (pushed, [])


@pytest.mark.parametrize(
    ("one", "pushed"),
    [
        (spark.GreaterThan(TIME, NOON), Pushdown(low_us=NOON_US + 1)),
        (spark.GreaterThanOrEqual(TIME, NOON), Pushdown(low_us=NOON_US)),
        (spark.LessThan(TIME, NOON), Pushdown(high_us=NOON_US - 1)),
        (spark.LessThanOrEqual(TIME, NOON), Pushdown(high_us=NOON_US)),
        (spark.EqualTo(TIME, NOON), Pushdown(NOON_US, NOON_US)),
        (spark.EqualNullSafe(TIME, NOON), Pushdown(NOON_US, NOON_US)),
    ],
)
def test_a_filter_of_time_is_pushed_and_applied_by_spark_as_well(one: spark.Filter, pushed: Pushdown) -> None:
    """A server that caches answers moves steps, and with them rows to times that were not asked for."""
    assert push([one], ["pod"]) == (pushed, [one])


@pytest.mark.parametrize(
    "one",
    [
        spark.IsNotNull(TIME),
        spark.GreaterThan(("value",), 1.0),
        spark.IsNotNull(("value",)),
        spark.EqualTo(("other",), "x"),
        spark.GreaterThan(POD, "x"),
        spark.In(POD, ("x", None)),
        spark.In(POD, ()),
        spark.EqualNullSafe(POD, None),
        spark.Not(spark.EqualNullSafe(POD, "x")),
        spark.Not(spark.EqualTo(TIME, NOON)),
        spark.In(TIME, (NOON,)),
        spark.IsNull(TIME),
    ],
)
def test_other_filters_are_left_to_spark(one: spark.Filter) -> None:
    assert push([one], ["pod"]) == (Pushdown(), [one])


def test_of_several_bounds_the_narrowest_holds() -> None:
    later = NOON.replace(hour=13)
    filters = [spark.GreaterThan(TIME, NOON), spark.GreaterThan(TIME, later), spark.LessThan(TIME, later)]
    pushed, left = push(filters, [])
    assert pushed == Pushdown(NOON_US + 3_600_000_000 + 1, NOON_US + 3_600_000_000 - 1)
    assert left == filters


def passes(matcher: str, value: str) -> bool:
    """As Prometheus decides it; a label that is absent has the value ''."""
    found = re.fullmatch(r"a(=~|!~|!=|=)(.*)", matcher, re.DOTALL)
    assert found
    text: str = json.loads(found[2])
    match found[1]:
        case "=":
            return value == text
        case "!=":
            return value != text
        case "=~":
            return re.fullmatch(text, value) is not None
        case _:
            return re.fullmatch(text, value) is None


@given(tests, series)
def test_a_matcher_never_hides_a_series_that_the_test_wants(test: LabelTest, labels: dict[str, str]) -> None:
    if test.holds(labels):
        assert passes(test.matcher(), labels.get("a", ""))


@pytest.mark.parametrize(
    ("test", "labels", "holds"),
    [
        (LabelTest("a", Asks.EQUAL, ("x", "y")), {"a": "y"}, True),
        (LabelTest("a", Asks.EQUAL, ("x",)), {"a": "xy"}, False),
        (LabelTest("a", Asks.EQUAL, ("x",), negated=True), {"a": "y"}, True),
        (LabelTest("a", Asks.EQUAL, ("x",), negated=True), {}, False),
        (LabelTest("a", Asks.STARTS, ("x",)), {"a": "xy"}, True),
        (LabelTest("a", Asks.ENDS, ("x",)), {"a": "xy"}, False),
        (LabelTest("a", Asks.CONTAINS, ("y",), negated=True), {"a": "xyz"}, False),
        (LabelTest("a", Asks.ABSENT), {}, True),
        (LabelTest("a", Asks.ABSENT), {"a": ""}, True),
        (LabelTest("a", Asks.ABSENT, negated=True), {"a": "x"}, True),
        (LabelTest("a", Asks.ABSENT, negated=True), {}, False),
    ],
)
def test_a_series_is_tested_as_sql_tests_its_column(test: LabelTest, labels: dict[str, str], *, holds: bool) -> None:
    assert test.holds(labels) is holds


def test_a_matcher_takes_texts_literally() -> None:
    assert LabelTest("a", Asks.EQUAL, ('x"\n',)).matcher() == 'a="x\\"\\n"'
    assert LabelTest("a", Asks.STARTS, ("x.",)).matcher() == 'a=~"x\\\\.(?s:.*)"'
