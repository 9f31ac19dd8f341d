"""When, how often and how a policy moves executors."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from ballast.api.duration import Between, Duration
from ballast.api.meta import Model, nested
from ballast.api.names import LabelKey, Percent, Points
from ballast.api.profile import Budget, Profiled, by_profile
from ballast.api.quantity import Quantity
from ballast.api.rule import ATOMIC, map_by
from ballast.enums import MovesMode


class MovePin(StrEnum):
    """How narrowly a move's replacement is tied to its destination."""

    ZONE = "Zone"
    RACK = "Rack"
    NODE = "Node"


REVERSE_COOLDOWNS = 6
"""For so many cooldowns nothing goes back between two nodes: load that comes and goes would send it there and back."""

_Parallel = Annotated[int, Field(ge=1, le=1000)]


class LeavingTaint(Model):
    """A taint that announces that a node is about to go."""

    key: LabelKey
    """The taint's key; node.kubernetes.io/unschedulable for a cordon."""
    notice: Annotated[Duration, Between("0s", "24h")] | None = None
    """A deadline: from the taint until the node's pods are killed. If unset, a known taint keeps its own, and any other
    has none: executors then leave at the ordinary rate."""
    drain: bool = True
    """Whether executors are moved away. If false, nodes with it only get no new ones."""


class Drain(Model):
    """How nodes that are about to go are emptied. Drains need no metrics and no hits, and have these budgets alone."""

    enabled: bool = True
    """Whether executors are moved off nodes that are about to go."""
    max_concurrent: _Parallel = 10
    """Executors that may be leaving at once in the pool. Where executors of several namespaces are to leave, each
    namespace gets half of these, or its part of these executors if that is more."""
    max_concurrent_percent: Annotated[int, Field(ge=1, le=100)] = 25
    """Percentage of an application's executors that may be under way at once, one at least. Before a deadline that is
    too short for that, a node is emptied faster."""
    taints: Annotated[tuple[LeavingTaint, ...], Field(max_length=32), map_by("key")] = ()
    """Further taints by which a node leaves, or other values for known ones. Those of cluster-autoscaler, Karpenter,
    AWS Node Termination Handler, GKE and AKS, cordons and deleted nodes are known (docs/moves.md)."""


class Moves(Profiled):
    """When, how often and how executors are moved. Every limit is checked again right before an executor leaves."""

    BLOCK = "moves"

    mode: MovesMode = MovesMode.RECOMMEND
    """Disabled, Recommend (touch nothing), Approve (propose ExecutorMoves and wait for approval) or Enforce.

    Approve and Enforce need placement.mode: Enforce, which gates a replacement and places it on its destination.
    Switching to Disabled or Recommend ends the moves whose executor has not begun to leave.
    """
    pin: MovePin = MovePin.ZONE
    """What is required for the replacement: the destination's Zone, Rack or Node. Nearer levels are preferred.

    The replacement is also nominated to the destination (status.nominatedNodeName), which keeps its room from pods of
    equal or lower priority. Before 1.35, kube-scheduler does not honor this: Node is surer there. With Node, an
    autoscaler can neither provide a node for the replacement nor consolidate its node while it runs.
    """
    max_state_size: Quantity = Quantity.parse("1Gi")
    """The most state, in bytes, that an executor may hold and still be evicted."""
    allow_unknown_state: bool = False
    """Whether executors whose state's size is unknown may be evicted."""
    max_concurrent: _Parallel = by_profile("moves.max_concurrent")
    """Moves under way at once in the pool. Moves by hand get at most half of these, and half of each budget of the
    pool; where that is one, in turn with others. Moves in one namespace get half, too, or its part of the executors if
    that is more. Namespaces with more moves than their part together get half of what is left for others."""
    max_concurrent_per_node: _Parallel = by_profile("moves.max_concurrent_per_node")
    """Moves under way at once from or to one node. Moves by hand get at most half of these, and half of each budget of
    a node; where that is one, in turn with others."""
    max_concurrent_per_topology: _Parallel = 1
    """Moves of one topology that may be under way at the same time, and that may begin within one cooldown."""
    max_concurrent_per_topology_percent: Percent = by_profile("moves.max_concurrent_per_topology_percent")
    """The same in percent of the topology's executors; whichever allows more."""
    settle: Annotated[Duration, Between("5s", "6h")] = Duration.parse("3m")
    """Wait so long after the replacement's arrival before judging the move; at least window plus interval.

    While the application is slower than before it may be catching up: the operator waits up to as long again.
    """
    min_executor_age: Annotated[Duration, Between("0s", "24h")] = by_profile("moves.min_executor_age")
    """Executors younger than this are not moved."""
    min_gain: Points = by_profile("moves.min_gain")
    """Points by which the gap must narrow."""
    min_slowness_percent: Annotated[int, Field(ge=100, le=10_000)] = by_profile("moves.min_slowness_percent")
    """Evidence for a move: an executor's seconds per task are at least this percentage of those of its
    application's executors on the destination, or of the fastest quarter on other nodes if it has none there.

    A move needs evidence by this, by minPressurePercent or by saturationScore. Where neither tasks nor pressure are
    measured, the scores decide alone.
    """
    min_pressure_percent: Percent = by_profile("moves.min_pressure_percent")
    """Evidence for a move: something on the node waits for a CPU for at least this percentage of time. Also, the
    executor is throttled in so many more percent of its CPU periods than the executors that it is compared with."""
    saturation_score: Points = by_profile("moves.saturation_score")
    """Evidence for a move: the node's score is at least this. With 0 the gap between two nodes is evidence enough."""
    max_locality_loss_percent: Percent = by_profile("moves.max_locality_loss_percent")
    """The percentage by which the cost of traffic may rise."""
    max_failure_percent: Annotated[int, Field(ge=1, le=100)] = 50
    """No executor of an application is moved once it has had this percentage of the failures at which Spark gives up.
    """
    cooldown: Annotated[Duration, Between("0s", "168h")] = by_profile("moves.cooldown")
    """How long a move counts after it has ended. Until then it counts in its topology's maxConcurrentPerTopology, the
    node that the executor left takes none, and the node that took it gives none. At nodes, moves by hand count for such
    moves alone."""
    leave_timeout: Annotated[Duration, Between("5s", "1h")] = Duration.parse("2m")
    """How long an executor may take to leave. If its pod's grace period is longer, that counts instead, up to five
    times leaveTimeout."""
    arrive_timeout: Annotated[Duration, Between("5s", "1h")] = Duration.parse("3m")
    """How long its replacement may take to run."""
    approval_timeout: Annotated[Duration, Between("1m", "168h")] = Duration.parse("1h")
    """How long a proposal waits for approval. As many as maxConcurrent may wait in each namespace."""
    ttl_after_finished: Annotated[Duration, Between("1m", "2160h")] = Duration.parse("25h")
    """How long an ended ExecutorMove is kept; at least every budget's per and six cooldowns, for which nothing
    goes back between two nodes."""
    allow_ungraceful: bool = False
    """Whether executors without decommissioning may be moved: their running tasks are lost and run again."""
    allow_kueue_managed: bool = False
    """Whether executors that Kueue admits may be moved: a replacement may have to queue again."""
    drain: Drain = nested(Drain)
    """How nodes that are about to go are emptied."""
    budgets: Annotated[tuple[Budget, ...], Field(max_length=16), ATOMIC] = by_profile("moves.budgets")
    """How many moves there may be; all must agree."""
    pause_after_failures: Annotated[int, Field(ge=1, le=100)] = by_profile("moves.pause_after_failures")
    """Moves in a row that failed or did not help, after which the topology's moves pause; others don't count."""
