"""What the cluster shows about one move at one moment.

List the ExecutorMoves first and the pods afterwards, so that whatever a move's state says was
done is seen in the pods, and no clock is needed to know it. Several steps may be decided from one such look, until a
step asks for a new one (`Step.look_again`); but the revalidation and the rivals must count every status written so far.
Facts may otherwise be out of date.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ballast.model import MovePhase, Phase, Refusal
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
    node: str | None = None
    gate_since: float | None = None
    """Since when Ballast's gate is its last one; None if it has other gates too, or none."""
    unschedulable_since: float | None = None
    running_since: float | None = None
    pinned: bool = False
    """Carries node affinity that Ballast added."""
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
