"""The one schema of the history. docs/history.md says what the columns hold."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sql

VERSION = 1
VERSION_KEY = "ballast.dev/schema"
THROUGH = "ballast.dev/through"
"""Up to when (milliseconds since 1970, exclusive) a file's day is known; like the version, metadata of `time`."""
SORT = ("signal", "node", "namespace", "pod", "detail", "time", "value")
"""Rows in a file are in this order: it compresses best, and the same rows make the same bytes."""


def columns(through_ms: int) -> list[Column]:
    """The columns of a file, in their order."""
    time = sql.col("time").alias("time", metadata={VERSION_KEY: VERSION, THROUGH: through_ms})
    return [time, *(sql.col(name) for name in SORT if name not in ("time", "value")), sql.col("value")]
