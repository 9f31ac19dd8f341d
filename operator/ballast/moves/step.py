"""One step of a move: either a status to write (and Events about it), or one thing to do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ballast.model import MovePhase, MovesPolicy, Pin
from ballast.moves.facts import Facts
from ballast.moves.state import MoveState

# What a move may do to the cluster; nothing else. Each effect is guarded so that doing it twice, or on facts that are
# out of date, changes nothing: by uid, and all except the eviction by the resourceVersion at which the pod was last
# seen in the state that the effect is for.


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict the executor through the Eviction API, with `uid` as a precondition."""

    pod: str
    uid: str


@dataclass(frozen=True, slots=True)
class PinReplacement:
    """Remove Ballast's gate and require `node`, down to the level of `pin`, in one patch; only if gated."""

    pod: str
    uid: str
    node: str
    pin: Pin


@dataclass(frozen=True, slots=True)
class ReleaseUnpinned:
    """Remove Ballast's gate from the replacement and require nothing; only if gated."""

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


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that one step depends on."""

    move: MoveState
    facts: Facts
    settings: MovesPolicy
    now: float


@dataclass(frozen=True, slots=True)
class Step:
    """Write `move` if `changed`, guarded by the resourceVersion that it was read with; then do the actions.

    A changed step's actions are Events only; an unchanged step has at most one effect. So what is about to be done
    is always on record before it is done, and a crash anywhere is made good by looking again.
    """

    move: MoveState
    before: MoveState
    actions: tuple[Action, ...] = ()
    wake_at: float | None = None
    """When to decide again if no change was reported."""

    @property
    def changed(self) -> bool:
        return self.move != self.before

    @property
    def entered(self) -> bool:
        """Whether the move enters another phase by this step."""
        return self.move.phase is not self.before.phase

    @property
    def look_again(self) -> bool:
        """The next step must not be decided from the same facts: they may be older than what was just written."""
        return self.move.withdrawn and not self.before.withdrawn

    @property
    def effect(self) -> Effect | None:
        return next((action for action in self.actions if not isinstance(action, Emit)), None)


_WARNINGS = frozenset({MovePhase.FAILED, MovePhase.REFUSED, MovePhase.EXPIRED})


def wait(at: Situation, until: float | None = None) -> Step:
    return Step(at.move, at.move, wake_at=until)


def do(at: Situation, effect: Effect, *, until: float | None = None) -> Step:
    return Step(at.move, at.move, (effect,), until)


def note(at: Situation, reason: str, message: str, **changes: Any) -> Step:
    """Stay in the phase, with another reason or message."""
    return Step(replace(at.move, reason=reason, message=message, **changes), at.move, wake_at=at.now)


def announce(at: Situation, reason: str, message: str, **changes: Any) -> Step:
    """A note that is worth an Event."""
    step = note(at, reason, message, **changes)
    return replace(step, actions=(_event(step.move, warning=True),))


def enter(at: Situation, phase: MovePhase, reason: str, message: str, **changes: Any) -> Step:
    """Enter another phase; each transition is an Event."""
    timings = changes.pop("timings", at.move.timings)
    if phase.ended:
        timings = replace(timings, ended_at=at.now)
    after = replace(at.move, phase=phase, reason=reason, message=message, timings=timings, **changes)
    return Step(after, at.move, (_event(after, warning=phase in _WARNINGS),), None if phase.ended else at.now)


def _event(move: MoveState, *, warning: bool) -> Emit:
    claim = move.replacement
    pod, uid = (claim.pod, claim.uid) if claim else (move.orders.executor_name, move.orders.executor_uid)
    return Emit(reason=move.reason, message=f"{move.phase}: {move.message}", warning=warning, pod=pod, pod_uid=uid)
