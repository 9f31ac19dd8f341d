"""An executor pod, as far as placing and leveling are concerned."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ballast.model.resources import Constraints, Resources


class Phase(StrEnum):
    GATED = "Gated"
    """Held by our gate (perhaps by others as well)."""
    PENDING = "Pending"
    """No gate of ours, not bound or not yet running."""
    RUNNING = "Running"
    LEAVING = "Leaving"
    """Has a deletion timestamp."""
    ENDED = "Ended"


KUBE_SCHEDULER = "default-scheduler"
_NOTICED_SECONDS = 10.0
BINDING_SECONDS = 120.0
"""How long a pod without a node is expected to get one: one that never gets one must not keep room from others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorUsage:
    """Measured over the metric window; None where there is no fresh figure."""

    cpu_cores: float | None = None
    memory_bytes: float | None = None
    records_per_second: float | None = None
    bytes_per_second: float | None = None
    """Of its pod's network, in and out."""
    task_seconds: float | None = None
    """Mean seconds of a task."""
    slot_ratio: float | None = None
    """Task seconds per second and task slot. Above 1 where tasks ended that had begun before the window."""
    task_bytes: float | None = None
    """Mean bytes of a task."""
    shuffle_read_bytes_per_second: float | None = None
    shuffle_write_bytes_per_second: float | None = None
    state_bytes: float | None = None
    throttled_ratio: float | None = None
    """Share of CPU periods in which its own CPU limit stopped it, 0…1."""


@dataclass(frozen=True, slots=True)
class Executor:
    namespace: str
    name: str
    uid: str
    application: str
    """Label spark-app-selector."""
    executor_id: str
    resource_profile: str
    topology: str
    """Key of its Topology: `namespace/name`, or `namespace/application` for an implicit one."""
    component: str
    phase: Phase
    created_at: float
    """Seconds since the epoch, as all times."""
    node: str | None = None
    requests: Resources = field(default_factory=Resources)
    constraints: Constraints = field(default_factory=Constraints)
    cores: float = 1.0
    """Task slots (SPARK_EXECUTOR_CORES), which may differ from the CPU request."""
    gates: tuple[str, ...] = ()
    """Scheduling gates of others that are still there."""
    last_gate_since: float | None = None
    """Since when ours is the last gate; None while others hold it too, or when it is not gated."""
    first_read: float | None = None
    """When that was first read, up to a second later: those that are created with it are waited for from then on. None:
    at that time."""
    running_since: float | None = None
    unschedulable_since: float | None = None
    lacks_room: bool = True
    """False: kube-scheduler finds no node for it, and not only for lack of an amount that it requests. It asks for
    something that Ballast does not look at, such as a volume on nodes that can attach no more."""
    nominated: str | None = None
    """The node that Ballast has nominated it to; None once it is bound."""
    room_kept: bool = False
    """kube-scheduler keeps the room of a node for it, which counts as requested there."""
    scheduler: str = KUBE_SCHEDULER
    gang: str = ""
    """What makes it a member of a gang, as `gang_of` words it; empty if nothing does."""
    never_unschedulable: bool = False
    """kube-scheduler may never mark it as Unschedulable. It asks for devices by ResourceClaims, or belongs to a
    PodGroup: these may not exist, or never be complete. Or its pod is so long that nothing can be written into it."""
    graceful: bool = False
    """Spark's decommissioning hook is in the pod (preStop)."""
    allocator_direct: bool = True
    """False for Spark's statefulset and deployment allocators."""
    kueue_managed: bool = False
    pinned: bool = False
    """Carries node affinity that Ballast added."""
    pinned_at: float | None = None
    """When Ballast added it, which is when it released the executor."""
    placed: bool = False
    """Carries node affinity that Ballast added, required or preferred."""
    enforced: bool = True
    """False: its namespace or pod did not opt in; then it counts as load only."""
    labeled: bool = True
    """Its namespace, or its own topology label, says so, and not a selector or a pod template alone: only then is
    its replacement held as well, and may it be deleted where its place can't run it."""
    by_other_pods: bool = False
    """Its pod requires to be near other pods or apart from them, or not all pods that may keep it away were looked at.
    If it required a zone as well, no node might be left.
    """
    late_claims: bool = False
    """It mounts a claim that has no volume yet. Where that can be made is not known for certain: if the executor
    required a zone, there might be no node that the volume can be made for."""
    unknown_topology: str = ""
    """What its topology label names, where there is no SparkTopology of that name; else empty."""
    soft_spread_keys: tuple[str, ...] = ()
    """Topology keys over which its pod prefers to be spread."""
    application_name: str = ""
    """Label spark-app-name: what people call the application."""
    expected: int | None = None
    """How many executors its application will have of its component, as its label or annotation says."""
    usage: ExecutorUsage | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def was_just_placed(self, now: float) -> bool:
        """Whether a scheduler that runs may not have come to it yet."""
        return self.pinned_at is not None and abs(now - self.pinned_at) < _NOTICED_SECONDS

    def about_to_be_bound(self, now: float) -> bool:
        """Whether its scheduler is likely to give it a node next.

        A scheduler that its pod names need not exist. Ballast places only executors of those that a policy names.

        Its pod may ask for something that no node has and that Ballast does not look at, or that does not exist: then
        kube-scheduler says that no node can take it, or does not even try. So it is likely only for a time.
        """
        waits = self.phase is Phase.PENDING and self.node is None and not self.gates
        placed = self.pinned_at is not None or self.nominated is not None
        known = self.scheduler == KUBE_SCHEDULER or placed
        if not waits or not known or self.room_kept or self.never_unschedulable:
            return False
        since = self.unschedulable_since
        if since is None and self.nominated is not None:
            # kube-scheduler keeps the room: it may wait ten minutes for a volume before it binds the pod.
            return True
        if since is None:
            since = max(self.created_at, self.pinned_at or 0.0)
        # A time far in the future is none: a user may write into managedFields when the pod was pinned.
        return abs(now - since) < BINDING_SECONDS
