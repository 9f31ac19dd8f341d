"""When, how often and how a policy moves executors."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from ballast.api.duration import Between, Duration, comparing
from ballast.api.lists import ATOMIC
from ballast.api.meta import Model
from ballast.api.names import Points, Ratio
from ballast.api.quantity import Quantity
from ballast.api.rule import Rule, matching


class MovesMode(StrEnum):
    """Whether moves happen."""

    DISABLED = "Disabled"
    RECOMMEND = "Recommend"
    APPROVE = "Approve"
    ENFORCE = "Enforce"


class MovePin(StrEnum):
    """How narrowly a move's replacement is tied to its destination."""

    ZONE = "Zone"
    RACK = "Rack"
    NODE = "Node"


class BudgetScope(StrEnum):
    """What a budget is counted for."""

    POOL = "Pool"
    TOPOLOGY = "Topology"
    NODE = "Node"


_CRON_FIELD = "[-A-Za-z0-9*,/]+"


class Budget(Model):
    """At most so many moves: per span of time, or during a recurring window."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.per) != has(self.schedule)",
            message="set exactly one of per (a sliding span such as 1h) and schedule (when a window begins)",
            holds=lambda budget: (budget.per is None) != (budget.schedule is None),
        ),
        Rule(
            cel="has(self.schedule) == has(self.duration)",
            message="schedule and duration go together: set both (when a window begins, how long it lasts) or none",
            holds=lambda budget: (budget.schedule is None) == (budget.duration is None),
            path=".duration",
        ),
        Rule(
            cel="!has(self.timeZone) || has(self.schedule)",
            message="timeZone goes with schedule: remove it or set schedule",
            holds=lambda budget: budget.time_zone is None or budget.schedule is not None,
            path=".timeZone",
        ),
    )

    moves: Annotated[int, Field(ge=0, le=10_000)]
    """The most moves; 0 forbids them."""
    per: Annotated[Duration, Between("1s", "168h")] | None = None
    """In any span of this length, up to 168h."""
    scope: BudgetScope = BudgetScope.POOL
    """Counted for the whole pool, for each topology or for each node: Pool, Topology or Node."""
    schedule: (
        Annotated[
            str,
            Field(min_length=9, max_length=100),
            matching(
                f"{_CRON_FIELD}( {_CRON_FIELD}){{4}}",
                "write five fields of cron (minute hour day month weekday), such as 0 8 * * 1-5",
            ),
        ]
        | None
    ) = None
    """When a window begins, in the five fields of cron, such as 0 8 * * 1-5."""
    time_zone: (
        Annotated[
            str,
            Field(min_length=1, max_length=64),
            matching("[A-Za-z][-+A-Za-z0-9_/]*", "write an IANA time zone such as Europe/Berlin"),
        ]
        | None
    ) = None
    """The IANA time zone of the schedule. Default: UTC."""
    duration: Annotated[Duration, Between("1m", "168h")] | None = None
    """How long the window lasts, up to 168h."""


_DEFAULT_BUDGETS = (
    Budget(moves=6, per=Duration.parse("1h")),
    Budget(moves=2, per=Duration.parse("24h"), scope=BudgetScope.TOPOLOGY),
)

_Parallel = Annotated[int, Field(ge=1, le=1000)]


class Moves(Model):
    """When, how often and how executors are moved. Every limit is checked again right before an executor leaves."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.budgets.all(b, !has(b.per) || "
            + comparing("duration(self.ttlAfterFinished) >= duration(b.per)", "self.ttlAfterFinished", "b.per")
            + ")",
            message="ttlAfterFinished must be at least every budget's per, since budgets are counted from ended moves:"
            " raise ttlAfterFinished",
            holds=lambda moves: all(
                budget.per is None or moves.ttl_after_finished >= budget.per for budget in moves.budgets
            ),
            path=".ttlAfterFinished",
        ),
        Rule(
            cel=comparing(
                "duration(self.ttlAfterFinished) >= duration(self.cooldown)", "self.ttlAfterFinished", "self.cooldown"
            ),
            message="ttlAfterFinished must be at least cooldown, which is counted from ended moves:"
            " raise ttlAfterFinished",
            holds=lambda moves: moves.ttl_after_finished >= moves.cooldown,
            path=".ttlAfterFinished",
        ),
    )

    mode: MovesMode = MovesMode.RECOMMEND
    """Disabled, Recommend (touch nothing), Approve (propose ExecutorMoves and wait for approval) or Enforce.

    Approve and Enforce need placement.mode: Enforce, which holds a replacement until it is sent to its destination.
    Switching to Disabled or Recommend ends the moves whose executor has not begun to leave.
    """
    pin: MovePin = MovePin.NODE
    """What is required for the replacement: the destination's Zone, Rack or Node."""
    max_state_size: Quantity = Quantity.parse("1Gi")
    """The most state, in bytes, that an executor may hold and still be evicted."""
    allow_unknown_state: bool = False
    """Whether executors whose state's size is unknown may be evicted."""
    max_concurrent: _Parallel = 2
    """Moves under way at once in the pool."""
    max_concurrent_per_node: _Parallel = 1
    """Moves under way at once from or to one node; they begin at least the cooldown apart."""
    max_concurrent_per_topology: _Parallel = 1
    """Moves under way at once in one topology; they begin at least the cooldown apart."""
    settle: Annotated[Duration, Between("5s", "6h")] = Duration.parse("3m")
    """Wait so long after the replacement's arrival before judging the move; at least window plus interval.

    While the application is slower than before it may be catching up: the operator waits up to as long again.
    """
    min_executor_age: Annotated[Duration, Between("0s", "24h")] = Duration.parse("5m")
    """Younger executors stay."""
    min_gain: Points = 5
    """Points by which the gap must narrow."""
    min_slowness: Annotated[float, Field(ge=1, le=100)] = 1.2
    """Evidence for a move: an executor's seconds per task are at least so many times those of its application's
    executors on the destination, or of the fastest quarter on other nodes if it has none there.

    A move needs evidence by this, by minPressure or by saturationScore. Where neither tasks nor pressure are measured,
    the scores decide alone.
    """
    min_pressure: Ratio = 0.1
    """Evidence for a move: something on the node waits for a CPU for at least this share of time. Also, the executor is
    throttled in so many more of its CPU periods than the executors that it is compared with."""
    saturation_score: Points = 90
    """Evidence for a move: the node's score is at least this. With 0 the gap between two nodes is evidence enough."""
    max_locality_loss: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The share by which the cost of traffic may rise."""
    max_failure_percent: Annotated[int, Field(ge=1, le=100)] = 50
    """No executor of an application is moved once it has had this percentage of the failures at which Spark gives up.
    """
    cooldown: Annotated[Duration, Between("0s", "168h")] = Duration.parse("10m")
    """Wait so long between moves of one topology, and of one node: after one began, and again after it ended."""
    leave_timeout: Annotated[Duration, Between("5s", "1h")] = Duration.parse("2m")
    """How long an executor may take to leave."""
    arrive_timeout: Annotated[Duration, Between("5s", "1h")] = Duration.parse("3m")
    """How long its replacement may take to run."""
    approval_timeout: Annotated[Duration, Between("1m", "168h")] = Duration.parse("1h")
    """How long a proposal waits for approval."""
    ttl_after_finished: Annotated[Duration, Between("1m", "2160h")] = Duration.parse("25h")
    """How long an ended ExecutorMove is kept; at least every budget's per and the cooldown."""
    allow_ungraceful: bool = False
    """Whether executors without decommissioning may be moved: their running tasks are lost and run again."""
    allow_kueue_managed: bool = False
    """Whether executors that Kueue admits may be moved: a replacement may have to queue again."""
    budgets: Annotated[tuple[Budget, ...], Field(max_length=16), ATOMIC] = _DEFAULT_BUDGETS
    """How many moves there may be; all must agree. By default 6 an hour in the pool and 2 a day per topology."""
    pause_after_failures: Annotated[int, Field(ge=1, le=100)] = 3
    """Moves in a row that failed or did not help, after which the topology's moves pause; others don't count."""
