"""What the load-based placement strategies know of a node that could take an executor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arrival:
    """An executor sent to a node whose load the node's figures do not show yet."""

    executor: str
    rate_per_second: float
    """Records in and out, over the long window."""


@dataclass(frozen=True, slots=True)
class Candidate:
    name: str
    score: float = 0.0
    """Largest weighted resource usage, percent of its own capacity."""
    rate_per_second: float = 0.0
    """Records in and out over the long window."""
    current_rate_per_second: float = 0.0
    """Records in and out now; 0 marks a node that has just started or does nothing."""
    executors: frozenset[str] = frozenset()
    """Those that its figures already include."""
    arriving: tuple[Arrival, ...] = ()
