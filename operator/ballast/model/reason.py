"""The reasons that users meet. Stable words: users, metrics and tests rely on them; docs/reasons.md explains each.

A move's own reasons, of its phases and outcomes, stand with its state machine (`ballast.moves.state`).
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why something was not done, or done otherwise than asked."""

    # The pool and its metrics
    NO_METRICS = "NoMetrics"
    STALE_METRICS = "StaleMetrics"
    BALANCED = "Balanced"
    BELOW_MIN_HOT_SCORE = "BelowMinHotScore"
    WAITING_FOR_HITS = "WaitingForHits"
    POOL_TOO_SMALL = "PoolTooSmall"
    SHEDDING_DISABLED = "SheddingDisabled"
    MOVES_DISABLED = "MovesDisabled"
    # The executor
    DRIVER = "Driver"
    UNKNOWN_TOPOLOGY = "UnknownTopology"
    UNKNOWN_WORKLOAD = "UnknownWorkload"
    UNSUITED_WORKLOAD = "UnsuitedWorkload"
    NOT_OPTED_IN = "NotOptedIn"
    NOT_RUNNING = "NotRunning"
    MISDESCRIBED = "Misdescribed"
    NO_DECOMMISSIONING = "NoDecommissioning"
    UNSUPPORTED_ALLOCATOR = "UnsupportedAllocator"
    TOO_YOUNG = "TooYoung"
    KUEUE_MANAGED = "KueueManaged"
    FOREIGN_SCHEDULER = "ForeignScheduler"
    GANG = "Gang"
    LARGE_STATE = "LargeState"
    UNKNOWN_STATE = "UnknownState"
    DATA_SKEW = "DataSkew"
    NOTHING_TO_GAIN = "NothingToGain"
    UNKNOWN_LOAD = "UnknownLoad"
    OVERSHOOT = "Overshoot"
    FAILURE_BUDGET = "FailureBudget"
    DISRUPTION_BUDGET = "DisruptionBudget"
    SHUFFLE_LOST = "ShuffleLost"
    STAGE_ATTEMPTS = "StageAttempts"
    NODE_STAYS = "NodeStays"
    # The destination
    NO_ROOM = "NoRoom"
    NO_DESTINATION = "NoDestination"
    VOLUME_PINNED = "VolumePinned"
    NOT_ADMITTED = "NotAdmitted"
    TAINTED = "Tainted"
    NODE_UNAVAILABLE = "NodeUnavailable"
    NODE_LEAVING = "NodeLeaving"
    SPREAD_LIMIT = "SpreadLimit"
    SEPARATED = "Separated"
    # The arbiter
    MIN_GAIN = "MinGain"
    LOCALITY_LOSS = "LocalityLoss"
    COOLDOWN = "Cooldown"
    BUDGET = "Budget"
    MAX_CONCURRENT = "MaxConcurrent"
    IN_FLIGHT = "InFlight"
    PAUSED = "Paused"
    REVERSE = "Reverse"
    # The gate
    FOREIGN_GATE = "ForeignGate"
    WAITING_FOR_SET = "WaitingForSet"
    WAITING_FOR_TURN = "WaitingForTurn"
    GATE_TIMEOUT = "GateTimeout"
    EMPTY_AFFINITY_TERM = "EmptyAffinityTerm"
    AFFINITY_REFUSED = "AffinityRefused"
    NOT_ENFORCED = "NotEnforced"
    POOL_FULL = "PoolFull"
    TOO_MANY_ATTEMPTS = "TooManyAttempts"


PASSING = frozenset({Reason.NO_METRICS, Reason.STALE_METRICS, Reason.MAX_CONCURRENT, Reason.DISRUPTION_BUDGET})
"""Objections that may disappear soon: a move that is under way waits for that, for up to leaveTimeout. By any other it
is refused for good.
"""
LIMITS_ON_MOVES = frozenset({Reason.BUDGET, Reason.COOLDOWN, Reason.MAX_CONCURRENT})
"""Objections that come from the number of moves; the simulator counts them."""

Objection = tuple[Reason, str]
"""Why not, and a sentence with the values."""


class ConditionReason(StrEnum):
    """Why a condition of a BalancingPolicy or a SparkTopology has its status."""

    # Ready and Stalled
    RECONCILED = "Reconciled"
    NO_NODES = "NoNodes"
    STATUS_NOT_VALID = "StatusNotValid"
    POOLS_OVERLAP = "PoolsOverlap"
    INVALID_SPEC = "InvalidSpec"
    PASS_FAILED = "PassFailed"
    TOPOLOGY_FAILED = "TopologyFailed"
    SELECTOR_MATCHES_DRIVER = "SelectorMatchesDriver"
    QUOTA_EXCEEDED = "QuotaExceeded"
    # The pool
    LEVEL_LABEL_MISSING = "LevelLabelMissing"
    # A topology's declaration
    SELECTORS_OVERLAP = "SelectorsOverlap"
    UNKNOWN_COMPONENT = "UnknownComponent"
    CYCLE_IN_STREAMS = "CycleInStreams"
    EXTERNAL_NOT_FOUND = "ExternalNotFound"
    EXTERNAL_NAMESPACE_NOT_ALLOWED = "ExternalNamespaceNotAllowed"
    # MetricsAvailable
    AVAILABLE = "Available"
    PARTIAL = "Partial"
    SIGNAL_DROPPED = "SignalDropped"
    NOT_CONFIGURED = "NotConfigured"
    NO_ANSWER_YET = "NoAnswerYet"
    UNREACHABLE = "Unreachable"
    SECRET_NOT_READ = "SecretNotRead"
    NO_NODE_METRICS = "NoNodeMetrics"
    METRICS_AMBIGUOUS = "MetricsAmbiguous"
    CLOCKS_DISAGREE = "ClocksDisagree"
    QUERY_NOT_ALLOWED = "QueryNotAllowed"
    QUERY_WITHOUT_VALUE = "QueryWithoutValue"
    # Balanced, Paused, Gating, Placed, Sized
    WITHIN_THRESHOLD = "WithinThreshold"
    GAP_TOO_WIDE = "GapTooWide"
    UNKNOWN = "Unknown"
    MOVES_DID_NOT_HELP = "MovesDidNotHelp"
    SWITCH_OFF = "SwitchOff"
    RELEASE_REFUSED = "ReleaseRefused"
    GATE_MISSING = "GateMissing"
    STOPPED = "Stopped"
    PLACED = "Placed"
    WAITING = "Waiting"
    NO_EXECUTORS = "NoExecutors"
    RECOMMENDED = "Recommended"


class EventReason(StrEnum):
    """What an Event on an executor, its driver or its topology says was done.

    Events on moves have a move's reasons, and those on executors that went without a place a `Reason`.
    """

    PLACED = "Placed"
    PLACED_AGAIN = "PlacedAgain"
    DISPLACED = "Displaced"
    RELEASED = "Released"
    RELEASE_REFUSED = "ReleaseRefused"
    MOVE_DECIDED = "MoveDecided"
    MOVE_NOT_CREATED = "MoveNotCreated"
    QUOTA_EXCEEDED = "QuotaExceeded"
