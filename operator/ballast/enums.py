"""The words that resources and decisions share: what a user may write is what the planner reads."""

from __future__ import annotations

from enum import StrEnum


class PlacementMode(StrEnum):
    """Whether placement acts."""

    DISABLED = "Disabled"
    RECOMMEND = "Recommend"
    ENFORCE = "Enforce"


class ExecutorOrder(StrEnum):
    """Which executor is placed next."""

    PROXIMITY_NEEDS = "ProximityNeeds"
    CONNECTION_COUNT = "ConnectionCount"


class Packing(StrEnum):
    """Which of equally near nodes executors use."""

    SPREAD = "Spread"
    PACK = "Pack"


class LoadUnit(StrEnum):
    """What is leveled."""

    USAGE = "Usage"
    TRAFFIC = "Traffic"


class MovesMode(StrEnum):
    """Whether moves happen."""

    DISABLED = "Disabled"
    RECOMMEND = "Recommend"
    APPROVE = "Approve"
    ENFORCE = "Enforce"

    @property
    def acts(self) -> bool:
        """Whether ExecutorMoves are created and carried out."""
        return self in (MovesMode.APPROVE, MovesMode.ENFORCE)


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


class Pin(StrEnum):
    """How narrowly an executor is tied to its place."""

    NONE = "None"
    ZONE = "Zone"
    RACK = "Rack"
    NODE = "Node"


class Workload(StrEnum):
    """What kind of application a component is; it decides whether moving its executors can help."""

    STREAMING = "Streaming"
    BATCH = "Batch"
    INTERACTIVE = "Interactive"
    REAL_TIME = "RealTime"
    """A streaming query in Spark's real-time mode, which ends when it loses one executor."""


class Shuffle(StrEnum):
    """Where an application's shuffle files are once an executor has left."""

    LOCAL = "Local"
    MIGRATED = "Migrated"
    REMOTE = "Remote"


class Grouping(StrEnum):
    """How a stream's records are spread over the receivers."""

    SHUFFLE = "Shuffle"
    LOCAL_OR_SHUFFLE = "LocalOrShuffle"
    FIELDS = "Fields"
    ALL = "All"
    GLOBAL = "Global"
    LOAD_AWARE = "LoadAware"


class Preset(StrEnum):
    """A set of queries that fits a usual way of scraping."""

    KUBE_PROMETHEUS_STACK = "KubePrometheusStack"
    CADVISOR = "Cadvisor"


class Scope(StrEnum):
    """How far apart two ends are, near to far (Storm's locality scopes, with Kubernetes' zone added)."""

    PROCESS = "Process"
    NODE = "Node"
    RACK = "Rack"
    ZONE = "Zone"
    CLUSTER = "Cluster"
