"""The one schema of the history, and its days. docs/history.md says what the columns hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sql

from ballast.errors import InvalidField

VERSION = 2
VERSION_KEY = "ballast.dev/schema"
_THROUGH, _STEP, _WINDOW = "ballast.dev/through", "ballast.dev/step", "ballast.dev/window"
SORT = ("signal", "node", "namespace", "pod", "detail", "time", "value")
"""Rows in a file are in this order: it compresses best, and the same rows make the same bytes."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a file says of itself. It is kept, like the version, as metadata of the column `time`."""

    through_ms: int
    """Up to when its day is known, in milliseconds since 1970, exclusive."""
    step_ms: int
    """From one figure of a series to the next."""
    window_ms: int
    """What rates are means over: the policy's metric window."""

    @classmethod
    def stored(cls, found: Mapping[str, Any]) -> Metadata:
        """Of a file of this version."""
        return cls(int(found[_THROUGH]), int(found[_STEP]), int(found[_WINDOW]))


def columns(metadata: Metadata) -> list[Column]:
    """The columns of a file, in their order."""
    kept = {
        VERSION_KEY: VERSION,
        _THROUGH: metadata.through_ms,
        _STEP: metadata.step_ms,
        _WINDOW: metadata.window_ms,
    }
    time = sql.col("time").alias("time", metadata=kept)
    return [time, *(sql.col(name) for name in SORT if name not in ("time", "value")), sql.col("value")]


# Days in UTC, and which of them are still to be collected.

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, order=True)
class Day:
    """From midnight to midnight, UTC."""

    date: date

    @classmethod
    def parse(cls, text: str, *, field: str) -> Day:
        """Raises InvalidField."""
        try:
            return cls(date.fromisoformat(text))
        except ValueError:
            raise InvalidField(field, text, "write a day such as 2026-11-21") from None

    @classmethod
    def of(cls, milliseconds: int) -> Day:
        return cls(datetime.fromtimestamp(milliseconds / 1000, tz=UTC).date())

    @property
    def start_ms(self) -> int:
        return int(datetime(self.date.year, self.date.month, self.date.day, tzinfo=UTC).timestamp()) * 1000

    @property
    def end_ms(self) -> int:
        """Exclusive."""
        return self.start_ms + DAY_MS

    def plus(self, days: int) -> Day:
        return Day(self.date + timedelta(days=days))

    def __str__(self) -> str:
        return self.date.isoformat()


@dataclass(frozen=True, slots=True)
class Stretch:
    """One day's part that can be collected: from its start to `through_ms`, exclusive."""

    day: Day
    through_ms: int

    @property
    def complete(self) -> bool:
        return self.through_ms == self.day.end_ms


def stretches(first: Day, last: Day, *, ripe_ms: int) -> Iterator[Stretch]:
    """The days from first to last, as far as they are ripe: figures before `ripe_ms` are all there."""
    day = first
    while day <= last and day.start_ms < ripe_ms:
        yield Stretch(day, min(day.end_ms, ripe_ms))
        day = day.plus(1)


def missing(wanted: Iterable[Stretch], through_ms: Mapping[Day, int]) -> list[Stretch]:
    """Those that a history lacks wholly or in part. `through_ms`: what each of its days is known up to."""
    return [stretch for stretch in wanted if through_ms.get(stretch.day) != stretch.day.end_ms]
