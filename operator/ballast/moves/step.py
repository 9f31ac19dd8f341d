"""One step of a move: what the cluster shows, and what follows: a status to write, or one thing to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ballast.model import MovePhase, MovesPolicy, Phase, Pin, Refusal, Resources
from ballast.moves.state import MoveState


@dataclass(frozen=True, slots=True)
class Pod:
    """An executor's pod."""

    uid: str
    name: str
    phase: Phase
    created_at: float
    application: str = ""
    resource_profile: str = ""
    executor_id: str = ""
    requests: Resources | None = None
    node: str | None = None
    gate_since: float | None = None
    """Since when Ballast's gate is its last one; None if it has other gates too, or none."""
    unschedulable_since: float | None = None
    running_since: float | None = None
    pinned: bool = False
    """Carries node affinity that Ballast added."""
    nominated: bool = False
    """Ballast has nominated it to a node, and it is not bound yet."""
    deadline: float | None = None
    """Once it is being deleted: when its grace period is over."""
    exit_code: int | None = None

    @property
    def present(self) -> bool:
        """Neither ended nor on its way out."""
        return self.phase not in (Phase.LEAVING, Phase.ENDED)


@dataclass(frozen=True, slots=True)
class Rival:
    """Another move of the same application and resource profile."""

    key: str
    leaving_at: float
    waiting: bool
    """Its executor was asked to go and it has no replacement yet."""
    replacement_uid: str | None = None
    claimed_at: float | None = None
    settled: bool = False
    """Its claim is final."""

    @classmethod
    def of(cls, move: MoveState) -> Rival | None:
        """None for a move that has not begun to leave: it neither waits nor claims."""
        if move.timings.leaving_at is None:
            return None
        claim = move.replacement
        return cls(
            key=move.orders.key,
            leaving_at=move.timings.leaving_at,
            waiting=claim is None and move.phase in (MovePhase.LEAVING, MovePhase.ARRIVING),
            replacement_uid=claim.uid if claim else None,
            claimed_at=claim.claimed_at if claim else None,
            settled=move.phase is MovePhase.SETTLING or move.phase.ended,
        )


@dataclass(frozen=True, slots=True)
class Revalidation:
    """The move checked again. Up to Leaving it is about the move; while Arriving, about the replacement.

    `refusal`: why not. `destination`: where to, if no longer to the move's present destination.
    """

    refusal: Refusal | None = None
    destination: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    executor: Pod | None
    """The pod with the uid of the orders; None when there is none."""
    newcomers: tuple[Pod, ...] = ()
    """The other executors of the same application and resource profile."""
    rivals: tuple[Rival, ...] = ()
    """The other moves of the same application and resource profile, ended ones within their ttl included."""
    revalidation: Revalidation = field(default_factory=Revalidation)
    expected_executors: int | None = None
    """How many executors the component should have, if declared."""
    application_ended: bool = False
    scores: Mapping[str, float] = field(default_factory=dict)
    """Measured score by node; only fresh ones."""
    slowness: Mapping[str, float] = field(default_factory=dict)
    """By executor uid; only fresh ones."""
    batch_p50_seconds: float | None = None
    batch_p95_seconds: float | None = None
    eviction_refused: str = ""
    """Why a disruption budget last refused this eviction (429), as far as this process knows."""
    eviction_failed: str = ""
    """Why the API server last refused it otherwise, such as for a missing right."""
    pin_refused: str = ""
    """Why the API server refused for good to pin the present replacement (422)."""
    stranger: Refusal | None = None
    """Why the pod with the uid of the orders is never moved: it is no executor, or has another name or namespace."""

    def newcomer(self, uid: str) -> Pod | None:
        return next((pod for pod in self.newcomers if pod.uid == uid), None)

    @property
    def live_executors(self) -> int:
        return sum(pod.present for pod in self.newcomers)


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
    """Nominate the pod to `node`, then remove Ballast's gate, require `node` down to the level of `pin`, and prefer it
    beyond, in one patch; only if gated. Where the nomination is refused, the pod is released without it.
    """

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
class ClearNomination:
    """Remove Ballast's nomination from a replacement that is bound to no node."""

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


Effect = Evict | PinReplacement | ReleaseUnpinned | ClearNomination | DeleteUnscheduled
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
