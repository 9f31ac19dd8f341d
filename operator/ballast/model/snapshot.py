"""Everything one pass looks at, read once and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ballast.enums import Grouping, Shuffle, Workload
from ballast.model.executor import Executor
from ballast.model.leaving import Notice
from ballast.model.location import Location
from ballast.model.move import Move
from ballast.model.reason import ConditionReason, Reason
from ballast.model.resources import Constraints, Resources, Taint

# A node of a policy's pool.


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
    """Requests of every pod bound to it, ours and foreign, terminating ones included, and of pods for which
    kube-scheduler keeps its room."""
    preemptible: Resources | None = None
    """Of `requested`, what pods ask for that every executor may preempt that waits for Ballast alone; None where there
    are no such pods."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    schedulable: bool = True
    """False when cordoned."""
    leaving: str = ""
    """Why the node is about to go (a disruption or scale-down taint); empty when it stays, or is only cordoned."""
    notice: Notice | None = None
    """That it is about to go, cordons included; None when it stays."""
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


# What talks to what: components, the streams between them, and the fixed ends outside.


@dataclass(frozen=True, slots=True)
class Anchor:
    """One fixed end of an external component or of a driver: a place and its share of that end's traffic."""

    location: Location
    share: float
    """0…1; the shares of one component sum to 1."""
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Component:
    name: str
    workload: Workload | None = None
    expected: int | None = None
    """Expected number of executors; a hint for placing the set at once."""
    exchange_bytes_per_second: float | None = None
    """All-to-all traffic among its own executors; None = not declared (counts as one unit of traffic)."""
    anchors: tuple[Anchor, ...] = ()
    """Where an external component is; empty for one that Ballast places."""
    external: bool = False
    shuffle: Shuffle | None = None
    """Where its shuffle files are once an executor has left; None: nothing says so."""
    retained_departures: int = 0
    """spark.scheduler.maxRetainedRemovedDecommissionExecutors, as declared."""


@dataclass(frozen=True, slots=True)
class Stream:
    source: str
    target: str
    grouping: Grouping = Grouping.SHUFFLE
    bytes_per_second: float | None = None
    """None = not known; then it weighs like the mean of the known ones, or 1 if none is known."""


@dataclass(frozen=True, slots=True)
class Separation:
    """Components that must not share a place."""

    components: tuple[str, ...]
    by: str = "Node"
    """Node, Rack or Zone."""


@dataclass(frozen=True, slots=True)
class Topology:
    key: str
    """`namespace/name`; for an implicit topology `namespace/application`."""
    namespace: str
    name: str
    components: tuple[Component, ...]
    streams: tuple[Stream, ...] = ()
    separate: tuple[Separation, ...] = ()
    implicit: bool = False
    driver: Anchor | None = None
    failed_executors: int = 0
    """Failures that count towards Spark's own limit."""

    def component(self, name: str) -> Component | None:
        return next((c for c in self.components if c.name == name), None)


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
    notices: tuple[tuple[str, str, float], ...] = ()
    """Node, key of its taint, and since when it is about to go by a deadline."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A pod that is not ours and that kube-scheduler is about to bind, before what we release now."""

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

    def message_for_users(self, policy: str) -> str:
        """For objects of a namespace: the message may name pods of others, and then only the policy's status has it."""
        return self.message if self.reason in _NAMING_NO_PODS else f"see MetricsAvailable of policy {policy}"


_NAMING_NO_PODS = (
    ConditionReason.AVAILABLE,
    ConditionReason.NOT_CONFIGURED,
    ConditionReason.NO_ANSWER_YET,
    ConditionReason.CLOCKS_DISAGREE,
)


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
    misjudged_namespaces: tuple[str, ...] = ()
    """Of executors that kube-scheduler lately found no node for, although they were nominated to one."""
    contended: bool = False
    """Pods of others wait for room, and may take what becomes free before an executor is bound."""
    closed_namespaces: Mapping[str, str] = field(default_factory=dict)
    """Namespaces in which no move is suggested: it could lately not be created, or they are ungated; and why."""
    ungated_namespaces: Mapping[str, str] = field(default_factory=dict)
    """Those in which executors are not gated for now although they opted in, and why."""
    gate_missing: tuple[str, ...] | None = None
    """Executors (`namespace/pod`) that opted in and came without the gate, as far as the operator saw them come.
    None where that is not known, since something else than the operator looks."""
    released_as_is: Mapping[str, Reason] | None = None
    """Why executors were released without a decided place, by uid, as far as the operator remembers; None as above."""
    batch_p95_seconds: Mapping[str, float] = field(default_factory=dict)
    """How long batches take, by `namespace/application`, where that is measured."""
    metrics: MetricsHealth = field(default_factory=MetricsHealth)
