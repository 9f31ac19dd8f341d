"""A move: one executor leaves one node, and its replacement is placed on another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
