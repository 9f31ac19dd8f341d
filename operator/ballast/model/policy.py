"""A balancing policy as the planner reads it: plain values in seconds, bytes and ratios."""

from __future__ import annotations

from dataclasses import dataclass, field

from ballast.enums import ExecutorOrder, LoadUnit, MovesMode, Packing, Pin, PlacementMode
from ballast.model.executor import KUBE_SCHEDULER
from ballast.model.leaving import LEAVING_TAINTS, LeavingTaint
from ballast.model.location import DEFAULT_LEVELS, Levels
from ballast.model.shedders import (
    OverloadSettings,
    ShedderSettings,
    ThresholdSettings,
    TrafficSettings,
    TransferSettings,
    UniformSettings,
)

MAX_SCORE_PERCENT = 85.0
"""A node above this score takes no new executors while others have room."""


@dataclass(frozen=True, slots=True)
class ComponentLimit:
    """At most this many executors of the component on one node."""

    component: str
    max_per_node: int


@dataclass(frozen=True, slots=True)
class PlacementPolicy:
    mode: PlacementMode = PlacementMode.RECOMMEND
    strategy: str = "Proximity"
    order: ExecutorOrder = ExecutorOrder.PROXIMITY_NEEDS
    packing: Packing = Packing.SPREAD
    pin: Pin = Pin.ZONE
    sticky: bool = True
    scope_higher_bound_ratio: float = 0.8
    scope_lower_bound_ratio: float = 0.2
    max_executors_per_node_ratio: float = 0.25
    max_executors_per_zone_ratio: float = 1.0
    debounce_seconds: float = 0.3
    gate_timeout_seconds: float = 10.0
    max_score_percent: float = MAX_SCORE_PERCENT
    """A node above this score takes no new executors while others have room."""
    search_seconds: float = 0.5
    """Proximity: how long to improve a placement, on a machine of a fixed speed."""
    long_window_seconds: float = 3600.0
    """LeastLongTermRate: the time over which traffic is averaged."""
    min_difference: float = 10.0
    """LeastResourceUsage: points of score below the mean."""
    history_ratio: float = 0.9
    """LeastResourceUsage: how much the past counts against the newest score."""
    favored_nodes: tuple[str, ...] = ()
    unfavored_nodes: tuple[str, ...] = ()
    limits: tuple[ComponentLimit, ...] = ()
    scheduler_names: tuple[str, ...] = (KUBE_SCHEDULER,)
    """Of whose executors are placed."""


@dataclass(frozen=True, slots=True)
class AvgShedderPolicy:
    unit: LoadUnit = LoadUnit.USAGE
    low_threshold: float = 15.0
    """Points of score between the hottest and the coldest of a pair."""
    high_threshold: float = 40.0
    low_hits: int = 8
    high_hits: int = 2
    min_hot_score: float = 60.0
    persistent_hits: int = 15
    max_unload_ratio: float = 0.5
    min_rate: float = 1000.0
    """Records per second."""
    min_throughput_bytes: float = 1024.0 * 1024.0
    """Bytes per second."""


