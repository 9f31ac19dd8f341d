"""What happened in one run of a scenario under one policy: the only thing that figures, tables and reports read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.moves.state import MoveMetrics, narrowed


class Outcome(StrEnum):
    """How a move ended."""

    HELPED = "Helped"
    """Arrived, and judged as the operator judges: after settling, the gap of the two nodes was narrower than before."""
    DID_NOT_HELP = "DidNotHelp"
    NOT_JUDGED = "NotJudged"
    """Arrived, but it was not or could not be judged: a score was missing, or the application ended."""
    NEVER_LEFT = "NeverLeft"
    """The executor could not be evicted in time and stayed where it was."""
    NEVER_ARRIVED = "NeverArrived"
    """It left, and its replacement did not come to run on the destination."""
    UNDER_WAY = "UnderWay"
    """The run ended first."""


class Cause(StrEnum):
    """Why an executor had to be placed."""

    START = "Start"
    """Its application started."""
    LOST = "Lost"
    """Its node failed or went."""
    ASTRAY = "Astray"
    """It is the replacement of a move that could not go to the destination."""


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """One move that the planner decided. Times are seconds since the run began, scores percent."""

    executor: str
    """`namespace/name` of the executor that was to leave; its replacement has another name."""
    slot: int
    """Which executor of the scenario; stays the same when it is replaced."""
    application: str
    source: str
    target: str
    decided_at: float
    hot_score: float
    """Of the source, as the planner saw it when it decided."""
    cold_score: float
    hot_after: float
    """Predicted."""
    cold_after: float
    load_cores: float
    """What the planner expected to travel along."""
    locality_delta_ratio: float
    """Growth of its topology's cost of traffic; negative = cheaper."""
    outcome: Outcome
    left_at: float | None = None
    arrived_at: float | None = None
    """When the replacement began to run on the destination."""
    ended_at: float | None = None
    """When it was judged, or given up."""
    measured_hot_after: float | None = None
    """Score of the source when the move was judged."""
    measured_cold_after: float | None = None
    taint: str = ""
    """The taint for which its node was emptied; empty for a move that levels."""

    @property
    def gain(self) -> float:
        """Points by which the gap was to narrow."""
        return (self.hot_score - self.cold_score) - (self.hot_after - self.cold_after)

    @property
    def measured_gain(self) -> float | None:
        """Points by which it had narrowed when the move was judged."""
        return narrowed(
            MoveMetrics(self.hot_score, self.cold_score), MoveMetrics(self.measured_hot_after, self.measured_cold_after)
        )


@dataclass(frozen=True, slots=True)
class PlacementRecord:
    """One executor that was placed, other than by a move."""

    executor: str
    slot: int
    application: str
    at: float
    """When it was bound to the node; seconds since the run began."""
    waited_seconds: float
    """From its creation until then."""
    node: str
    wanted: str | None
    """The node that the planner chose; None when it released the executor as it was."""
    reason: str
    """Why the planner chose no node; empty when it did."""
    cause: Cause


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Means over one part of a run, from which the fewest moves possible are worked out (`optimum`)."""

    until: float
    """Seconds since the run began."""
    loads: FloatArray
    """By slot: work in cores of an ordinary machine; 0 for one that did not run."""
    homes: IntArray
    """By slot: node index where it would be had nothing been moved, at the end; -1 = nowhere."""
    movable: BoolArray
    """By slot."""
    others: FloatArray
    """By node: work that no move can shift."""
    capacity: FloatArray
    """By node: work that makes 100 points."""
    up: BoolArray
    """By node, at the end."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One run. Equal scenario, policy and seed give equal traces.

    Arrays have one row for each pass of the planner and one column for each node, in the order of `times` and
    `nodes`. The name of the policy tells the runs of a comparison apart.
    """

    scenario: str
    policy: str
    seed: int
    duration_seconds: float
    window_seconds: float
    """What a score is a mean over."""
    level_points: float
    """A gap of up to this counts as level, and more next to the mean as too much: the scenario's, for all policies."""
    nodes: tuple[str, ...]
    capacity: FloatArray
    """By node: work that makes 100 points."""
    times: FloatArray
    """Seconds since the run began, ascending; passes are not always equally far apart."""
    scores: FloatArray
    """As measured, percent; NaN where there was no fresh figure or no such node."""
    usage: FloatArray
    """What was asked of the node at that moment, in percent of its capacity; can exceed 100; NaN where it was gone."""
    executors: IntArray
    """Executors on the node, those on their way out included."""
    open: BoolArray
    """Whether the node took new executors."""
    locality: FloatArray
    """By pass: mean over topologies of Σ traffic × distance, traffic normalized to 1; NaN while nothing runs."""
    gated: IntArray
    """By pass: executors that waited to be placed."""
    reasons: tuple[str, ...]
    """Every reason for which something was refused in this run, sorted."""
    refusals: IntArray
    """Passes × reasons: how often."""
    moves: tuple[MoveRecord, ...] = ()
    """In the order of their decisions."""
    placements: tuple[PlacementRecord, ...] = ()
    stretches: tuple[Stretch, ...] = ()

    def refused(self) -> dict[str, int]:
        """Refusals by reason over the whole run."""
        return {reason: int(count) for reason, count in zip(self.reasons, self.refusals.sum(axis=0), strict=True)}
