"""A history's files as the columns that a recording is read from."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ballast.simulation.recorded.rows import Rows, Words
from ballast.spark.errors import HistoryError

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


def rows(files: Iterable[tuple[str, bytes]]) -> Rows:
    """All rows of the files, each given by its name and its content. Raises HistoryError, which names the file."""
    table = pa.concat_tables(_table(name, content) for name, content in files)
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


def _table(name: str, content: bytes) -> pa.Table:
    wanted = [("signal", "in", list(_SIGNALS))]
    try:
        found = pq.read_table(pa.BufferReader(content), columns=["time", *_TEXTS, "value"], filters=wanted)
        times = pc.cast(pc.cast(found.column("time"), pa.timestamp("ms", "UTC"), safe=False), pa.int64())
        # A time that is missing is outside of every window.
        return pa.table(
            {
                "time": pc.fill_null(times, -1),
                **{each: pc.cast(found.column(each), pa.string()) for each in _TEXTS},
                "value": pc.fill_null(pc.cast(found.column("value"), pa.float64()), float("nan")),
            }
        )
    except (pa.ArrowException, OSError, KeyError) as error:
        words = " ".join(str(error).split())
        raise HistoryError(
            f"{name} can't be read ({words}): if the file itself is broken, delete it and collect its day again"
        ) from error


def _words(column: pa.ChunkedArray) -> Words:
    encoded = column.combine_chunks().dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Words(codes, tuple(encoded.dictionary.to_pylist()))
