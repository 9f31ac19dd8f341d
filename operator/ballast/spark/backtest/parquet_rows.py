"""A history's files as the columns that a recording is read from."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ballast.simulation.recorded.rows import Rows, Words
from ballast.spark.errors import HistoryError

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


def rows(files: Iterable[tuple[str, bytes]], *, start_ms: int, end_ms: int) -> Rows:
    """The files' rows of [start, end), each file given by its name and its content.

    Raises HistoryError, which names the file.
    """
    tables = (_inside(_table(name, content), start_ms, end_ms) for name, content in files)
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


def _table(name: str, content: bytes) -> pa.Table:
    columns, wanted = ["time", *_TEXTS, "value"], pc.field("signal").isin(_SIGNALS)
    try:
        # Texts as they are stored, each once: there may be thousands of times as many rows.
        found = pq.read_table(pa.BufferReader(content), columns=columns, filters=wanted, read_dictionary=_TEXTS)
        times = pc.cast(found.column("time"), pa.timestamp("ms", "UTC"), safe=False)
        return pa.table(
            {
                "time": pc.cast(times, pa.int64()),
                **{each: pc.cast(found.column(each), _TEXT) for each in _TEXTS},
                "value": pc.fill_null(pc.cast(found.column("value"), pa.float64()), float("nan")),
            }
        )
    except (pa.ArrowException, OSError, KeyError) as error:
        words = " ".join(str(error).split())
        raise HistoryError(
            f"{name} can't be read ({words}): if the file itself is broken, delete it and collect its day again"
        ) from error


def _words(column: pa.ChunkedArray) -> Words:
    encoded = column.combine_chunks()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Words(codes, tuple(encoded.dictionary.to_pylist()))
