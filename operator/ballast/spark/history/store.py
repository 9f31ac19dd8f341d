"""Where the history lies: Parquet for each day and pool, below a folder of any Hadoop file system.

`PATH/date=2026-11-21/pool=streaming/history.parquet`, or for a day of many rows `history-00-06.parquet` and so on. A
file is written next to its place and takes it at once, so that a reader sees the old one or the new one, whole. A file
that would not change is not touched. How a day is cut is settled when its first file is written: files that overlap, or
that have to go when others come, could not be replaced without a reader seeing rows twice, or never.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from ballast.spark.errors import HistoryError
from ballast.spark.file_system import FileSystem
from ballast.spark.history.schema import DAY_MS, SORT, VERSION, VERSION_KEY, Day, Metadata, columns

MOST_ROWS = 25_000_000
"""In one file: of a day that goes on as it began. A figure takes up to 8 bytes, and so a file some 200 MB."""

_SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
"""Key of the footer where Spark keeps the schema as it has it."""

_PARTITION = re.compile(r"/date=(?P<date>[^/]+)/pool=(?P<pool>[^/]+)/(?P<file>[^/]+)$")
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


class Written(StrEnum):
    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    KEPT = "kept"
    """What is there has more, of all of the time: Prometheus has forgotten some since."""
    NOTHING = "no metrics"
    """Of the day, or of the pool on it; what is there stays."""


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A day of a pool."""

    day: Day
    pool: str

    def __str__(self) -> str:
        return f"date={self.day}/pool={self.pool}"

    def files(self, pieces: Iterable[Piece], *, start_ms: int, end_ms: int) -> list[str]:
        """Names, below the history's folder, of those pieces' files that hold anything of [start, end)."""
        day = self.day
        chosen = (piece for piece in pieces if piece.start_ms(day) < end_ms and piece.end_ms(day) > start_ms)
        return [f"{self}/{piece.file}" for piece in chosen]


