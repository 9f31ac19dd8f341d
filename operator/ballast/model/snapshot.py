"""Everything one pass looks at, read once and never changed."""

from __future__ import annotations

from dataclasses import dataclass, field

from ballast.model.executor import Executor
from ballast.model.move import Move
from ballast.model.node import Node
from ballast.model.reason import ConditionReason
from ballast.model.resources import Constraints, Resources
from ballast.model.topology import Topology

# What one pass must remember for the next; kept in the custom resources' status.


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


@dataclass(frozen=True, slots=True)
class Demand:
    """A pod that is not ours, pending and ungated: kube-scheduler will bind it before what we release now."""

    requests: Resources
    constraints: Constraints = field(default_factory=Constraints)


@dataclass(frozen=True, slots=True)
class MetricsHealth:
    """What was and was not to be had from Prometheus in this pass."""

    available: bool = False
    """False: no answer at all; the pass moves nothing."""
    reason: ConditionReason = ConditionReason.NOT_CONFIGURED
    message: str = ""
    age_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One pool at one moment.

    `nodes`: the nodes of the policy's pool. `executors`: Spark executors of the policy's namespaces, wherever
    they are bound. `moves`: in flight, or ended within their ttl. Times are seconds since the epoch.
    """

    taken_at: float
    nodes: tuple[Node, ...]
    executors: tuple[Executor, ...]
    topologies: tuple[Topology, ...] = ()
    moves: tuple[Move, ...] = ()
    pending: tuple[Demand, ...] = ()
    metrics: MetricsHealth = field(default_factory=MetricsHealth)
