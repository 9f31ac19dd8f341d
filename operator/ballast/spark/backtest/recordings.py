"""A history as what is run in: excerpts of recorded time, each of which its tasks read where they run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import TypeAdapter
from pyspark.sql import SparkSession

from ballast.errors import InvalidField
from ballast.simulation.recorded.reading import extended, recording
from ballast.simulation.recording import Rows, Texts, UnusableRecordingError, instant, window_name
from ballast.simulation.replay import RecordingTrial, Replay
from ballast.simulation.study import left_out_told
from ballast.spark.backtest.cases import Run, Window, digest, left_out_row, told
from ballast.spark.errors import BacktestError, HistoryError
from ballast.spark.history.schema import DAY_MS, Day, Metadata
from ballast.spark.history.store import Part, Piece, Store
from ballast.spark.source.moment import rfc3339_ms
from ballast.spark.storage import Storage

Batches = Iterator[pa.RecordBatch]

_NOTHING = "the history has nothing of it: collect it with `ballast history --from … --to …`"
_GAP = "a file of the day is missing: run `ballast history` again"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME_REMEDY = "write a day such as 2026-11-21, or a time such as 2026-11-21T14:00:00Z"
_LEAST_WINDOW_MS = 60_000
"""Shorter ones hold few figures, and their names, to the second, could be one."""

_TEXT = pa.dictionary(pa.int32(), pa.string())
_TEXTS = ("signal", "node", "namespace", "pod", "detail")

_SIGNALS = (
    "nodeCpu",
    "nodeMemory",
    "nodeCores",
    "nodeMemoryCapacity",
    "nodeAllocatableCores",
    "nodeAllocatableMemory",
    "nodeUnschedulable",
    "nodeScore",
    "placement",
    "executorCpu",
    "executorMemory",
    "executorNetwork",
    "executorRequestCores",
    "executorRequestMemory",
    "executorApplication",
    "decisions",
    "pass",
)
"""Those that a recording is made of."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of a history."""

    pools: tuple[str, ...] = ()
    """All, if empty."""
    start_ms: int | None = None
    """Since 1970; from the first day that there is, if absent."""
    end_ms: int | None = None
    """Exclusive; to the end, if absent."""
    window_ms: int = DAY_MS

    def holds(self, part: Part) -> bool:
        early = self.start_ms is not None and part.day.end_ms <= self.start_ms
        late = self.end_ms is not None and part.day.start_ms >= self.end_ms
        return not (early or late) and (not self.pools or part.pool in self.pools)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """[start, end) of one pool, and the parts that tell of it."""

    pool: str
    start_ms: int
    end_ms: int
    parts: tuple[Part, ...]

    @property
    def seconds(self) -> float:
        return (self.end_ms - self.start_ms) / 1000

    @property
    def name(self) -> str:
        return window_name(self.pool, self.start_ms / 1000)


