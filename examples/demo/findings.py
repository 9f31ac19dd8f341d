"""What the demonstration found, and whether that is what it set out to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from examples.demo.machine import Use
from examples.demo.pool import Spread
from examples.demo.streaming.batches import Batch, between, quantile_seconds
from examples.demo.streaming.records import Comparison

BUSY_LIMIT_PERCENT = 85.0
WARMUP_SECONDS = 15.0
"""After its start a replacement's code is still being compiled; batches until then count as during the move."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Move:
    """One ExecutorMove that has ended. Times in seconds since the epoch, gains in points of score."""

    name: str
    phase: str
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
            message=status.get("message", ""),
            source=spec["from"],
            target=spec["to"],
            executor=spec["executor"]["pod"],
            replacement=status["replacement"]["pod"],
            landed_on=status["replacement"].get("node", ""),
            hits=max(reason["hits"].values(), default=0),
            predicted_gain=(reason["scores"]["from"] - reason["scores"]["to"])
            - (predicted["hotAfter"] - predicted["coldAfter"]),
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
    """Batches around a move. Before it the neighbour was noisy already; `quiet` are those before the noise."""

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
    default: Spread
    default_records: Comparison
    """Those of the job that kube-scheduler alone placed."""
    ballast: Spread
    move: Move
    durations: Durations
    records: Comparison
    """Those of the job under Ballast, through its move."""
    busiest: Use | None
    """The whole machine, while scores counted."""

    def summary(self) -> Json:
        """The content of summary.json."""
        return {
            "placement": {"default": _ratios(self.default), "ballast": _ratios(self.ballast)},
            "move": {
                "from": self.move.source,
                "to": self.move.landed_on,
                "hits": self.move.hits,
                "predictedGain": _rounded(self.move.predicted_gain),
                "measuredGain": _rounded(self.move.measured_gain),
                "secondsToLeave": _rounded(self.move.seconds_to_leave),
                "secondsToReplace": _rounded(self.move.seconds_to_replace),
            },
            "batches": {
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
        }

    def failures(self, *, busy_limit_percent: float = BUSY_LIMIT_PERCENT) -> list[str]:
        """What was to be shown and was not; empty when all is well."""
        checks = {
            f"the executors were not placed nearer: {self.ballast} against {self.default}": (
                _is_nearer(self.ballast, self.default)
            ),
            f"the move ended {self.move.phase}: {self.move.message}": self.move.phase == "Succeeded",
            f"the gap did not narrow: {self.move.measured_gain}": (self.move.measured_gain or 0.0) > 0.0,
            f"the replacement is on {self.move.landed_on}, not {self.move.target}": (
                self.move.landed_on == self.move.target
            ),
            f"source and sink disagree under kube-scheduler: {self.default_records}": self.default_records.agree,
            f"source and sink disagree under Ballast: {self.records}": self.records.agree,
            f"the machine was {self.busiest or 'an unknown share busy'} while scores counted, "
            f"more than {busy_limit_percent:.0f} %: a node's usage means nothing then": (
                _is_below(self.busiest, busy_limit_percent)
            ),
        }
        return [words for words, holds in checks.items() if not holds]


@dataclass(slots=True)
class Trail:
    """What happened when, for the report. Times in seconds since the epoch."""

    marks: list[tuple[float, str]] = field(default_factory=list)

    def mark(self, at: float, text: str) -> None:
        self.marks.append((at, text))


@dataclass(frozen=True, slots=True)
class Played:
    """What the report needs beside the findings. Scores and batches from `quiet_at` until `until`."""

    findings: Findings
    after: Spread
    """Where the executors were after the move."""
    trail: Trail
    scores: dict[str, list[tuple[float, float]]]
    batches: list[Batch]
    quiet_at: float
    until: float


def _is_nearer(one: Spread, other: Spread) -> bool:
    """By zones or by racks, and by neither farther."""
    pairs = [(one.cross_zone_ratio, other.cross_zone_ratio), (one.cross_rack_ratio, other.cross_rack_ratio)]
    return all(ours <= theirs for ours, theirs in pairs) and any(ours < theirs for ours, theirs in pairs)


def _is_below(busiest: Use | None, limit_percent: float) -> bool:
    """With a limit of 100 whatever was seen: a machine without an idle moment is 100 % busy, and never more."""
    return limit_percent >= 100.0 or (busiest is not None and busiest.busy_percent < limit_percent)


def _ratios(spread: Spread) -> Json:
    return {
        "crossZoneRatio": _rounded(spread.cross_zone_ratio),
        "crossRackRatio": _rounded(spread.cross_rack_ratio),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
