"""A move: one executor leaves one node, and its replacement is placed on another."""

from __future__ import annotations

from dataclasses import dataclass

from ballast.enums import MovePhase
from ballast.model.resources import Resources

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

    def overshoots(self, after: Gap, tolerance_points: float = 0.0) -> bool:
        """Whether the destination ends hotter than the node that is left, by more than the tolerance.

        Not if the hotter of the two becomes cooler by half of the gap, which alike nodes reach by meeting: from 100/50
        to 30/60 an executor leaves a small node that it fills for a large one that hardly feels it.
        """
        peak = max(after.hot, after.cold)
        return after.points < -(tolerance_points + _ROUNDING_POINTS) and self.hot - peak < self.points / 2.0


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
    by_hand: bool = False
    """A user asked for it, and may have written anything about nodes and scores."""
    unapproved: bool = False
    """It waits for approval, and limits only moves of its own namespace."""
    elsewhere: bool = False
    """Another policy answers for it, so it uses up none of the limits on moves in this one's pool."""
    unreplaced: bool = False
    """It ended without a replacement: the application may ask for fewer executors, or can't have them any more."""
    blocked: bool = False
    """Its executor could not be evicted, by a disruption budget or an error."""
    requests: Resources | None = None
    """What its executor requested when it began to leave; None before that, or where it was not noted."""
    taint: str = ""
    """The taint for which its node is emptied; empty for a move that levels, or one by hand."""

    @property
    def only_asked_for(self) -> bool:
        """By hand, and not revalidated yet: it must limit no other move."""
        return self.by_hand and self.phase in (MovePhase.PROPOSED, MovePhase.APPROVED)
