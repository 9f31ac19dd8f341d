"""The batches of a streaming job, as its progress tells them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch; `started_at` in seconds since the epoch."""

    number: int
    started_at: float
    seconds: float
    rows: int

    @property
    def ended_at(self) -> float:
        return self.started_at + self.seconds


def read_batches(progress: Path) -> list[Batch]:
    """Those in a progress file; a line that is being written is left for the next time."""
    if not progress.exists():
        return []
    lines = progress.read_text().splitlines(keepends=True)
    return [_batch(json.loads(line)) for line in lines if line.endswith("\n")]


def _batch(row: dict[str, object]) -> Batch:
    durations = row["durationMs"]
    assert isinstance(durations, dict)  # noqa: S101 -- narrows what json gives
    return Batch(
        number=int(str(row["batchId"])),
        started_at=datetime.fromisoformat(str(row["timestamp"])).timestamp(),
        seconds=float(durations["triggerExecution"]) / 1000.0,
        rows=int(str(row["numInputRows"])),
    )


def between(batches: Iterable[Batch], *, since: float, until: float) -> list[Batch]:
    """Those that began in a span of time."""
    return [batch for batch in batches if since <= batch.started_at < until]


def quantile_seconds(batches: Sequence[Batch], share: float) -> float | None:
    """The duration that `share` of the batches do not exceed; None without batches."""
    ordered = sorted(batch.seconds for batch in batches)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
