"""The ledger: a folder of small Parquet files, one or more for each micro-batch."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ballast.errors import BallastError
from ballast.spark.audit.verdict import Entry, Sum

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = pa.schema(
    [
        ("query", pa.string()),
        ("run", pa.string()),
        ("batch", pa.int64()),
        ("stage", pa.string()),
        ("after", pa.list_(pa.string())),
        ("consumed_count", pa.int64()),
        ("consumed_xor", pa.int64()),
        ("emitted_count", pa.int64()),
        ("emitted_xor", pa.int64()),
        ("recomputed", pa.bool_()),
        ("recorded_ms", pa.int64()),
    ]
)
_LONGEST_PART = 80
"""File systems take names of 255 bytes."""
_UNFIT = re.compile(r"[^A-Za-z0-9.-]+")
_HIDDEN = ("_", ".")
"""Spark's readers pass over files whose names begin so."""
_MOST_ROWS = 10_000
"""In a file: a row is a stage. A file of a megabyte may hold any number of rows that are alike."""
_MOST_VALUES, _MOST_BYTES = 100 * _MOST_ROWS, 64 << 20
"""Of a column of a file, once decompressed."""
_LONGEST_NAME_BYTES = 4 << 10
_LONGEST_FILE_BYTES = _MOST_BYTES
_FETCHED_AT_ONCE = 8
_TEXTS = ("query", "run", "stage", "after.list.element")
"""Read as dictionaries, which have each text once: one of megabytes may stand in each row."""


class LedgerError(BallastError):
    """The ledger can't be read."""


def _row(entry: Entry) -> dict[str, Any]:
    return {
        "query": entry.query,
        "run": entry.run,
        "batch": entry.batch,
        "stage": entry.stage,
        "after": list(entry.after),
        "consumed_count": entry.consumed.count,
        "consumed_xor": entry.consumed.xor,
        "emitted_count": entry.emitted.count,
        "emitted_xor": entry.emitted.xor,
        "recomputed": entry.recomputed,
        "recorded_ms": entry.recorded_ms,
    }


def _entry(row: dict[str, Any], file: str) -> Entry:
    """Raises LedgerError, naming the file."""
    lacking = next((name for name, value in row.items() if value is None), None)
    if lacking is not None or None in row["after"]:
        raise LedgerError(f"{file}: it is no file of a ledger: a row has nothing in its column {lacking or 'after'}")
    return Entry(
        query=row["query"],
        run=row["run"],
        batch=row["batch"],
        stage=row["stage"],
        after=tuple(row["after"]),
        consumed=Sum(row["consumed_count"], row["consumed_xor"]),
        emitted=Sum(row["emitted_count"], row["emitted_xor"]),
        recomputed=row["recomputed"],
        recorded_ms=row["recorded_ms"],
    )