class Recordings:
    """`path`: of the history. Raises HistoryError or InvalidField."""

    def __init__(self, spark: SparkSession, path: str, selection: Selection, how: Replay) -> None:
        self._how = how
        self._store = Store(spark, path)
        parts = self._parts(path, selection)
        through_ms = {part: metadata.through_ms for part, metadata in parts.items()}
        found = {each.name: each for each in excerpts(through_ms, selection)}
        pieces = {part: self._store.pieces(part) for part in parts}
        self._files = {name: _files(each, pieces) for name, each in found.items()}
        self._excerpts = {name: each for name, each in found.items() if self._files[name]}
        self.left_out: Mapping[str, str] = {
            name: _GAP if each.parts else _NOTHING for name, each in found.items() if not self._files[name]
        }
        if not self._excerpts:
            why = [f"{path} holds no history of {_asked(selection)}", *left_out_told(self.left_out)]
            raise HistoryError("; ".join(why))
        self._storage = Storage.of(spark)
        described = _described(how)
        self.windows = tuple(
            Window(
                each.name,
                digest("Recording", each.name, each.start_ms, each.end_ms, self._states(each.name), described),
                metric_window_seconds=_metric_window_seconds(each, parts),
            )
            for each in self._excerpts.values()
        )

    def _parts(self, path: str, selection: Selection) -> Mapping[Part, Metadata]:
        pools: set[str] = set()

        def wanted(part: Part) -> bool:
            pools.add(part.pool)
            return selection.holds(part)

        parts = self._store.parts(wanted, gaps=True)
        if not pools:
            raise HistoryError(f"{path} holds no history: name the folder that `ballast history` has written")
        for name in selection.pools:
            if name not in pools:
                raise InvalidField("--pool", name, f"there is no such pool in {path}, but {', '.join(sorted(pools))}")
        if not parts:
            raise HistoryError(f"{path} holds no history of {_asked(selection)}")
        return parts

    def _states(self, window: str) -> list[tuple[str, int, int]]:
        return [(file, *self._store.state(file)) for file in self._files[window]]

    def task(self, runs: Sequence[Run]) -> Callable[[Batches], Batches]:
        needed = {run.case.window for run in runs}
        windows = {
            name: Stored(self._excerpts[name], tuple(map(self._store.uri, self._files[name]))) for name in needed
        }
        return recorded_task(list(runs), windows, self._storage, self._how)


@dataclass(frozen=True, slots=True)
class Stored:
    """An excerpt, and the files that hold it."""

    excerpt: Excerpt
    files: tuple[str, ...]


def recorded_task(
    runs: list[Run], windows: Mapping[str, Stored], storage: Storage, how: Replay
) -> Callable[[Batches], Batches]:
    def task(batches: Batches) -> Batches:
        read: tuple[str, RecordingTrial | str] | None = None
        for batch in batches:
            for index in batch.column("id").to_pylist():
                run = runs[index]
                if read is None or read[0] != run.case.window:
                    read = None  # two windows at once could be too many
                    read = run.case.window, _trial(windows[run.case.window], storage, how)
                trial = read[1]
                yield left_out_row(run, trial) if isinstance(trial, str) else told(run, trial)

    return task


def _trial(window: Stored, storage: Storage, how: Replay) -> RecordingTrial | str:
    """Or why it can't be run in. Raises BacktestError for files that can't be read."""
    excerpt = window.excerpt
    span = {"start_ms": excerpt.start_ms, "end_ms": excerpt.end_ms}
    try:
        found = recording(rows(window.files, storage, **span), pool=excerpt.pool, **span)
        return RecordingTrial(extended(found, window_seconds=excerpt.seconds), how)
    except HistoryError as error:
        raise BacktestError(f"{excerpt.name}: {error}; or leave it out with --from, --to or --pool") from error
    except UnusableRecordingError as error:
        return str(error)


def excerpts(parts: Mapping[Part, int], selection: Selection) -> Iterator[Excerpt]:
    """Windows pool by pool, one after the other; those of which nothing is known have no parts.

    `parts`: up to when each is known. A window goes on to its own end even where no more is known. Raises InvalidField.
    """
    window_ms = selection.window_ms
    if window_ms < _LEAST_WINDOW_MS:
        raise InvalidField(
            "--window", f"{window_ms / 1000:g}s", "name a minute at least, or a part of a day such as 6h"
        )
    if window_ms % DAY_MS and DAY_MS % window_ms:
        raise InvalidField("--window", f"{window_ms / 1000:g}s", "name a part of a day such as 6h, or whole days: 7d")
    for pool in sorted({part.pool for part in parts}):
        own = {part: through for part, through in sorted(parts.items()) if part.pool == pool}
        start = max(min(part.day.start_ms for part in own), selection.start_ms or 0)
        until = selection.end_ms or max(own.values()) + window_ms
        while start < min(max(own.values()), until):
            end = min(start + window_ms, until)
            inside = (part for part, through in own.items() if part.day.start_ms < end and through > start)
            yield Excerpt(pool, start, end, tuple(inside))
            start = end


