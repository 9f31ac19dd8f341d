from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql import datasource as spark

from ballast.spark.source.label_test import Asks, LabelTest
from ballast.spark.source.pushdown import Pushdown, push

TIME = ("timestamp",)
POD = ("pod",)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_US = 1_767_268_800_000_000


def asking(asks: Asks, *texts: str, negated: bool = False) -> Pushdown:
    return Pushdown(tests=(LabelTest("pod", asks, texts, negated),))


@pytest.mark.parametrize(
    ("one", "pushed"),
    [
        (spark.GreaterThan(TIME, NOON), Pushdown(low_us=NOON_US + 1)),
        (spark.GreaterThanOrEqual(TIME, NOON), Pushdown(low_us=NOON_US)),
        (spark.LessThan(TIME, NOON), Pushdown(high_us=NOON_US - 1)),
        (spark.LessThanOrEqual(TIME, NOON), Pushdown(high_us=NOON_US)),
        (spark.EqualTo(TIME, NOON), Pushdown(NOON_US, NOON_US)),
        (spark.EqualNullSafe(TIME, NOON), Pushdown(NOON_US, NOON_US)),
        (spark.IsNotNull(TIME), Pushdown()),
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
    "one",
    [
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
    assert left == []