class Store:
    """`path`: a local path, or a URI of any file system that Spark's Hadoop knows."""

    def __init__(self, spark: SparkSession, path: str, *, most_rows: int = MOST_ROWS) -> None:
        self._spark, self._most_rows = spark, most_rows
        self._files = FileSystem(spark, path)

    def parts(self, wanted: Callable[[Part], bool] = lambda _: True, *, gaps: bool = False) -> Mapping[Part, Metadata]:
        """What is there and wanted, in order.

        A part is known up to where its files follow each other, with `gaps` up to where the last one is. Raises
        HistoryError for a file that is none of ours or of another version.
        """
        found: dict[Part, dict[Piece, str]] = {}
        for path in self._files.found("date=*/pool=*/history*.parquet"):
            part, piece = _part(path.toString())
            found.setdefault(part, {})[piece] = path.toString()
        return {part: self._known(part, uris, gaps=gaps) for part, uris in sorted(found.items()) if wanted(part)}

    def state(self, file: str) -> tuple[int, int]:
        """Bytes, and when it was last written (milliseconds since 1970)."""
        status = self._files.system.getFileStatus(self._files.below(file))
        return status.getLen(), status.getModificationTime()

    def uri(self, file: str) -> str:
        return str(self._files.below(file).toString())

    def pools(self, day: Day | None = None) -> set[str]:
        """Those that have a part of that day, or of any."""
        files = self._files.found(f"date={day or '*'}/pool=*/history*.parquet")
        return {_part(path.toString())[0].pool for path in files}

    def write(self, rows: DataFrame, part: Part, metadata: Metadata, *, count: int) -> Mapping[str, Written]:
        """Make `rows`, which are so many, that part, and say what has become of each of its files.

        They are written one after the other, and each stays as it was until the last moment. A day that has files is
        cut as it was, any other so that its files keep to the bound on rows.
        """
        there = self.pieces(part)
        known_ms = metadata.through_ms - part.day.start_ms
        hours = there[0].hours if there else fitting_hours(count, known_ms=known_ms, most_rows=self._most_rows)
        begun = [piece for piece in pieces(hours) if piece.start_ms(part.day) < metadata.through_ms]
        return {piece.file: self._write(rows, part, piece=piece, metadata=metadata) for piece in begun}

    def _write(self, rows: DataFrame, part: Part, *, piece: Piece, metadata: Metadata) -> Written:
        start_ms, end_ms = piece.start_ms(part.day), piece.end_ms(part.day)
        first, end = (sql.timestamp_millis(sql.lit(at)) for at in (start_ms, end_ms))
        inside = (sql.col("time") >= first) & (sql.col("time") < end)
        own = replace(metadata, through_ms=min(metadata.through_ms, end_ms))
        with self._staged(rows.where(inside), own) as file:
            return self._take_place(file, self._files.below(f"{part}/{piece.file}"), own)

    def alone(self) -> AbstractContextManager[None]:
        """No other process adds to the history meanwhile. As FileSystem.alone."""
        return self._files.alone(field="--path", remedy="another run adds to this history: wait until it has ended")

    @contextmanager
    def _staged(self, rows: DataFrame, metadata: Metadata) -> Iterator[Any]:
        """A file of these rows next to its place, for as long."""
        staging = self._files.staging()
        try:
            ordered = rows.repartition(1).sortWithinPartitions(*SORT)
            ordered.select(*columns(metadata)).write.option("compression", "zstd").parquet(staging.toString())
            written = [status.getPath() for status in self._files.system.listStatus(staging)]
            (file,) = (path for path in written if path.getName().endswith(".parquet"))
            yield file
        finally:
            self._files.discard(staging)

    def _take_place(self, file: Any, place: Any, metadata: Metadata) -> Written:
        """What is there is never lost: of the time that it knows, its rows stay where the new file has less."""
        if not self._files.system.exists(place):
            self._files.replace(file, place)
            return Written.NEW
        if self._same(file, place):
            return Written.UNCHANGED
        known_ms = self._metadata(place.toString()).through_ms
        if not self._forgotten(file, place, known_ms=known_ms):
            self._files.replace(file, place)
            return Written.CHANGED
        if metadata.through_ms <= known_ms:
            return Written.KEPT
        later = self._read(file).where(sql.col("time") >= sql.timestamp_millis(sql.lit(known_ms)))
        with self._staged(self._read(place).unionByName(later), metadata) as completed:
            self._files.replace(completed, place)
        return Written.CHANGED

    def _forgotten(self, file: Any, place: Any, *, known_ms: int) -> bool:
        """Whether the file begins later than what is there, or has fewer rows of the time before `known_ms`.

        Rows alone do not tell: a pool that grows has as many in fewer hours.
        """
        before = sql.col("time") < sql.timestamp_millis(sql.lit(known_ms))
        extent = sql.count("*"), sql.unix_millis(sql.min("time"))
        (new, first_ms), (old, old_first_ms) = (
            self._read(path).where(before).agg(*extent).collect()[0] for path in (file, place)
        )
        return bool(new < old or (old and first_ms > old_first_ms))

    def _same(self, one: Any, other: Any) -> bool:
        """Whether they hold the same. Their bytes differ where Parquet's footer lists in another order what it used
        for a column, which is another in each run of the JVM.
        """
        lengths = {self._files.system.getFileStatus(path).getLen() for path in (one, other)}
        if len(lengths) > 1 or self._footer(one) != self._footer(other):
            return False
        _, data_bytes = self._footer(one)
        io = self._files.jvm.org.apache.commons.io
        streams = [io.input.BoundedInputStream(self._files.system.open(path), data_bytes) for path in (one, other)]
        try:
            return bool(io.IOUtils.contentEquals(*streams))
        finally:
            for stream in streams:
                stream.close()

    def _read(self, path: Any) -> DataFrame:
        return self._spark.read.parquet(self._files.literal(path).toString())

    def pieces(self, part: Part) -> list[Piece]:
        """That are there, in order. Raises HistoryError for those of days that were cut in several ways."""
        found = sorted(_part(path.toString())[1] for path in self._files.found(f"{part}/history*.parquet"))
        if len({piece.hours for piece in found}) > 1:
            raise HistoryError(
                f"{part} has files of different hours that overlap ({', '.join(piece.file for piece in found)}): delete"
                " it and collect its day again"
            )
        return found

    def _known(self, part: Part, uris: Mapping[Piece, str], *, gaps: bool) -> Metadata:
        """Of all of the part: it is known up to where its files follow each other, with or without gaps."""
        found = [(piece, self._metadata(uri)) for piece, uri in sorted(uris.items())]
        through_ms = part.day.start_ms
        for piece, metadata in found:
            if gaps or piece.start_ms(part.day) == through_ms:
                through_ms = metadata.through_ms
        return replace(found[0][1], through_ms=through_ms)

    def _metadata(self, uri: str) -> Metadata:
        try:
            known = self._of_time(uri)
        except (Py4JJavaError, ValueError, KeyError) as error:  # a broken file is told in many ways
            raise HistoryError(
                f"{uri} can't be read ({_first_line(error)}): if the file itself is broken, delete it and collect its"
                " day again"
            ) from error
        if known.get(VERSION_KEY) != VERSION:
            raise HistoryError(
                f"{uri} has version {known.get(VERSION_KEY)} of the history's schema, not {VERSION}:"
                " collect into another folder"
            )
        return Metadata.stored(known)

    def _of_time(self, uri: str) -> Mapping[str, Any]:
        """Metadata of the column `time`."""
        described, _ = self._footer(self._files.hadoop("fs.Path")(uri))
        fields = json.loads(described)["fields"] if described else ()
        return next((field["metadata"] for field in fields if field["name"] == "time"), {})

    def _footer(self, path: Any) -> tuple[str | None, int]:
        """The schema as Spark keeps it, and where the columns end. Spark's own readers run a job for each file."""
        parquet = self._files.jvm.org.apache.parquet.hadoop
        source = parquet.util.HadoopInputFile.fromPath(path, self._files.system.getConf())
        reader = parquet.ParquetFileReader.open(source)
        try:
            described = reader.getFileMetaData().getKeyValueMetaData().get(_SPARK_SCHEMA)
            chunks = [chunk for block in reader.getRowGroups() for chunk in block.getColumns()]
        finally:
            reader.close()
        return described, max((chunk.getStartingPos() + chunk.getTotalSize() for chunk in chunks), default=0)


def _part(uri: str) -> tuple[Part, Piece]:
    partition = _PARTITION.search(uri)
    piece = Piece.named(partition["file"]) if partition else None
    if partition is None or piece is None:
        raise HistoryError(f"{uri} is no file of a history: move it elsewhere")
    return Part(Day.parse(partition["date"], field="date"), partition["pool"]), piece


def _first_line(error: Exception) -> str:
    text = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    return next((line for line in text.splitlines() if line.strip()), type(error).__name__)
