"""What one pass must remember for the next; kept in the custom resources' status."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NodeHits:
    """How often in a row a node's pair was over each threshold."""

    low: int = 0
    high: int = 0
    last_at: float = 0.0
    """When the last hit was counted; at most one a metric window."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often executors of one component had to be placed again because their place could not run them."""

    topology: str
    component: str
    count: int
    last_at: float


@dataclass(frozen=True, slots=True)
class Memory:
    shedding: tuple[tuple[str, str], ...] = ()
    """State of the shedding strategies as JSON text by strategy name (hits, averages, counters)."""
    placements: tuple[tuple[str, str, tuple[tuple[str, int], ...]], ...] = ()
    """Topology, component, (node, executors): where executors were last seen running; for stickiness."""
    scopes: tuple[tuple[str, str, str], ...] = ()
    """Topology, component, scope: how far the component may spread now."""
    attempts: tuple[Attempts, ...] = ()
    """Sorted by topology and component; forgotten some time after the last one."""
    placement_state: tuple[tuple[str, str], ...] = field(default=())
    """State of placement strategies as JSON text by strategy name (round-robin cursor, preallocation)."""
