"""What a move may do to the cluster; nothing else.

Each is guarded so that doing it twice, or on facts that are out of date, changes nothing: by uid, and all but the
eviction by the resourceVersion at which the pod was last seen in the state that the action is for.
"""

from __future__ import annotations

from dataclasses import dataclass

from ballast.model import Pin


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict the executor through the Eviction API, with `uid` as a precondition."""

    pod: str
    uid: str


@dataclass(frozen=True, slots=True)
class PinReplacement:
    """Take our gate off the replacement and require `node`, down to the level of `pin`, in one patch; only if gated."""

    pod: str
    uid: str
    node: str
    pin: Pin


@dataclass(frozen=True, slots=True)
class ReleaseUnpinned:
    """Take our gate off the replacement and require nothing; only if gated."""

    pod: str
    uid: str


@dataclass(frozen=True, slots=True)
class DeleteUnscheduled:
    """Delete a replacement that is bound to no node; refused when it has been bound in the meantime."""

    pod: str
    uid: str


@dataclass(frozen=True, slots=True)
class Emit:
    """An Event on the move and on the pod that it is about. Has no effect on any executor."""

    reason: str
    message: str
    warning: bool
    pod: str
    pod_uid: str


Effect = Evict | PinReplacement | ReleaseUnpinned | DeleteUnscheduled
Action = Effect | Emit