class Ledger:
    """`path`: a local path, or a URI that Spark's Hadoop knows."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        from ballast.spark.file_system import FileSystem  # noqa: PLC0415 -- readers of local ledgers need no Spark

        self._files = FileSystem(spark, path)

    def add(self, entries: Sequence[Entry], *, part: str) -> None:
        """Entries of one micro-batch. The same part of the same micro-batch, recorded again, replaces the former one.

        The file appears as a whole.
        """
        first = entries[0]
        name = f"{_file_part(first.query)}-{first.batch:09d}-{_file_part(part)}.parquet"
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder, name)
            pq.write_table(pa.Table.from_pylist([_row(entry) for entry in entries], schema=_SCHEMA), written)
            self._files.put(written, self._files.below(name))

    def batches(self, query: str, part: str) -> set[int]:
        """The micro-batches of which this part is recorded."""
        before, after = f"{_file_part(query)}-", f"-{_file_part(part)}.parquet"
        names = (str(path.getName()) for path in self._files.found(f"{before}*{after}"))
        numbers = (name.removeprefix(before).removesuffix(after) for name in names)
        return {int(number) for number in numbers if number.isdecimal()}


def _file_part(name: str) -> str:
    """Two names make two parts, and any makes a short one: what a query recorded must not replace another's. Every
    reader sees a file that begins with it.
    """
    fit = _UNFIT.sub("_", name)[:_LONGEST_PART]
    if fit.startswith(_HIDDEN):
        fit = f"-{fit}"
    return fit if fit == name else f"{fit}_{sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"


def read(folder: Path) -> list[Entry]:
    """All entries of a local ledger. Raises LedgerError."""
    if not folder.is_dir():
        raise LedgerError(f"{folder}: there is no such folder; name the one that the query's Audit writes")
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise LedgerError(_nothing_in(folder))
    return [entry for file in files for entry in _read(file)]


def _nothing_in(folder: object) -> str:
    return f"{folder}: no micro-batch is recorded here yet"


def _read(file: Path, *, shown: str = "") -> Iterable[Entry]:
    """`shown`: what errors call it, if it is the copy of another file."""
    shown = shown or str(file)
    if not file.is_file():
        # To open a pipe would wait until something writes into it.
        raise LedgerError(f"{shown}: it is no file of a ledger: move it elsewhere")
    try:
        _check_size(pq.read_metadata(file), shown)
        table = pq.read_table(file, partitioning=None, read_dictionary=list(_TEXTS))
    except (pa.ArrowException, OSError) as error:
        raise LedgerError(f"{shown}: it can't be read as Parquet: {str(error).splitlines()[0]}") from error
    missing = [name for name in _SCHEMA.names if name not in table.column_names]
    if missing:
        raise LedgerError(f"{shown}: it is no file of a ledger: it has no column {missing[0]}")
    try:
        if any(_longest_bytes(table[name]) > _LONGEST_NAME_BYTES for name in table.column_names):
            raise LedgerError(f"{shown}: it is no file of a ledger: a name has more than {_LONGEST_NAME_BYTES} bytes")
        rows = table.select(_SCHEMA.names).cast(_SCHEMA).to_pylist()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise LedgerError(f"{shown}: it is no file of a ledger: {str(error).splitlines()[0]}") from error
    return [_entry(row, shown) for row in rows]


def _check_size(metadata: pq.FileMetaData, shown: str) -> None:
    """Raises LedgerError. What is compressed may stand for any amount of memory."""
    if metadata.num_rows > _MOST_ROWS:
        raise LedgerError(
            f"{shown}: it is no file of a ledger: it has {metadata.num_rows} rows, and at most {_MOST_ROWS} are read"
        )
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    columns = [group.column(at) for group in groups for at in range(group.num_columns)]
    if any(each.num_values > _MOST_VALUES or each.total_uncompressed_size > _MOST_BYTES for each in columns):
        raise LedgerError(
            f"{shown}: it is no file of a ledger: a column has more than {_MOST_VALUES} values or {_MOST_BYTES} bytes"
        )


def _longest_bytes(column: pa.ChunkedArray) -> int:
    """Of the texts of a column."""
    chunks = [chunk.flatten() if pa.types.is_list(chunk.type) else chunk for chunk in column.chunks]
    texts = [chunk.dictionary for chunk in chunks if pa.types.is_dictionary(chunk.type)]
    return max((pc.max(pc.binary_length(each)).as_py() or 0 for each in texts), default=0)


def read_anywhere(spark: SparkSession, path: str) -> list[Entry]:
    """All entries of a ledger on any file system that Spark's Hadoop knows. Raises LedgerError.

    Spark would read the files without bounds.
    """
    from ballast.spark.file_system import FileSystem  # noqa: PLC0415 -- as in Ledger

    files = FileSystem(spark, path)
    sizes = files.sizes("*.parquet")
    if not sizes:
        raise LedgerError(_nothing_in(path))
    for each, size in sizes:
        if size is None or size > _LONGEST_FILE_BYTES:
            raise LedgerError(f"{each}: it is no file of a ledger: move it elsewhere")

    def read_one(file: Any) -> list[Entry]:
        with tempfile.TemporaryDirectory(prefix="ballast-audit-") as folder:
            return list(_read(files.fetched(file, Path(folder)), shown=file.toString()))

    with ThreadPoolExecutor(_FETCHED_AT_ONCE) as threads:
        return [entry for each in threads.map(read_one, (file for file, _ in sizes)) for entry in each]
