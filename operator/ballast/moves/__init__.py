"""One executor's move from one node to another: its rules, its state machine and its judgment.

Pure: the planner, the operator, the simulator, `plan`, `explain` and moves made by hand all ask these functions.
"""

from ballast.moves.machine import advance, turned_away
from ballast.moves.state import MoveMetrics, MoveReason, MoveState, Orders, Replacement, Subject, Timings
from ballast.moves.step import (
    Action,
    ClearNomination,
    DeleteUnscheduled,
    Effect,
    Emit,
    Evict,
    Facts,
    PinReplacement,
    Pod,
    ReleaseUnpinned,
    Revalidation,
    Rival,
    Step,
)

__all__ = [
    "Action",
    "ClearNomination",
    "DeleteUnscheduled",
    "Effect",
    "Emit",
    "Evict",
    "Facts",
    "MoveMetrics",
    "MoveReason",
    "MoveState",
    "Orders",
    "PinReplacement",
    "Pod",
    "ReleaseUnpinned",
    "Replacement",
    "Revalidation",
    "Rival",
    "Step",
    "Subject",
    "Timings",
    "advance",
    "turned_away",
]
