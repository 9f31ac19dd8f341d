"""What one pass decided, with the figures and the reasons."""

from __future__ import annotations

from dataclasses import dataclass, field

from ballast.enums import Pin
from ballast.model.location import Location
from ballast.model.reason import Reason
from ballast.model.unplaced import Unplaced


@dataclass(frozen=True, slots=True)
class Placement:
    """Release one gated executor.

    `node` is the node chosen; `pin` says down to which level its location is *required*, nearer levels being preferred.
    Without a node, `reason` says why; the location may still name a zone and racks, which are required down to `pin`
    and preferred beyond it. With an empty location the executor is released as it is.
    """

    executor: str
    """`namespace/pod`."""
    uid: str
    node: str | None
    location: Location
    pin: Pin
    reason: Reason | None = None
    detail: str = ""
    move: str | None = None
    """`namespace/name` of the ExecutorMove whose replacement this is."""
    nominated: bool = False
    """Whether it is nominated to its node before it is released, so that kube-scheduler looks there first."""

    @property
    def namespace(self) -> str:
        return self.executor.split("/", 1)[0]

    @property
    def pod(self) -> str:
        return self.executor.split("/", 1)[1]


@dataclass(frozen=True, slots=True)
class Displaced:
    """An executor that kube-scheduler bound to another node than the one chosen for it."""

    executor: str
    """`namespace/pod`."""
    topology: str
    chosen: str
    node: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep one gated executor waiting, at most until `until` (seconds since the epoch)."""

    executor: str
    uid: str
    reason: Reason
    until: float | None
    """None while a foreign gate holds it: our clock has not started."""


@dataclass(frozen=True, slots=True)
class PlannedMove:
    executor: str
    """`namespace/pod`."""
    uid: str
    topology: str
    component: str
    source: str
    target: str
    strategy: str
    hot_score: float
    """Of the source, percent, with what is on its way and the moves decided before it; `cold_score` of the target."""
    cold_score: float
    hot_after: float
    cold_after: float
    gain: float
    """Points by which the gap of the two nodes narrows."""
    hits: int
    load_cores: float
    locality_delta_ratio: float = 0.0
    """Growth of the topology's locality cost (0.1 = 10 % more); negative = less."""
    slowness: float | None = None
    pressure_ratio: float | None = None
    """PSI of the source: share of time in which something waited for CPU."""
    taint: str = ""
    """The taint for which its node is emptied; empty for a move that levels."""
    scored: bool = True
    """False: one of the nodes has no fresh metrics, and the scores are 0. Only drains move without."""

    @property
    def namespace(self) -> str:
        return self.executor.split("/", 1)[0]

    @property
    def pod(self) -> str:
        return self.executor.split("/", 1)[1]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A suggestion that was not followed, or a reason why nothing was suggested."""

    subject: str
    """`namespace/pod`, a node name or the policy's name."""
    reason: Reason
    detail: str = ""
    target: str | None = None


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node as the pass saw it."""

    name: str
    location: Location
    score: float | None
    """Measured, percent of its own capacity; None = stale."""
    projected: float | None
    """With the ledger: measured + arriving − leaving."""
    executors: int
    pair: str | None = None
    speed: float = 1.0
    """Work done per second of CPU, against the pool's ordinary machine: as declared, or as learned."""
    low_hits: int = 0
    high_hits: int = 0


@dataclass(frozen=True, slots=True)
class LocalityView:
    """How far a topology's traffic travels. Ratios of its bytes per second; None where nothing runs."""

    topology: str
    cross_zone_ratio: float | None
    cross_rack_ratio: float | None
    cross_node_ratio: float | None
    cross_zone_bytes_per_second: float | None
    """None where a rate is not known."""
    cost: float
    """Σ traffic × distance, traffic normalized to 1."""
    lower_bound: float = 0.0


@dataclass(frozen=True, slots=True)
class PoolView:
    nodes: tuple[NodeView, ...] = ()
    total: int = 0
    eligible: int = 0
    stale: int = 0
    mean: float | None = None
    std_dev: float | None = None
    hottest: str | None = None
    coldest: str | None = None
    pairs: tuple[tuple[str, str, float], ...] = ()
    """Hot node, cold node, difference in points."""
    balanced: bool | None = None
    dropped: tuple[str, ...] = ()
    """Weighted signals that no node has figures of: they don't count."""


@dataclass(frozen=True, slots=True)
class Plan:
    placements: tuple[Placement, ...] = ()
    holds: tuple[Hold, ...] = ()
    replacements: tuple[Placement, ...] = ()
    """Pending pods whose pin can't be met: to be deleted and placed again (node None), or left alone."""
    overdue_nominations: tuple[str, ...] = ()
    """Uids of executors that found no room although they are nominated: their nominations are to be cleared."""
    displaced: tuple[Displaced, ...] = ()
    moves: tuple[PlannedMove, ...] = ()
    """Suggested and approved by the arbiter; what is done with them is the policy's `moves.mode`."""
    refusals: tuple[Refusal, ...] = ()
    pool: PoolView = field(default_factory=PoolView)
    locality: tuple[LocalityView, ...] = ()
    paused: tuple[str, ...] = ()
    """Topologies whose moves are paused after failures."""
    unplaced: tuple[Unplaced, ...] = ()
    """Executors that opted in and are not placed, or not as their pods ask for, and why."""
    wake_at: float | None = None
    """When to look again although nothing changed (a hold that runs out)."""
