"""The phases of a move: written in ExecutorMoves, read by every decision."""

from __future__ import annotations

from enum import StrEnum


class MovePhase(StrEnum):
    """Where a move stands."""

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
