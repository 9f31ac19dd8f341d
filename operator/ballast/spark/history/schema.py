"""The one schema of the history. docs/history.md says what the columns hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sql

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
