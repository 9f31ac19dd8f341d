"""Why something was not done, or done otherwise than asked. Stable words: users, metrics and tests rely on them."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    # The pool and its metrics
    NO_METRICS = "NoMetrics"
    STALE_METRICS = "StaleMetrics"
    BALANCED = "Balanced"
    BELOW_MIN_HOT_SCORE = "BelowMinHotScore"
    WAITING_FOR_HITS = "WaitingForHits"
    POOL_TOO_SMALL = "PoolTooSmall"
    SHEDDING_OFF = "SheddingOff"
    MOVES_OFF = "MovesOff"
    # The executor
    DRIVER = "Driver"
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
    LARGE_STATE = "LargeState"
    UNKNOWN_STATE = "UnknownState"
    DATA_SKEW = "DataSkew"
    NOTHING_TO_GAIN = "NothingToGain"
    UNKNOWN_LOAD = "UnknownLoad"
    OVERSHOOT = "Overshoot"
    FAILURE_BUDGET = "FailureBudget"
    DISRUPTION_BUDGET = "DisruptionBudget"
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
    GATE_TIMEOUT = "GateTimeout"
    EMPTY_AFFINITY_TERM = "EmptyAffinityTerm"
    NOT_ENFORCED = "NotEnforced"
    POOL_FULL = "PoolFull"
    TOO_MANY_ATTEMPTS = "TooManyAttempts"
