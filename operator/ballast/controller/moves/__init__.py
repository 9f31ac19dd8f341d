"""One move from its proposal to its end: durable, pure, and told by facts alone."""

from ballast.controller.moves.action import (
    Action,
    DeleteUnscheduled,
    Effect,
    Emit,
    Evict,
    PinReplacement,
    ReleaseUnpinned,
)
from ballast.controller.moves.facts import Clearance, Facts, Pod, Rival
from ballast.controller.moves.machine import advance
from ballast.controller.moves.state import Figures, MoveState, Orders, Replacement, Subject, Timings
from ballast.controller.moves.step import Step
from ballast.controller.moves.unruled import turned_away
from ballast.controller.moves.word import Word

__all__ = [
    "Action",
    "Clearance",
    "DeleteUnscheduled",
    "Effect",
    "Emit",
    "Evict",
    "Facts",
    "Figures",
    "MoveState",
    "Orders",
    "PinReplacement",
    "Pod",
    "ReleaseUnpinned",
    "Replacement",
    "Rival",
    "Step",
    "Subject",
    "Timings",
    "Word",
    "advance",
    "turned_away",
]
