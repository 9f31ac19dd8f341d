"""Everything one pass looks at, read once and never changed."""

from __future__ import annotations

from dataclasses import dataclass, field

from ballast.model.constraints import Constraints
from ballast.model.executor import Executor
from ballast.model.move import Move
from ballast.model.node import Node
from ballast.model.resources import Resources
from ballast.model.topology import Topology


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
    reason: str = "NotConfigured"
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
