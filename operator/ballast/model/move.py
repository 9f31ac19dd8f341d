"""A move: one executor leaves one node, and its replacement is placed on another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# The scores of a move's two nodes: how far they are apart, and what a move may make of that.

_ROUNDING_POINTS = 1e-6
"""Where both nodes are meant to meet, sums may make the destination the hotter one by so much."""


@dataclass(frozen=True, slots=True)
class Gap:
    """One moment, measured or predicted. Scores in percent of each node's own capacity."""

    hot: float
    """Of the node that is left."""
    cold: float
    """Of the destination."""

    @property
    def points(self) -> float:
        """Signed: below 0 where the destination is the hotter node."""
        return self.hot - self.cold

    def narrowed(self, after: Gap) -> float:
        """Points by which the gap comes nearer to zero; negative when it widens.

        From 90/30 to 50/60 it narrows by 50 points. From 90/30 to 25/95 it widens by 10: the hot spot has only moved.
        """
        return abs(self.points) - abs(after.points)

    def overshoots(self, tolerance_points: float = 0.0) -> bool:
        """Whether, after a move, the destination is hotter than the node that was left, by more than the tolerance."""
        return self.points < -(tolerance_points + _ROUNDING_POINTS)


class MovePhase(StrEnum):
    PROPOSED = "Proposed"
    APPROVED = "Approved"
    LEAVING = "Leaving"
    ARRIVING = "Arriving"
    SETTLING = "Settling"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    EXPIRED = "Expired"
    REFUSED = "Refused"

    @property
    def ended(self) -> bool:
        return self in _ENDED

    @property
    def in_flight(self) -> bool:
        """Its executor or the replacement is on the way, or the metric window has not caught up yet."""
        return self.traveling or self is MovePhase.SETTLING

    @property
    def departing(self) -> bool:
        """Decided, and the executor still is where it soon will not be."""
        return self in _DEPARTING

    @property
    def traveling(self) -> bool:
        """Decided, and the replacement does not run yet: its load and its requests are still to come."""
        return self in _TRAVELING


_DEPARTING = frozenset({MovePhase.APPROVED, MovePhase.LEAVING})
_TRAVELING = _DEPARTING | {MovePhase.ARRIVING}
_ENDED = frozenset({MovePhase.SUCCEEDED, MovePhase.FAILED, MovePhase.EXPIRED, MovePhase.REFUSED})


@dataclass(frozen=True, slots=True)
class Move:
    """What the planner must know of an ExecutorMove, in flight or ended within its ttl."""

    name: str
    namespace: str
    topology: str
    component: str
    executor_uid: str
    executor_name: str
    source: str
    target: str
    phase: MovePhase
    started_at: float
    """When it was approved (created, while Proposed); budgets and cooldowns count from here."""
    ended_at: float | None = None
    helped: bool | None = None
    """Judged after settling; None when it was not, or has not yet been, judged."""
    load_cores: float = 0.0
    """CPU load that travels with the executor, for the ledger."""
    application: str = ""
    resource_profile: str = ""
    replacement_uid: str | None = None
    arrived_at: float | None = None
    """When the replacement began to run on the target."""
    left_at: float | None = None
    """When the executor was gone from the source."""
