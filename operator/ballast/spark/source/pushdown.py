"""Spark's filters as bounds of time and tests of labels. Only what is exact is taken; the rest stays with Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

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

from ballast.spark.source.moment import datetime_microseconds

_TIME = ("timestamp",)
_NOT_BEFORE = (GreaterThan, GreaterThanOrEqual, EqualTo, EqualNullSafe)
_NOT_AFTER = (LessThan, LessThanOrEqual, EqualTo, EqualNullSafe)


class Asks(StrEnum):
    EQUAL = "equal"
    STARTS = "starts"
    ENDS = "ends"
    CONTAINS = "contains"
    ABSENT = "absent"


_ASKS = {
    EqualTo: Asks.EQUAL,
    EqualNullSafe: Asks.EQUAL,
    In: Asks.EQUAL,
    StringStartsWith: Asks.STARTS,
    StringEndsWith: Asks.ENDS,
    StringContains: Asks.CONTAINS,
}


@dataclass(frozen=True, slots=True)
class LabelTest:
    """`label` must (or, where `negated`, must not) be one of the texts, start with one, and so on.

    As in SQL, a series without the label (null in its column) fails every test but that of absence.
    """

    label: str
    asks: Asks
    texts: tuple[str, ...] = ()
    negated: bool = False

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.label) or None
        if self.asks is Asks.ABSENT:
            return (value is None) != self.negated
        return value is not None and any(self._hits(value, text) for text in self.texts) != self.negated

    def _hits(self, value: str, text: str) -> bool:
        match self.asks:
            case Asks.STARTS:
                return value.startswith(text)
            case Asks.ENDS:
                return value.endswith(text)
            case Asks.CONTAINS:
                return text in value
            case _:
                return value == text

    def matcher(self) -> str:
        """A PromQL matcher that every series passes for which the test holds, and perhaps others."""
        operator = "!" if self.negated else "="
        if self.asks is Asks.ABSENT:
            return f'{self.label}{"!=" if self.negated else "="}""'
        if self.asks is Asks.EQUAL and len(self.texts) == 1:
            return f"{self.label}{operator.rstrip('=')}={quoted(self.texts[0])}"
        return f"{self.label}{operator}~{quoted('|'.join(self._expression(text) for text in self.texts))}"

    def _expression(self, text: str) -> str:
        literal = re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)
        before = "(?s:.*)" if self.asks in (Asks.ENDS, Asks.CONTAINS) else ""
        after = "(?s:.*)" if self.asks in (Asks.STARTS, Asks.CONTAINS) else ""
        return before + literal + after


def quoted(text: str) -> str:
    """A string literal of PromQL, whose escapes are those of JSON and more."""
    return json.dumps(text, ensure_ascii=False)


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