def _files(excerpt: Excerpt, pieces: Mapping[Part, Sequence[Piece]]) -> list[str]:
    span = {"start_ms": excerpt.start_ms, "end_ms": excerpt.end_ms}
    return [file for part in excerpt.parts for file in part.files(pieces[part], **span)]


def moment_ms(text: str, *, field: str, end: bool = False) -> int:
    """A day such as 2026-11-21 (its start, or its end), or a time. Raises InvalidField."""
    if _DAY.fullmatch(text):
        day = Day.parse(text, field=field)
        return day.end_ms if end else day.start_ms
    try:
        return rfc3339_ms(text, field=field)
    except InvalidField as error:
        raise InvalidField(field, text, _TIME_REMEDY) from error


def _metric_window_seconds(excerpt: Excerpt, parts: Mapping[Part, Metadata]) -> float:
    """Raises HistoryError where parts that are run together differ."""
    found = sorted({parts[part].window_ms / 1000 for part in excerpt.parts})
    if len(found) > 1:
        windows = ", ".join(f"{each:g}s" for each in found)
        raise HistoryError(
            f"{excerpt.name}: its days were collected with different windows ({windows}): collect them into one folder"
            " with one --window"
        )
    return found[0]


def _described(how: Replay) -> Any:
    return TypeAdapter(Replay).dump_python(how, mode="json")


def _asked(selection: Selection) -> str:
    pools = ", ".join(selection.pools) or "any pool"
    ends = (("from", selection.start_ms), ("to", selection.end_ms))
    times = [f"{word} {instant(at / 1000)}" for word, at in ends if at is not None]
    return " ".join([pools, *times])


def rows(files: Iterable[str], storage: Storage, *, start_ms: int, end_ms: int) -> Rows:
    """The files' rows of [start, end). Raises HistoryError, which names the file."""
    tables = [_inside(_table(file, storage), start_ms, end_ms) for file in files]
    table = pa.concat_tables(tables).unify_dictionaries()
    texts = {name: _words(table.column(name)) for name in _TEXTS}
    return Rows(
        time_ms=table.column("time").to_numpy(),
        value=table.column("value").to_numpy(),
        signal=texts["signal"],
        node=texts["node"],
        namespace=texts["namespace"],
        pod=texts["pod"],
        detail=texts["detail"],
    )


def _inside(table: pa.Table, start_ms: int, end_ms: int) -> pa.Table:
    """A time that is missing is outside."""
    times = table.column("time")
    return table.filter(pc.and_(pc.greater_equal(times, start_ms), pc.less(times, end_ms)))


def _table(file: str, storage: Storage) -> pa.Table:
    columns, wanted = ["time", *_TEXTS, "value"], pc.field("signal").isin(_SIGNALS)
    try:
        system, path = storage.opened(file)
        # Texts as they are stored, each once: there may be thousands of times as many rows.
        found = pq.read_table(
            path, filesystem=system, columns=columns, filters=wanted, read_dictionary=_TEXTS, partitioning=None
        )
        times = pc.cast(found.column("time"), pa.timestamp("ms", "UTC"), safe=False)
        return pa.table(
            {
                "time": pc.cast(times, pa.int64()),
                **{each: pc.cast(found.column(each), _TEXT) for each in _TEXTS},
                "value": pc.fill_null(pc.cast(found.column("value"), pa.float64()), float("nan")),
            }
        )
    except (pa.ArrowException, OSError, KeyError) as error:
        told = " ".join(str(error).split())
        raise HistoryError(
            f"{file} can't be read ({told}): if the file itself is broken, delete it and collect its day again"
        ) from error


def _words(column: pa.ChunkedArray) -> Texts:
    encoded = column.combine_chunks()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Texts(codes, tuple(encoded.dictionary.to_pylist()))
