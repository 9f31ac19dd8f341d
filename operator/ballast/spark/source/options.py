"""The options of the data source, read once and checked all together."""

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

from ballast.errors import InvalidField, nearest
from ballast.prometheus.server import HEADERS, OPTIONS, Server
from ballast.spark.source.moment import MOST_STEPS, Grid, as_rfc3339, datetime_microseconds, span_ms, time_ms

_KNOWN = (
    "url", "query", "start", "end", "step", "timeout", "partitionSpan", "partitionBy", "labels", "delay",
    "maxSpanPerTrigger", *(name for name in OPTIONS if name != "url"),
)  # fmt: skip
_COLUMNS = ("timestamp", "value")
_STREAMS_ONLY = ("delay", "maxSpanPerTrigger")


@dataclass(frozen=True, slots=True)
class Options:
    """What is asked, and how it is shown and cut. Times as written: they are read against a clock when needed."""

    server: Server
    query: str
    step_ms: int
    start: str | None = None
    end: str | None = None
    span_steps: int = MOST_STEPS
    """Steps of one partition at most."""
    partition_by: str | None = None
    label_columns: tuple[str, ...] | None = None
    """Labels with their own column; None is one column with all of them."""
    delay_ms: int = 60_000
    trigger_steps: int = MOST_STEPS
    """Steps of one micro-batch at most."""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Options:
        """From the options of a Spark reader, whose names differ by more than case. Raises InvalidField."""
        options = {name.lower(): value for name, value in given.items()}
        _refuse_unknown(options)
        step_ms = span_ms(_needed(options, "step", "say how far apart the points are, such as 15s"), field="step")
        span_steps = _steps(options, "partitionSpan", step_ms)
        return cls(
            server=server(options),
            query=_needed(options, "query", "say what to ask, in PromQL"),
            step_ms=step_ms,
            start=options.get("start"),
            end=options.get("end"),
            span_steps=min(span_steps or MOST_STEPS, MOST_STEPS),
            partition_by=options.get("partitionby") or None,
            label_columns=_label_columns(options.get("labels")),
            delay_ms=span_ms(options.get("delay", "60s"), field="delay"),
            trigger_steps=_steps(options, "maxSpanPerTrigger", step_ms) or span_steps or MOST_STEPS,
        )

    def range_ms(self, *, now_ms: int) -> tuple[int, int]:
        """Start and end as asked for. Raises InvalidField."""
        if self.start is None:
            raise InvalidField("start", None, "say where to begin, such as now-6h or 2026-11-21T00:00:00Z")
        start_ms = time_ms(self.start, now_ms=now_ms, field="start")
        end_ms = time_ms(self.end or "now", now_ms=now_ms, field="end")
        if end_ms < start_ms:
            raise InvalidField("end", self.end or "now", f"write a time that is not before {as_rfc3339(start_ms)}")
        return start_ms, end_ms

    def grid(self, *, now_ms: int) -> Grid:
        """All the steps that are asked for. Raises InvalidField."""
        return Grid.between(*self.range_ms(now_ms=now_ms), step_ms=self.step_ms)


def refuse_for_batches(given: Mapping[str, str]) -> None:
    """Raises InvalidField for an option that only a stream heeds."""
    options = {name.lower(): value for name, value in given.items()}
    for name in _STREAMS_ONLY:
        if name.lower() in options:
            remedy = "leave it out, it is for streams (readStream): this reads all from start to end, as it is now"
            raise InvalidField(name, options[name.lower()], remedy)


def _needed(options: Mapping[str, str], name: str, remedy: str) -> str:
    value = options.get(name, "").strip()
    if not value:
        raise InvalidField(name, options.get(name), remedy)
    return value


def _steps(options: Mapping[str, str], name: str, step_ms: int) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    steps = span_ms(text, field=name) // step_ms
    if steps < 1:
        raise InvalidField(name, text, "write a span of at least one step")
    return steps


def _label_columns(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise InvalidField("labels", text, "write names of labels, such as namespace,pod, or leave the option out")
    taken = next((name for at, name in enumerate(names) if name.lower() in (*_COLUMNS, *_lower(names[:at]))), None)
    if taken:
        raise InvalidField(
            "labels", text, f"{taken} is the name of another column already: label_replace can rename it"
        )
    return names


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _refuse_unknown(options: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in _KNOWN}
    for name, value in options.items():
        if name in known or name.startswith(HEADERS):
            continue
        if name in ("path", "paths"):
            raise InvalidField(name, value, "call load() with nothing: url says where Prometheus answers")
        close = nearest(name, known)
        meant = f"did you mean {known[close]}?" if close else f"there are {', '.join(_KNOWN)} and headers.*"
        raise InvalidField(name, value, f"there is no such option: {meant}")


def server(given: Mapping[str, str]) -> Server:
    """Of all options, those about the server. Raises InvalidField."""
    options = {name.lower(): value for name, value in given.items()}
    timeout_seconds = span_ms(options.get("timeout", "120s"), field="timeout") / 1000
    return Server.of(options, timeout_seconds=timeout_seconds)


# Spark's filters as bounds of time and tests of labels. Only what is exact is taken; the rest stays with Spark.

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
    """What can be pushed of the filters, all of which must hold, and those that Spark still has to apply.

    Spark applies those of time as well: a server that caches answers (VictoriaMetrics, Thanos' query frontend) moves
    steps to multiples of their length, and so to times that were not asked for.
    """
    pushed, left = Pushdown(), []
    for one in filters:
        of_time, of_label = _of_time(pushed, one), _of_label(pushed, one, label_columns)
        if of_label is None:
            left.append(one)
        pushed = of_time or of_label or pushed
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
