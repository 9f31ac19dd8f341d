"""Where the history lies: one Parquet file for each day and pool, below a folder of any Hadoop file system.

`PATH/date=2026-11-21/pool=streaming/history.parquet`. A file is written beside its place and takes it at once, so that
a reader sees the old one or the new one, whole. A file that would not change is not touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from ballast.spark.errors import HistoryError
from ballast.spark.file_system import FileSystem
from ballast.spark.history.day import Day
from ballast.spark.history.schema import SORT, VERSION, VERSION_KEY, Metadata, columns

_FILE = "history.parquet"
_SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
"""Key of the footer where Spark keeps the schema as it has it."""
_PARTITION = re.compile(rf"/date=(?P<date>[^/]+)/pool=(?P<pool>[^/]+)/{re.escape(_FILE)}$")


class Written(StrEnum):
    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    KEPT = "kept"
    """What is there has more rows: Prometheus has forgotten some since."""
    NOTHING = "no figures"
    """Of the day, or of the pool on it; what is there stays."""


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A day of a pool."""

    day: Day
    pool: str

    def __str__(self) -> str:
        return f"date={self.day}/pool={self.pool}"


class Store:
    """`path`: a local path, or a URI of any file system that Spark's Hadoop knows."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._files = FileSystem(spark, path)

    def parts(self, wanted: Callable[[Part], bool] = lambda _: True) -> Mapping[Part, Metadata]:
        """What is there and wanted, in order.

        Raises HistoryError for a file that is none of ours or of another version.
        """
        found = {_part(path.toString()): path.toString() for path in self._files.found(f"date=*/pool=*/{_FILE}")}
        return {part: self._metadata(uri) for part, uri in sorted(found.items()) if wanted(part)}

    def state(self, part: Part) -> tuple[int, int]:
        """Bytes, and when it was last written (milliseconds since 1970)."""
        status = self._files.system.getFileStatus(self._place(part))
        return status.getLen(), status.getModificationTime()

    def content(self, part: Part) -> bytes:
        """The part's file."""
        with TemporaryDirectory(prefix="ballast-history-") as folder:
            return self._files.fetched(self._place(part), Path(folder)).read_bytes()

    def pools(self, day: Day) -> set[str]:
        """Those that have a part of that day."""
        return {_part(path.toString()).pool for path in self._files.found(f"date={day}/pool=*/{_FILE}")}

    def write(self, rows: DataFrame, part: Part, metadata: Metadata) -> Written:
        """Make `rows` that part. Until the last moment, it stays as it was."""
        staging = self._files.staging()
        try:
            return self._take_place(self._staged(rows, staging, metadata), self._place(part))
        finally:
            self._files.discard(staging)

    def alone(self) -> AbstractContextManager[None]:
        """Nobody else adds to the history meanwhile. As FileSystem.alone."""
        return self._files.alone(field="--path", remedy="another run adds to this history: wait until it has ended")

    def _staged(self, rows: DataFrame, staging: Any, metadata: Metadata) -> Any:
        ordered = rows.repartition(1).sortWithinPartitions(*SORT)
        ordered.select(*columns(metadata)).write.option("compression", "zstd").parquet(staging.toString())
        written = [status.getPath() for status in self._files.system.listStatus(staging)]
        (file,) = (path for path in written if path.getName().endswith(".parquet"))
        return file

    def _take_place(self, file: Any, place: Any) -> Written:
        there = self._files.system.exists(place)
        if there and self._same(file, place):
            return Written.UNCHANGED
        if there and self._rows(file) < self._rows(place):
            return Written.KEPT
        self._files.replace(file, place)
        return Written.CHANGED if there else Written.NEW

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

    def _rows(self, path: Any) -> int:
        return self._spark.read.parquet(path.toString()).count()

    def _place(self, part: Part) -> Any:
        return self._files.below(f"{part}/{_FILE}")

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


def _part(uri: str) -> Part:
    partition = _PARTITION.search(uri)
    if partition is None:
        raise HistoryError(f"{uri} is no part of a history")
    return Part(Day.parse(partition["date"], field="date"), partition["pool"])


def _first_line(error: Exception) -> str:
    text = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    return next((line for line in text.splitlines() if line.strip()), type(error).__name__)
