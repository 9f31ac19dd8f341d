"""What the demonstration found."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from examples.demo.machine import Use
from examples.demo.pool import Spread
from examples.demo.streaming.batches import Batch, between, quantile_seconds
from examples.demo.streaming.records import Comparison
from tests.testbed.network import Crossed

WARMUP_SECONDS = 15.0
"""After its start a replacement's code is still being compiled; batches until then count as during the move."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Placed:
    """The job while nothing disturbed it, as kube-scheduler or Ballast placed it."""

    spread: Spread
    batches: Sequence[Batch]
    crossed: Crossed
    """What nodes sent each other during these batches: the shuffle, and what driver and executors exchange."""

    @property
    def median_seconds(self) -> float | None:
        return quantile_seconds(self.batches, 0.5)

    @property
    def zone_bytes_per_record(self) -> float:
        return self._per_record(self.crossed.zones_bytes)

    @property
    def rack_bytes_per_record(self) -> float:
        return self._per_record(self.crossed.racks_bytes)

    def _per_record(self, sent_bytes: int) -> float:
        return sent_bytes / max(1, sum(batch.rows for batch in self.batches))


@dataclass(frozen=True, slots=True)
class Move:
    """One ExecutorMove that has ended. Times in seconds since the epoch, gains in points of score."""

    name: str
    phase: str
    reason: str
    message: str
    source: str
    target: str
    executor: str
    replacement: str
    landed_on: str
    hits: int
    predicted_gain: float
    measured_gain: float | None
    leaving_at: float
    arriving_at: float
    settling_at: float
    ended_at: float

    @classmethod
    def of(cls, document: Json) -> Self:
        """From the object; KeyError when it ended before its replacement ran."""
        spec, status = document["spec"], document["status"]
        reason, predicted, timings = spec["reason"], spec["predicted"], status["timings"]
        return cls(
            name=document["metadata"]["name"],
            phase=status["phase"],
            reason=status.get("reason", ""),
            message=status.get("message", ""),
            source=spec["sourceNodeName"],
            target=spec["targetNodeName"],
            executor=spec["executor"]["pod"],
            replacement=status["replacement"]["pod"],
            landed_on=status["replacement"].get("node", ""),
            hits=max(reason["hits"].values(), default=0),
            predicted_gain=(float(reason["scores"]["from"]) - float(reason["scores"]["to"]))
            - (float(predicted["hotAfter"]) - float(predicted["coldAfter"])),
            measured_gain=status.get("measured", {}).get("gain"),
            leaving_at=_seconds(timings["leaving"]),
            arriving_at=_seconds(timings["arriving"]),
            settling_at=_seconds(timings["settling"]),
            ended_at=_seconds(timings["ended"]),
        )

    @property
    def seconds_to_leave(self) -> float:
        return self.arriving_at - self.leaving_at

    @property
    def seconds_to_replace(self) -> float:
        # A container's start is known to the second only, and may seem earlier than the departure.
        return max(0.0, self.settling_at - self.arriving_at)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@dataclass(frozen=True, slots=True)
class Durations:
    """Batches around a move. Before it the neighbor was noisy already; `quiet` are those before the noise."""

    quiet: Sequence[Batch]
    before: Sequence[Batch]
    during: Sequence[Batch]
    after: Sequence[Batch]

    @classmethod
    def around(cls, move: Move, batches: Sequence[Batch], *, quiet_at: float, noise_at: float, until: float) -> Self:
        settled = move.settling_at + WARMUP_SECONDS
        return cls(
            quiet=between(batches, since=quiet_at, until=noise_at),
            before=[
                batch for batch in between(batches, since=noise_at, until=until) if batch.ended_at < move.leaving_at
            ],
            during=[b for b in between(batches, since=0.0, until=settled) if b.ended_at >= move.leaving_at],
            after=between(batches, since=settled, until=until),
        )

    def table(self) -> list[tuple[str, int, float | None, float | None, float | None]]:
        """When, how many, median, 95th percentile and longest, in seconds."""
        spans = {
            "before the noise": self.quiet,
            "noise, before the move": self.before,
            "during the move": self.during,
            "after the move": self.after,
        }
        return [
            (when, len(each), quantile_seconds(each, 0.5), quantile_seconds(each, 0.95), quantile_seconds(each, 1.0))
            for when, each in spans.items()
        ]


