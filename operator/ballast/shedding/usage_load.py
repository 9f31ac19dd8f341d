"""What AvgShedder with unit Usage looks at: scores in percent of each node's own capacity, and what executors use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ballast.model.reason import Reason


@dataclass(frozen=True, slots=True)
class UsageExecutor:
    name: str
    """Unique in the pool, such as `namespace/pod`."""
    load_cores: float | None
    """CPU cores of load that a move takes along, as used on the node where it is; None = unknown, never moved."""
    refusal: Reason | None = None
    """Why it may not be moved at all; None = it may."""


@dataclass(frozen=True, slots=True)
class UsageNode:
    name: str
    score: float
    """Percent of its own capacity, what is arriving and leaving included; can exceed 100."""
    capacity_cores: float
    """CPU that makes up 100 points (allocatable cores divided by the CPU weight)."""
    speed: float = 1.0
    """Work done per core-second, relative to the pool's ordinary machine."""
    receives: bool = True
    """False: nothing new may be sent there (cordoned, leaving, not ready, tainted for all)."""
    executors: tuple[UsageExecutor, ...] = ()
    gives: bool = True
    """False: nothing that runs there could be moved, so its partner is better paired with another hot node."""


@dataclass(frozen=True, slots=True)
class UsagePool:
    """The nodes with fresh figures. Their order decides nothing; equal figures go by name."""

    nodes: tuple[UsageNode, ...]
    silent: frozenset[str] = frozenset()
    """Nodes of the pool that have no fresh figures now."""
    unsettled: frozenset[str] = frozenset()
    """Nodes whose score changes for a known reason; it teaches nothing about chance."""


class Terms(Protocol):
    """What a move would cost and whether it is possible; asked only of executors and nodes that come into question."""

    def refusal(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        """Why `executor` can't go to `target` once `arriving` (chosen before it in this pass) are there too."""

    def cost(self, executor: str, target: str) -> float:
        """What the move costs next to the load: state held, warmth lost, locality lost. Any unit, at least 0."""

    def locality_delta_ratio(self, executor: str, target: str) -> float:
        """Growth of its topology's cost of traffic (0.1 = 10 % more); negative = less, and so nearer."""


class AnythingGoes:
    """Terms under which every move is possible and costs nothing."""

    def refusal(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        del executor, target, arriving
        return None

    def cost(self, executor: str, target: str) -> float:
        del executor, target
        return 0.0

    def locality_delta_ratio(self, executor: str, target: str) -> float:
        del executor, target
        return 0.0
