"""Whether the demonstration showed what it set out to show: by ratios, since seconds depend on the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from examples.demo.findings import Durations, Findings, Move, Placed
from examples.demo.pool import Spread
from examples.demo.streaming.batches import quantile_seconds
from examples.demo.streaming.records import Comparison

MOST_ZONE_BYTES = 0.5
"""Of the bytes that crossed zones under kube-scheduler, what may still cross them under Ballast."""
MOST_PLACED_BATCH = 0.95
"""Of the median batch under kube-scheduler, what it may last under Ballast."""
MOST_MOVED_BATCH = 0.95
"""Of the median batch next to the noise, what it may last after the move."""
GAIN_TOLERANCE = 0.5
"""By how much of the predicted gain the measured one may differ from it."""
FEWEST_BATCHES = 4
BUSY_PERCENT = 85.0
"""From here on the report warns that the nodes' scores also tell of the machine."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`failures` says what was not shown; with none, the demonstration passed."""

    failures: Sequence[str]
    warnings: Sequence[str] = ()

    @classmethod
    def on(cls, found: Findings) -> Self:
        failures = [*_placement(found), *_move(found.move), *_batches(found.durations), *_records(found)]
        return cls(failures, list(_warnings(found)))

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def headline(self) -> str:
        """The first line of every report."""
        if self.passed:
            return "Passed: nearer placement, a move that helped, and no record lost"
        first, *others = self.failures
        more = f" (and {len(others)} more)" if others else ""
        return f"Failed: {first.splitlines()[0]}{more}"

    def summary(self) -> Json:
        """The first entries of summary.json."""
        return {"verdict": self.headline, "failures": list(self.failures), "warnings": list(self.warnings)}


def _placement(found: Findings) -> Iterator[str]:
    ours, theirs = found.ballast, found.default
    if not _is_nearer(ours.spread, theirs.spread):
        yield f"the executors were not placed nearer: {ours.spread} against {theirs.spread}"
    if ours.zone_bytes_per_record > MOST_ZONE_BYTES * theirs.zone_bytes_per_record:
        yield (
            f"too many bytes crossed zones: {_bytes(ours)} under Ballast, {_bytes(theirs)} under kube-scheduler, "
            f"at most {MOST_ZONE_BYTES:.0%} of that were expected"
        )
    yield from _shorter(
        (theirs.batches, "under kube-scheduler"), (ours.batches, "under Ballast"), most_ratio=MOST_PLACED_BATCH
    )


def _bytes(placed: Placed) -> str:
    return f"{placed.zone_bytes_per_record:.0f} bytes a record"


def _is_nearer(one: Spread, other: Spread) -> bool:
    """By zones or by racks, and by neither farther."""
    pairs = [(one.cross_zone_ratio, other.cross_zone_ratio), (one.cross_rack_ratio, other.cross_rack_ratio)]
    return all(ours <= theirs for ours, theirs in pairs) and any(ours < theirs for ours, theirs in pairs)


def _move(move: Move) -> Iterator[str]:
    if move.phase != "Succeeded" or move.reason != "Helped":
        yield f"the move ended {move.phase}, {move.reason}: {move.message}"
    if move.landed_on != move.target:
        yield f"the replacement is on {move.landed_on}, not {move.target}"
    if move.measured_gain is None:
        yield "the gain of the move was not measured"
    elif abs(move.measured_gain - move.predicted_gain) > GAIN_TOLERANCE * move.predicted_gain:
        yield (
            f"the prediction was wrong: the gap narrowed by {move.measured_gain:.1f} points, "
            f"{move.predicted_gain:.1f} ± {GAIN_TOLERANCE:.0%} were predicted"
        )


def _batches(durations: Durations) -> Iterator[str]:
    noisy, moved = (durations.before, "next to the noise"), (durations.after, "after the move")
    yield from _shorter(noisy, moved, most_ratio=MOST_MOVED_BATCH)


def _shorter(one: tuple[Sequence[Any], str], other: tuple[Sequence[Any], str], *, most_ratio: float) -> Iterator[str]:
    for batches, when in (one, other):
        if len(batches) < FEWEST_BATCHES:
            yield f"only {len(batches)} batches {when}: too few to compare, {FEWEST_BATCHES} are needed"
    before, after = (quantile_seconds(batches, 0.5) for batches, _ in (one, other))
    if before and after and after > most_ratio * before:
        yield (
            f"the median batch took {after:.2f} s {other[1]} and {before:.2f} s {one[1]}: "
            f"at most {most_ratio:.0%} of that were expected"
        )


def _records(found: Findings) -> Iterator[str]:
    compared: dict[str, Comparison] = {"kube-scheduler": found.default_records, "Ballast": found.records}
    for placed_by, records in compared.items():
        if not records.agree:
            yield f"source and sink disagree under {placed_by}: {records}"


def _warnings(found: Findings) -> Iterator[str]:
    """A busy machine is no failure: where it made the scores meaningless, the prediction is wrong."""
    use = found.median_use
    if use is not None and use.busy_percent >= BUSY_PERCENT:
        yield f"the machine was usually {use} while scores counted, so the scores depend on that, too"
