"""What one move remembers: its orders, which never change, and its state, which is all that survives a crash."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum

from ballast.model import Gap, MovePhase, Resources


class MoveReason(StrEnum):
    """Where a move stands within its phase, and how it ended. Refusals carry a `ballast.model.Reason` instead."""

    # Under way
    AWAITING_APPROVAL = "AwaitingApproval"
    CLEARED = "Cleared"
    """Approved; it is revalidated next."""
    EVICTING = "Evicting"
    TERMINATING = "Terminating"
    """The pod has its deletion timestamp: there is no way back."""
    AWAITING_REPLACEMENT = "AwaitingReplacement"
    PLACING = "Placing"
    STARTING = "Starting"
    DISCARDING = "Discarding"
    """The pinned replacement can't be scheduled and is being deleted, to be placed again."""
    MEASURING = "Measuring"
    # Succeeded
    HELPED = "Helped"
    DRAINED = "Drained"
    """The replacement runs elsewhere than on the node that is about to go."""
    INCONCLUSIVE = "Inconclusive"
    NOT_JUDGED = "NotJudged"
    TARGET_SHRANK = "TargetShrank"
    NO_REPLACEMENT = "NoReplacement"
    APPLICATION_ENDED = "ApplicationEnded"
    # Failed
    DID_NOT_HELP = "DidNotHelp"
    RETURNED_TO_SOURCE = "ReturnedToSource"
    LEAVE_TIMEOUT = "LeaveTimeout"
    REPLACEMENT_NOT_RUNNING = "ReplacementNotRunning"
    REPLACEMENT_LOST = "ReplacementLost"
    NO_POLICY = "NoPolicy"
    """Also of a move that is refused before it began."""
    # Expired
    APPROVAL_TIMEOUT = "ApprovalTimeout"
    EXECUTOR_GONE = "ExecutorGone"
    # Refused
    NOT_EVICTED = "NotEvicted"


@dataclass(frozen=True, slots=True)
class MoveMetrics:
    """The values that a move is judged by, at one moment. None: no fresh value."""

    hot_score: float | None = None
    """Of the node that is left, percent of its own capacity."""
    cold_score: float | None = None
    """Of the node that the replacement goes to."""
    slowness: float | None = None
    """Of the executor, afterwards of its replacement."""
    batch_p95_seconds: float | None = None
    """Of the application, over the metric window; so is the median."""
    batch_p50_seconds: float | None = None

    @property
    def gap(self) -> Gap | None:
        if self.hot_score is None or self.cold_score is None:
            return None
        return Gap(self.hot_score, self.cold_score)


@dataclass(frozen=True, slots=True)
class Orders:
    """The spec of an ExecutorMove."""

    name: str
    namespace: str
    topology: str
    """Key of the topology: `namespace/name`."""
    component: str
    executor_uid: str
    executor_name: str
    source: str
    target: str
    created_at: float
    """Seconds since the epoch, as all times."""
    approved: bool = False
    policy: str = ""
    """Whose budgets it counts against; empty: that of the node's pool."""
    by_hand: bool = False
    """No strategy suggested it: a user asks for it."""
    taint: str = ""
    """The taint for which its node is emptied; empty for every other move."""
    decided: MoveMetrics = field(default_factory=MoveMetrics)
    """Values at the time of the decision."""
    predicted: MoveMetrics = field(default_factory=MoveMetrics)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Subject:
    """What the executor was, by which its replacement is recognized, and as how much its move keeps free for that."""

    application: str = ""
    resource_profile: str = ""
    executor_id: str = ""
    requests: Resources | None = None
    """What it requested; None where that was not noted."""


@dataclass(frozen=True, slots=True)
class Replacement:
    uid: str
    pod: str
    claimed_at: float | None
    """When this move recognized it; the earlier of two claims holds."""
    node: str = ""
    """Where it is bound; empty until then."""
    pinned: bool = False
    displaced: bool = False
    """Another pod took its room on the destination before it was bound."""


@dataclass(frozen=True, slots=True)
class Timings:
    """When each phase began."""

    approved_at: float | None = None
    leaving_at: float | None = None
    arriving_at: float | None = None
    settling_at: float | None = None
    """When the replacement began to run."""
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class MoveState:
    orders: Orders
    phase: MovePhase = MovePhase.PROPOSED
    reason: str = ""
    """A MoveReason or a model Reason; empty before the first look."""
    message: str = ""
    target: str = ""
    """Where the replacement goes now; the orders' target until a revalidation names another."""
    withdrawn: bool = False
    """While Leaving: no eviction is sent any more; the move ends unless one sent before has taken effect."""
    subject: Subject = field(default_factory=Subject)
    replacement: Replacement | None = None
    attempts: int = 0
    """Replacements that stayed unschedulable and were deleted, to be placed again."""
    timings: Timings = field(default_factory=Timings)
    before: MoveMetrics = field(default_factory=MoveMetrics)
    after: MoveMetrics = field(default_factory=MoveMetrics)

    @property
    def destination(self) -> str:
        return self.target or self.orders.target

    def without_times_after(self, end: float) -> MoveState:
        """Later times count as its creation: until they came, its nodes would rest, and budgets be spent."""
        found = {each.name: getattr(self.timings, each.name) for each in fields(Timings)}
        later = {name: self.orders.created_at for name, at in found.items() if at is not None and at > end}
        return replace(self, timings=replace(self.timings, **later)) if later else self

    @property
    def helped(self) -> bool | None:
        """None when it was not, or has not yet been, judged."""
        return _HELPED.get(self.reason)

    @property
    def gain(self) -> float | None:
        """Points by which the gap narrowed, as measured."""
        return narrowed(self.before, self.after)


def elsewhere(move: MoveState, arrived: Replacement) -> str:
    """What to add to a sentence about where the replacement runs; empty if that is the destination."""
    if arrived.node == move.destination:
        return ""
    lost = ", whose room another pod took" if arrived.displaced else ""
    return f" instead of {move.destination}{lost}"


_HELPED: dict[str, bool] = {
    MoveReason.HELPED: True,
    MoveReason.DID_NOT_HELP: False,
    MoveReason.RETURNED_TO_SOURCE: False,
}


def narrowed(before: MoveMetrics, after: MoveMetrics) -> float | None:
    """Points by which the gap narrowed from one moment to the other; negative when it widened."""
    return None if before.gap is None or after.gap is None else before.gap.narrowed(after.gap)