@dataclass(frozen=True, slots=True)
class SheddingPolicy:
    strategy: str = "AvgShedder"
    avg_shedder: AvgShedderPolicy = field(default_factory=AvgShedderPolicy)
    threshold_shedder: ThresholdSettings = field(default_factory=ThresholdSettings)
    overload_shedder: OverloadSettings = field(default_factory=OverloadSettings)
    uniform_load_shedder: UniformSettings = field(default_factory=UniformSettings)
    transfer_shedder: TransferSettings = field(default_factory=TransferSettings)

    @property
    def chosen(self) -> ShedderSettings | None:
        """What the strategy goes by, if it goes by usage or traffic alone."""
        match self.strategy:
            case "AvgShedder":
                return self._traffic()
            case "ThresholdShedder":
                return self.threshold_shedder
            case "OverloadShedder":
                return self.overload_shedder
            case "UniformLoadShedder":
                return self.uniform_load_shedder
            case "TransferShedder":
                return self.transfer_shedder
        return None

    def _traffic(self) -> TrafficSettings:
        rules = self.avg_shedder
        return TrafficSettings(
            low_threshold=rules.low_threshold,
            high_threshold=rules.high_threshold,
            low_hits=rules.low_hits,
            high_hits=rules.high_hits,
            max_unload_ratio=rules.max_unload_ratio,
            min_rate_per_second=rules.min_rate,
            min_bytes_per_second=rules.min_throughput_bytes,
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """At most `moves` per `per_seconds`, in the pool or in each topology; or, with a schedule, while it lasts."""

    moves: int
    per_seconds: float | None = None
    scope: str = "Pool"
    """Pool, Topology or Node."""
    schedule: str = ""
    """Cron expression; empty = always."""
    time_zone: str = "UTC"
    duration_seconds: float = 0.0
    percent: int = 0
    """Of the executors in the scope: so many moves, if that is more."""


@dataclass(frozen=True, slots=True)
class DrainPolicy:
    """How nodes that are about to go are emptied."""

    enabled: bool = True
    max_concurrent: int = 10
    """Moves of drains under way at once in the pool."""
    max_concurrent_ratio: float = 0.25
    """Of an application's executors: so many may be under way at once, one at least; more if the notice is short."""
    taints: tuple[LeavingTaint, ...] = LEAVING_TAINTS


@dataclass(frozen=True, slots=True)
class MovesPolicy:
    mode: MovesMode = MovesMode.RECOMMEND
    pin: Pin = Pin.ZONE
    max_state_bytes: float = float(1 << 30)
    allow_unknown_state: bool = False
    max_concurrent: int = 6
    max_concurrent_per_node: int = 3
    max_concurrent_per_topology: int = 1
    max_concurrent_per_topology_percent: int = 15
    """Of its executors; whichever allows more."""
    settle_seconds: float = 180.0
    min_executor_age_seconds: float = 300.0
    min_gain: float = 5.0
    """Points of score gap."""
    min_slowness: float = 1.2
    min_pressure: float = 0.1
    """Share of time."""
    saturation_score: float = 90.0
    """Points of score."""
    max_locality_loss: float = 0.1
    max_failure_percent: int = 50
    """Of the failures at which Spark gives up."""
    cooldown_seconds: float = 600.0
    leave_timeout_seconds: float = 120.0
    arrive_timeout_seconds: float = 180.0
    approval_timeout_seconds: float = 3600.0
    ttl_seconds: float = 90000.0
    allow_ungraceful: bool = False
    allow_kueue_managed: bool = False
    scheduler_names: tuple[str, ...] = (KUBE_SCHEDULER,)
    """As in PlacementPolicy: a replacement is placed by one of them."""
    budgets: tuple[Budget, ...] = ()
    pause_after_failures: int = 3
    drain: DrainPolicy = field(default_factory=DrainPolicy)


@dataclass(frozen=True, slots=True)
class Weights:
    cpu: float = 1.0
    memory: float = 0.0
    network_receive: float = 0.0
    network_transmit: float = 0.0

    def points_per_core(self, capacity_cores: float) -> float:
        """Points of score that one core of load makes on a node of this capacity; 0 on one without any."""
        return 100.0 * self.cpu / capacity_cores if capacity_cores > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Policy:
    name: str
    levels: Levels = DEFAULT_LEVELS
    interval_seconds: float = 60.0
    window_seconds: float = 120.0
    max_age_seconds: float = 180.0
    weights: Weights = field(default_factory=Weights)
    placement: PlacementPolicy = field(default_factory=PlacementPolicy)
    shedding: SheddingPolicy = field(default_factory=SheddingPolicy)
    moves: MovesPolicy = field(default_factory=MovesPolicy)
