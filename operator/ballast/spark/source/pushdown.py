"""Spark's filters as bounds of time and tests of labels. Only what is exact is taken; the rest stays with Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from ballast.spark.source.label_test import Asks, LabelTest
from ballast.spark.source.moment import datetime_microseconds

_TIME = ("timestamp",)
_NOT_BEFORE = (GreaterThan, GreaterThanOrEqual, EqualTo, EqualNullSafe)
_NOT_AFTER = (LessThan, LessThanOrEqual, EqualTo, EqualNullSafe)
_ASKS = {
    EqualTo: Asks.EQUAL,
    EqualNullSafe: Asks.EQUAL,
    In: Asks.EQUAL,
    StringStartsWith: Asks.STARTS,
    StringEndsWith: Asks.ENDS,
    StringContains: Asks.CONTAINS,
}


@dataclass(frozen=True, slots=True)
class Pushdown:
    """Rows between two times (both included, None is no bound) of series that pass all tests."""

    low_us: int | None = None
    high_us: int | None = None
    tests: tuple[LabelTest, ...] = ()

    def later_than(self, low_us: int) -> Pushdown:
        return replace(self, low_us=low_us if self.low_us is None else max(self.low_us, low_us))

    def earlier_than(self, high_us: int) -> Pushdown:
        return replace(self, high_us=high_us if self.high_us is None else min(self.high_us, high_us))


def push(filters: Iterable[Filter], label_columns: Collection[str]) -> tuple[Pushdown, list[Filter]]:
    """What can be pushed of the filters, all of which must hold, and those that Spark still has to apply."""
    pushed, left = Pushdown(), []
    for one in filters:
        taken = _of_time(pushed, one) or _of_label(pushed, one, label_columns)
        if taken is None:
            left.append(one)
        else:
            pushed = taken
    return pushed, left


def _of_time(pushed: Pushdown, one: Filter) -> Pushdown | None:
    if one == IsNotNull(_TIME):
        return pushed
    if not isinstance(one, (*_NOT_BEFORE, *_NOT_AFTER)) or one.attribute != _TIME:
        return None
    if not isinstance(one.value, datetime):
        return None
    bound_us = datetime_microseconds(one.value)
    if isinstance(one, _NOT_BEFORE):
        pushed = pushed.later_than(bound_us + isinstance(one, GreaterThan))
    if isinstance(one, _NOT_AFTER):
        pushed = pushed.earlier_than(bound_us - isinstance(one, LessThan))
    return pushed


def _of_label(pushed: Pushdown, one: Filter, label_columns: Collection[str]) -> Pushdown | None:
    negated = isinstance(one, Not)
    test = _label_test(one.child if isinstance(one, Not) else one, negated=negated)
    if test is None or test.label not in label_columns:
        return None
    return replace(pushed, tests=(*pushed.tests, test))


def _label_test(one: Filter, *, negated: bool) -> LabelTest | None:
    if isinstance(one, IsNull | IsNotNull):
        return LabelTest(_column(one), Asks.ABSENT, negated=negated != isinstance(one, IsNotNull))
    if isinstance(one, EqualNullSafe) and negated:  # true where the label is absent, unlike the others
        return None
    asks = _ASKS.get(type(one))
    if asks is None:
        return None
    value = getattr(one, "value", None)
    values = tuple(value) if isinstance(one, In) and value else (value,)
    texts = tuple(text for text in values if isinstance(text, str))
    if len(texts) < len(values):
        return None
    return LabelTest(_column(one), asks, texts, negated)


def _column(one: Filter) -> str:
    return ".".join(getattr(one, "attribute", ()))
