"""What doctor looks at in a live cluster, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ballast.api.labels import LabelSelector
from ballast.api.policy import BalancingPolicy
from ballast.api.topology import SparkTopology

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    labels: Labels = field(default_factory=dict)
    kubelet_version: str = ""
    lease_ahead_seconds: float = 0.0
    """How far its last heartbeat lies in the future; negative is usual."""


@dataclass(frozen=True, slots=True)
class SparkPod:
    namespace: str
    name: str
    labels: Labels = field(default_factory=dict)
    annotations: Labels = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Budget:
    namespace: str
    name: str
    selector: LabelSelector
    disruptions_allowed: int
    counted: bool = True
    """Its controller has observed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """What one policy's Prometheus answers."""

    url: str
    problem: str = ""
    """Why nothing was answered."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Signal → why its query failed."""
    without: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Signal → nodes of the pool for which it has no fresh value."""
    empty: tuple[str, ...] = ()
    """Signals of executors that have no series at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    name: str
    account: str
    version: str
    denied: tuple[str, ...] = ()
    """Rights that it lacks, as `verb resource`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    server: str
    system_namespace: str
    operators: tuple[Operator, ...] = ()
    definitions: bool = True
    """Whether the API server knows Ballast's kinds."""
    nodes: tuple[Node, ...] = ()
    policies: tuple[BalancingPolicy, ...] = ()
    """The oldest first."""
    topologies: tuple[SparkTopology, ...] = ()
    drivers: tuple[SparkPod, ...] = ()
    executors: tuple[SparkPod, ...] = ()
    budgets: tuple[Budget, ...] = ()
    gated: Mapping[str, bool] = field(default_factory=dict)
    """Namespace where placement is enforced → whether a new executor would be gated."""
    metrics: Mapping[str, Metrics] = field(default_factory=dict)
    """By policy."""
    deschedulers: tuple[str, ...] = ()
    """Kind, namespace and name of each, as `CronJob kube-system/descheduler`."""
    consolidation: Mapping[str, str] = field(default_factory=dict)
    """Karpenter's NodePool → its consolidationPolicy; a NodePool that may not be read is absent."""
    server_version: str = ""
    own_version: str = ""
    clock_ahead_seconds: float = 0.0
    """This machine's clock minus the API server's."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """What could not be read → why."""
