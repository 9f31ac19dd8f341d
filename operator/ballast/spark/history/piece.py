"""Which time of a day one file holds: all of it, or some hours where a day has too many rows for one file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ballast.spark.history.day import DAY_MS, Day

_HOUR_MS = 3_600_000
_HOURS = (24, 12, 8, 6, 4, 3, 2, 1)
_FILE = re.compile(r"history(?:-(\d\d)-(\d\d))?\.parquet", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Piece:
    """From one hour of the day (UTC) to another."""

    first: int = 0
    end: int = 24

    @classmethod
    def named(cls, file: str) -> Piece | None:
        """None for what is no file of a history."""
        found = _FILE.fullmatch(file)
        if found is None:
            return None
        piece = cls(int(found[1]), int(found[2])) if found[1] else cls()
        return piece if piece.file == file and piece in pieces(piece.hours) else None

    @property
    def hours(self) -> int:
        return self.end - self.first

    @property
    def file(self) -> str:
        return "history.parquet" if self.hours == 24 else f"history-{self.first:02}-{self.end:02}.parquet"

    def start_ms(self, day: Day) -> int:
        return day.start_ms + self.first * _HOUR_MS

    def end_ms(self, day: Day) -> int:
        """Exclusive."""
        return day.start_ms + self.end * _HOUR_MS


def pieces(hours: int) -> list[Piece]:
    """A day's, each of so many hours; none where such don't make up a day."""
    return [Piece(first, first + hours) for first in range(0, 24, hours)] if hours in _HOURS else []


def fitting_hours(rows: int, *, known_ms: int, most_rows: int) -> int:
    """Of the longest pieces that hold at most so many rows, if the whole day goes on as the part that is known."""
    a_day = rows * DAY_MS / known_ms
    return next((hours for hours in _HOURS if a_day * hours / 24 <= most_rows), _HOURS[-1])
