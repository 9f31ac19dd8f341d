"""Where a move stands within its phase, and how it ended. Refusals carry a `ballast.model.Reason` instead."""

from __future__ import annotations

from enum import StrEnum


class Word(StrEnum):
    # Under way
    AWAITING_APPROVAL = "AwaitingApproval"
    CLEARED = "Cleared"
    """Approved; the arbiter looks once more."""
    EVICTING = "Evicting"
    TERMINATING = "Terminating"
    """The pod has its deletion timestamp: there is no way back."""
    AWAITING_REPLACEMENT = "AwaitingReplacement"
    PLACING = "Placing"
    STARTING = "Starting"
    DISCARDING = "Discarding"
    """The pinned replacement can't be scheduled and is being deleted, to be placed anew."""
    MEASURING = "Measuring"
    # Succeeded
    HELPED = "Helped"
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
    # Expired
    APPROVAL_TIMEOUT = "ApprovalTimeout"
    EXECUTOR_GONE = "ExecutorGone"
    # Refused
    NOT_EVICTED = "NotEvicted"
    NO_POLICY = "NoPolicy"
