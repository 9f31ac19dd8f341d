"""Times, spans and steps of the data source, in whole milliseconds as Prometheus keeps them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from ballast.errors import InvalidField

_UNITS_MS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
    "y": 31_536_000_000,
}

_SPAN = re.compile(r"(?:[0-9]+(?:ms|[smhdwy]))+", re.ASCII)
_TERM = re.compile(r"([0-9]+)(ms|[smhdwy])", re.ASCII)
_NOW = re.compile(r"now(?:\s*([+-])\s*(\w+))?", re.ASCII)
_SPAN_REMEDY = "write a span such as 15s, 5m, 6h or 1d12h, or seconds"
_TIME_REMEDY = "write a time such as 2026-11-21T17:00:00Z, seconds since 1970, now, or now-6h"
MOST_STEPS = 11_000
"""Points a series that Prometheus answers at once; more it refuses."""


def span_ms(text: str, *, field: str) -> int:
    """A positive span in Prometheus' own grammar (`1d12h`), or in seconds (`15`, `0.5`). Raises InvalidField."""
    words = text.strip()
    if _SPAN.fullmatch(words):
        milliseconds = sum(int(count) * _UNITS_MS[unit] for count, unit in _TERM.findall(words))
    else:
        milliseconds = _seconds_as_ms(words, field, _SPAN_REMEDY)
    if milliseconds <= 0:
        raise InvalidField(field, text, "write a span of at least one millisecond")
    return milliseconds


def time_ms(text: str, *, now_ms: int, field: str) -> int:
    """Milliseconds since 1970 of an RFC 3339 time with its offset, an epoch in seconds, or `now-6h`.

    Raises InvalidField. What is finer than a millisecond is cut off.
    """
    words = text.strip()
    relative = _NOW.fullmatch(words)
    if relative:
        shift = span_ms(relative[2], field=field) if relative[2] else 0
        return now_ms - shift if relative[1] == "-" else now_ms + shift
    if re.match(r"\d{4}-\d{2}-\d{2}", words, re.ASCII):
        return rfc3339_ms(words, field=field)
    return _seconds_as_ms(words, field, _TIME_REMEDY)


def datetime_microseconds(moment: datetime) -> int:
    """Microseconds since 1970; a time without an offset is UTC, as Spark hands filters over."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def as_rfc3339(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds // 1000, tz=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


def rfc3339_ms(words: str, *, field: str) -> int:
    """Milliseconds since 1970 of a time with its offset. Raises InvalidField."""
    try:
        moment = datetime.fromisoformat(words)
    except ValueError:
        raise InvalidField(field, words, _TIME_REMEDY) from None
    if moment.tzinfo is None:
        raise InvalidField(field, words, "say which zone the time is in, with Z or an offset such as +02:00")
    return datetime_microseconds(moment) // 1000


def _seconds_as_ms(words: str, field: str, remedy: str) -> int:
    try:
        seconds = Decimal(words)
    except InvalidOperation:
        raise InvalidField(field, words, remedy) from None
    if not seconds.is_finite() or abs(seconds) > 10**11:
        raise InvalidField(field, words, remedy)
    return int(seconds * 1000)


@dataclass(frozen=True, slots=True)
class Grid:
    """`count` steps from `start_ms` on, `step_ms` apart. A narrower grid keeps to the same steps."""

    start_ms: int
    step_ms: int
    count: int

    @classmethod
    def between(cls, start_ms: int, end_ms: int, *, step_ms: int) -> Grid:
        """Both ends included, as Prometheus does; empty if the end is before the start."""
        return cls(start_ms, step_ms, max(0, (end_ms - start_ms) // step_ms + 1))

    @property
    def last_ms(self) -> int:
        """The last step; before `start_ms` if there is none."""
        return self.start_ms + (self.count - 1) * self.step_ms

    def narrowed(self, low_us: int | None, high_us: int | None) -> Grid:
        """The steps from `low_us` to `high_us`, both included; None is no bound. In microseconds, as Spark compares."""
        step_us, start_us = self.step_ms * 1000, self.start_ms * 1000
        first = 0 if low_us is None else max(0, -((start_us - low_us) // step_us))
        last = self.count - 1 if high_us is None else min(self.count - 1, (high_us - start_us) // step_us)
        return Grid(self.start_ms + first * self.step_ms, self.step_ms, max(0, last - first + 1))

    def parts(self, most_steps: int) -> Iterator[Grid]:
        """Cut into grids of at most so many steps, in order."""
        for done in range(0, self.count, most_steps):
            yield Grid(self.start_ms + done * self.step_ms, self.step_ms, min(most_steps, self.count - done))
