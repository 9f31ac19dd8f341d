"""Facts about one move, from what a pass has read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ballast.controller.moves.facts import Clearance, Facts, Pod, Rival
from ballast.controller.moves.matching import assign
from ballast.controller.moves.state import MoveState
from ballast.model import Executor, Move, MovePhase, Phase


@dataclass(frozen=True, slots=True)
class Departure:
    """What is known of an executor on its way out, beyond its phase."""

    deadline: float | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Measurements:
    """Fresh figures only."""

    scores: Mapping[str, float] = field(default_factory=dict)
    slowness: Mapping[str, float] = field(default_factory=dict)
    batch_p95_seconds: float | None = None


def survey(
    move: MoveState,
    executors: Iterable[Executor],
    moves: Iterable[MoveState],
    *,
    clearance: Clearance,
    measured: Measurements,
    expected_executors: int | None = None,
    application_ended: bool = False,
    departure: Departure | None = None,
    eviction_refused: str = "",
    pin_refused: str = "",
) -> Facts:
    """`executors` and `moves`: all there are, those of `move` included; `moves` and `move` from one list."""
    known = list(executors)
    own = next((e for e in known if e.uid == move.orders.executor_uid), None)
    application = own.application if own else move.subject.application
    profile = own.resource_profile if own else move.subject.resource_profile
    namespace = move.orders.namespace
    return Facts(
        executor=pod_of(own, departure) if own else None,
        newcomers=tuple(
            pod_of(e)
            for e in known
            if e is not own
            and e.namespace == namespace
            and e.application == application
            and e.resource_profile == profile
        ),
        rivals=rivals_of(move, moves, application=application, resource_profile=profile),
        clearance=clearance,
        expected_executors=expected_executors,
        application_ended=application_ended,
        scores=measured.scores,
        slowness=measured.slowness,
        batch_p95_seconds=measured.batch_p95_seconds,
        eviction_refused=eviction_refused,
        pin_refused=pin_refused,
    )


def pod_of(executor: Executor, departure: Departure | None = None) -> Pod:
    pod = Pod(
        uid=executor.uid,
        name=executor.name,
        phase=executor.phase,
        created_at=executor.created_at,
        application=executor.application,
        resource_profile=executor.resource_profile,
        executor_id=executor.executor_id,
        node=executor.node,
        gate_since=executor.last_gate_since,
        unschedulable_since=executor.unschedulable_since,
        running_since=executor.running_since,
        pinned=executor.pinned,
    )
    return replace(pod, deadline=departure.deadline, exit_code=departure.exit_code) if departure else pod


def rivals_of(
    move: MoveState, moves: Iterable[MoveState], *, application: str, resource_profile: str
) -> tuple[Rival, ...]:
    found = (
        Rival.of(other)
        for other in moves
        if other.orders.key != move.orders.key
        and other.orders.namespace == move.orders.namespace
        and other.subject.application == application
        and other.subject.resource_profile == resource_profile
    )
    return tuple(rival for rival in found if rival is not None)


def counted_against(move: Move, moves: Iterable[Move]) -> tuple[Move, ...]:
    """The other moves that the arbiter's second look counts: those that went ahead of `move`.

    Of moves that are merely approved, the one approved first goes first; so of two that exclude each other exactly
    one leaves. A proposal has not begun and is in nobody's way.
    """
    return tuple(other for other in moves if not _same(move, other) and _ahead(other, move))


def _same(move: Move, other: Move) -> bool:
    return (move.namespace, move.name) == (other.namespace, other.name)


def _ahead(other: Move, move: Move) -> bool:
    if other.phase is MovePhase.PROPOSED:
        return False
    if other.phase is not MovePhase.APPROVED:
        return True
    if move.phase is not MovePhase.APPROVED:
        return False
    return (other.started_at, other.namespace, other.name) < (move.started_at, move.namespace, move.name)


def reserved(moves: Sequence[MoveState], executors: Sequence[Executor]) -> frozenset[str]:
    """Uids of executors whose placing is a move's business: its replacement, or a gated pod that it will claim.

    The planner leaves them alone.
    """
    known = [move for move in moves if not move.phase.ended]
    present = {e.uid for e in executors if e.phase is not Phase.ENDED}
    claimed = {move.replacement.uid for move in known if move.replacement is not None}
    free = [e for e in executors if e.phase is Phase.GATED and e.uid not in claimed]
    waiting = [move for move in known if _lacks_executor(move, present)]
    for subject in sorted({(m.orders.namespace, m.subject.application, m.subject.resource_profile) for m in waiting}):
        claimed |= _coming(subject, waiting, free)
    return frozenset(claimed)


def _lacks_executor(move: MoveState, present: set[str]) -> bool:
    rival = Rival.of(move)
    return rival is not None and rival.waiting and move.orders.executor_uid not in present


def _coming(subject: tuple[str, str, str], waiting: Iterable[MoveState], free: Iterable[Executor]) -> set[str]:
    rivals = [
        rival
        for move in waiting
        if (move.orders.namespace, move.subject.application, move.subject.resource_profile) == subject
        and (rival := Rival.of(move)) is not None
    ]
    pods = [pod_of(e) for e in free if (e.namespace, e.application, e.resource_profile) == subject]
    return {pod.uid for pod in assign(rivals, pods).values()}
