"""Numbered records: written at a fixed pace, and found again one by one in the job's output.

What was written is known here without asking Spark anything: every figure of a record follows from its number.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_SPREAD = 2_654_435_761
_KEYS_MODULUS = 1 << 32
_CLOSING_SECONDS = 600.0
"""How far ahead the last record's time is, so that every window before it closes."""
CLOSING_ID = -1


@dataclass(frozen=True, slots=True)
class Stream:
    """What the records look like. `hot_ratio` of them carry one key and `hot_padding` characters."""

    records_per_second: int = 300
    keys: int = 240
    padding: int = 40
    hot_ratio: float = 0.0
    hot_padding: int = 0

    def key(self, number: int) -> int:
        mixed = number * _SPREAD % _KEYS_MODULUS
        return 0 if mixed < self.hot_ratio * _KEYS_MODULUS else 1 + mixed % (self.keys - 1)

    @staticmethod
    def value(number: int) -> int:
        return number * number % 1_000_003

    def line(self, number: int, at: float) -> str:
        key = self.key(number)
        length = self.hot_padding if key == 0 and self.hot_padding else self.padding
        padding = _text(number, length)
        record = {"id": number, "key": key, "at": at, "value": self.value(number), "padding": padding}
        return json.dumps(record, separators=(",", ":"))


def _text(number: int, length: int) -> str:
    """Of that length, the same for the same number, and not to be compressed away."""
    return random.Random(number).randbytes((length + 1) // 2).hex()[:length]  # noqa: S311 -- no secret


@dataclass(slots=True)
class Source:
    """Writes one file of records a second into a folder, from `start` until `close`."""

    folder: Path
    stream: Stream
    period_seconds: float = 1.0
    written: int = 0
    """Records 0 … written − 1 are in files."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._thread = threading.Thread(target=self._run, name="source", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, and write the record that lets the job close its last windows."""
        self.halt()
        at = time.time() + _CLOSING_SECONDS
        record = {"id": CLOSING_ID, "key": 1, "at": at, "value": 0, "padding": ""}
        self._file("closing", json.dumps(record) + "\n")

    def halt(self) -> None:
        """Stop as it is."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            self._tick()
            due += self.period_seconds
            self._stop.wait(max(0.0, due - time.monotonic()))

    def _tick(self) -> None:
        count, now = round(self.stream.records_per_second * self.period_seconds), time.time()
        numbers = range(self.written, self.written + count)
        self._file(f"{self.written:012}", "".join(self.stream.line(number, now) + "\n" for number in numbers))
        self.written += count

    def _file(self, name: str, text: str) -> None:
        """In one step: a reader sees the whole file or none."""
        partial = self.folder / f".{name}.partial"
        partial.write_text(text)
        partial.rename(self.folder / f"{name}.json")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Source and sink, record by record."""

    source: int
    sink: int
    lost: int
    duplicated: int
    altered: int
    """Came out with another key or value than they went in with, or never went in."""

    @property
    def agree(self) -> bool:
        return self.source == self.sink and not (self.lost or self.duplicated or self.altered)


def compare(stream: Stream, *, written: int, sink: Path, below: int | None = None) -> Comparison:
    """Compare what was written with every record in the sink; with `below`, with those of smaller numbers alone."""
    counts: Counter[int] = Counter()
    altered = 0
    for number, key, value in _output(sink, below):
        counts[number] += 1
        known = 0 <= number < written and (key, value) == (stream.key(number), stream.value(number))
        altered += not known
    lost = sum(number not in counts for number in range(written))
    duplicated = sum(count - 1 for count in counts.values())
    return Comparison(written, counts.total(), lost, duplicated, altered)


def arrived(sink: Path, *, below: int | None = None) -> int:
    """How many different records are in the sink; with `below`, of those with smaller numbers."""
    return len({number for number, _, _ in _output(sink, below)})


def _output(sink: Path, below: int | None) -> Iterator[tuple[int, int, int]]:
    """Number, key and value of every record in batches that were written wholly."""
    for line in _lines(batch for batch in sink.glob("batch=*") if (batch / "_SUCCESS").exists()):
        row = json.loads(line)
        for record in row["records"]:
            if record["id"] != CLOSING_ID and (below is None or record["id"] < below):
                yield record["id"], row["key"], record["value"]


def _lines(batches: Iterable[Path]) -> Iterator[str]:
    for batch in sorted(batches):
        for part in sorted(batch.glob("part-*.json")):
            yield from part.read_text().splitlines()