@dataclass(frozen=True, slots=True)
class Findings:
    seed: int
    """Of the draw of the noisy node."""
    default: Placed
    default_records: Comparison
    """Those of the job that kube-scheduler alone placed."""
    ballast: Placed
    move: Move
    durations: Durations
    records: Comparison
    """Those of the job under Ballast, through its move."""
    uses: Sequence[Use]
    """Of the whole machine, while scores counted."""

    def summary(self) -> Json:
        """The content of summary.json, without the verdict."""
        return {
            "seed": self.seed,
            "placement": {"default": _placed(self.default), "ballast": _placed(self.ballast)},
            "move": {
                "phase": self.move.phase,
                "reason": self.move.reason,
                "from": self.move.source,
                "to": self.move.landed_on,
                "hits": self.move.hits,
                "predictedGain": _rounded(self.move.predicted_gain),
                "measuredGain": _rounded(self.move.measured_gain),
                "secondsToLeave": _rounded(self.move.seconds_to_leave),
                "secondsToReplace": _rounded(self.move.seconds_to_replace),
            },
            "batches": {
                "quietP50Seconds": _rounded(quantile_seconds(self.durations.quiet, 0.5)),
                "beforeP50Seconds": _rounded(quantile_seconds(self.durations.before, 0.5)),
                "beforeP95Seconds": _rounded(quantile_seconds(self.durations.before, 0.95)),
                "duringMaxSeconds": _rounded(quantile_seconds(self.durations.during, 1.0)),
                "afterP50Seconds": _rounded(quantile_seconds(self.durations.after, 0.5)),
                "afterP95Seconds": _rounded(quantile_seconds(self.durations.after, 0.95)),
            },
            "records": {
                "source": self.records.source,
                "sink": self.records.sink,
                "lost": self.records.lost,
                "duplicated": self.records.duplicated,
            },
            "machine": {
                "medianBusyPercent": _rounded(self.median_use.busy_percent if self.median_use else None),
                "mostBusyPercent": _rounded(self.most_use.busy_percent if self.most_use else None),
            },
        }

    @property
    def median_use(self) -> Use | None:
        return sorted(self.uses)[len(self.uses) // 2] if self.uses else None

    @property
    def most_use(self) -> Use | None:
        return max(self.uses, default=None)


@dataclass(slots=True)
class Trail:
    """What happened when, for the report. Times in seconds since the epoch."""

    marks: list[tuple[float, str]] = field(default_factory=list)

    def mark_now(self, text: str) -> float:
        """The time, which is kept with the text."""
        now = time.time()
        self.marks.append((now, text))
        return now


@dataclass(frozen=True, slots=True)
class Played:
    """What the report needs in addition to the findings. Scores and batches from `quiet_at` until `until`."""

    findings: Findings
    after: Spread
    """Where the executors were after the move."""
    trail: Trail
    scores: dict[str, list[tuple[float, float]]]
    batches: list[Batch]
    quiet_at: float
    until: float


def _placed(placed: Placed) -> Json:
    return {
        "crossZoneRatio": _rounded(placed.spread.cross_zone_ratio),
        "crossRackRatio": _rounded(placed.spread.cross_rack_ratio),
        "zoneBytesPerRecord": _rounded(placed.zone_bytes_per_record),
        "rackBytesPerRecord": _rounded(placed.rack_bytes_per_record),
        "batchP50Seconds": _rounded(placed.median_seconds),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
