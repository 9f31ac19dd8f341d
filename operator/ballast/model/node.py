"""A node of a policy's pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ballast.model.location import Location
from ballast.model.resources import Resources, Taint


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """Measured over the metric window. Ratios of the node's own capacity; None where there is no fresh figure."""

    cpu_ratio: float | None = None
    memory_ratio: float | None = None
    network_receive_ratio: float | None = None
    network_transmit_ratio: float | None = None
    pressure_ratio: float | None = None
    """PSI: share of time in which something waited for CPU."""
    age_seconds: float = 0.0
    """Age of the oldest sample used."""


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    location: Location
    """One value per level of the policy, far to near."""
    allocatable: Resources
    requested: Resources = field(default_factory=Resources)
    """Requests of every pod bound to it, ours and foreign, those that are terminating included."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    schedulable: bool = True
    """False when cordoned."""
    leaving: str = ""
    """Why the node is about to go (a disruption or scale-down taint); empty when it stays."""
    speed: float = 1.0
    """Work done per core-second, relative to the pool's ordinary machine."""
    usage: NodeUsage | None = None
    """None: no fresh figure at all; such a node takes part in no leveling."""

    @property
    def free(self) -> Resources:
        return self.allocatable.minus(self.requested)

    @property
    def open(self) -> bool:
        """Whether new pods may be sent there at all."""
        return self.ready and self.schedulable and not self.leaving
