"""From the executor's end until its replacement runs: recognize it, place it, and never leave it stuck.

Spark gives a replacement a new name and id and does not report what it replaces, so it is recognized by application,
resource profile and time. Moves of one application that wait at once are served in the order in which they began
to leave, by newcomers in the order in which they were created; every process that computes it gets the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ballast.model import MovePhase, Phase, Pin
from ballast.moves.state import MoveMetrics, MoveReason, MoveState, Replacement, elsewhere
from ballast.moves.step import (
    ClearNomination,
    DeleteUnscheduled,
    Facts,
    PinReplacement,
    Pod,
    ReleaseUnpinned,
    Rival,
    Situation,
    Step,
    announce,
    do,
    enter,
    note,
    wait,
)

MAX_ATTEMPTS = 3
"""Replacements deleted because their pin could not be met; the place of the next one is preferred."""
UNSCHEDULABLE_SECONDS = 15.0
"""How long a pinned pod may stay unschedulable: kube-scheduler retries within seconds when a node gets room."""
NOMINATED_SECONDS = 5.0
"""How long an unschedulable pod stays nominated: Karpenter provides no node for a pod that is nominated."""
PIN_SECONDS = 10.0
"""How long a replacement may wait at Ballast's gate for its pin: as long as any pod, by default."""
CLOCK_SKEW_SECONDS = 5.0
"""How far the API server's clock, which stamps pods, may lag behind ours."""


def arriving(at: Situation) -> Step:
    claim = at.move.replacement
    if at.facts.application_ended:
        return enter(
            at, MovePhase.SUCCEEDED, MoveReason.APPLICATION_ENDED, "the application ended before a replacement ran"
        )
    if claim is None:
        return _recognize(at)
    rival = outclaimed(at.move, at.facts)
    if rival is not None:
        return _let_go(at, f"{claim.pod} replaces the executor of {rival.key}")
    pod = at.facts.newcomer(claim.uid)
    if pod is None or pod.phase is Phase.ENDED:
        return _let_go(at, f"{claim.pod} is gone before it ran")
    return _accompany(at, pod, claim)


def _deadline(at: Situation) -> float:
    """Every attempt has the policy's arriveTimeout."""
    since = at.move.timings.arriving_at
    return (at.now if since is None else since) + (1 + at.move.attempts) * at.settings.arrive_timeout_seconds


def _recognize(at: Situation) -> Step:
    pod = replacement_of(at.move, at.facts)
    if pod is not None:
        claim = Replacement(uid=pod.uid, pod=pod.name, claimed_at=at.now)
        message = f"{pod.name} replaces {at.move.orders.executor_name}"
        return note(
            at, MoveReason.PLACING if pod.phase is Phase.GATED else MoveReason.STARTING, message, replacement=claim
        )
    if at.now < _deadline(at):
        return wait(at, _deadline(at))
    live, expected = at.facts.live_executors, at.facts.expected_executors
    waited = f"no replacement within {at.now - (at.move.timings.arriving_at or at.now):.0f} s"
    if expected is not None and live < expected:
        message = f"{waited}; {live} of {expected} executors are there"
        return enter(at, MovePhase.SUCCEEDED, MoveReason.NO_REPLACEMENT, message)
    return enter(
        at, MovePhase.SUCCEEDED, MoveReason.TARGET_SHRANK, f"{waited}; the application asks for {live} executors"
    )


def _let_go(at: Situation, message: str) -> Step:
    return note(at, MoveReason.AWAITING_REPLACEMENT, message, replacement=None)


def _accompany(at: Situation, pod: Pod, claim: Replacement) -> Step:
    if pod.phase is Phase.RUNNING:
        return _settle(at, pod, claim)
    if pod.phase is Phase.LEAVING:
        return _overdue(at, pod) or wait(at, _deadline(at))
    if pod.phase is Phase.GATED:
        return _place(at, pod, claim)
    return _schedule(at, pod)


def _settle(at: Situation, pod: Pod, claim: Replacement) -> Step:
    where = pod.node or ""
    since = at.now if pod.running_since is None else pod.running_since
    arrived = replace(claim, node=where, pinned=pod.pinned)
    arrived = replace(arrived, displaced=_displaced(at, arrived))
    timings = replace(at.move.timings, settling_at=since)
    before = at.move.before if where == at.move.destination else _before_on(at, where)
    return enter(
        at,
        MovePhase.SETTLING,
        MoveReason.MEASURING,
        f"{pod.name} runs on {where}{elsewhere(at.move, arrived)}; judged after {at.settings.settle_seconds:.0f} s",
        replacement=arrived,
        timings=timings,
        before=before,
    )


def _before_on(at: Situation, node: str) -> MoveMetrics:
    """What the move is judged by if its replacement runs on this node."""
    return replace(at.move.before, cold_score=at.facts.scores.get(node))


def _displaced(at: Situation, arrived: Replacement) -> bool:
    """It was sent to the destination, is somewhere else, and finds no room there any more."""
    taken = at.facts.revalidation.destination is not None or at.facts.revalidation.refusal is not None
    return arrived.pinned and arrived.node != at.move.destination and taken


def _overdue(at: Situation, pod: Pod) -> Step | None:
    if at.now < _deadline(at):
        return None
    message = f"{pod.name} is {pod.phase} and has not run within {at.settings.arrive_timeout_seconds:.0f} s"
    return enter(at, MovePhase.FAILED, MoveReason.REPLACEMENT_NOT_RUNNING, message)


def _place(at: Situation, pod: Pod, claim: Replacement) -> Step:
    """While another controller gates it too, nothing is decided. Once it is overdue, it is released like any other: a
    driver may delete each replacement that is released, and create another one.
    """
    overdue = _overdue(at, pod)
    if overdue or pod.gate_since is None:
        return overdue or wait(at, _deadline(at))
    held_until = max(pod.gate_since, claim.claimed_at or pod.gate_since) + PIN_SECONDS
    revalidation = at.facts.revalidation
    unpinned = revalidation.refusal is not None or at.facts.pin_refused
    if unpinned or at.now >= held_until:
        return do(at, ReleaseUnpinned(pod.name, pod.uid))
    node = revalidation.destination or at.move.destination
    if node != at.move.destination:
        message = f"{pod.name} goes to {node}: {at.move.destination} has no room left"
        return announce(at, MoveReason.PLACING, message, target=node, before=_before_on(at, node))
    pin = Pin.NONE if at.move.attempts >= MAX_ATTEMPTS else at.settings.pin
    return do(at, PinReplacement(pod.name, pod.uid, node, pin), until=held_until)


def _schedule(at: Situation, pod: Pod) -> Step:
    """Ballast's gate is off: the pod is bound or not, pinned or not."""
    if pod.node is not None:
        return _started(at, pod)
    if at.move.reason == MoveReason.DISCARDING:
        return _overdue(at, pod) or do(at, DeleteUnscheduled(pod.name, pod.uid))
    if not pod.pinned or pod.unschedulable_since is None:
        return _overdue(at, pod) or _started(at, pod)
    patience = min(UNSCHEDULABLE_SECONDS, at.settings.arrive_timeout_seconds)
    until = min(pod.unschedulable_since + patience, _deadline(at))
    if at.move.attempts >= MAX_ATTEMPTS:
        return _overdue(at, pod) or _await(at, pod, _deadline(at))
    if at.now < until:
        return _await(at, pod, until)
    message = f"{pod.name} can't be scheduled to {at.move.destination}; it is deleted and placed again"
    return announce(at, MoveReason.DISCARDING, message, attempts=at.move.attempts + 1)


def _started(at: Situation, pod: Pod) -> Step:
    overdue = _overdue(at, pod)
    if overdue:
        return overdue
    if at.move.reason != MoveReason.STARTING:
        return note(at, MoveReason.STARTING, f"{pod.name} is on its way to {pod.node or at.move.destination}")
    return _await(at, pod, _deadline(at))


def _await(at: Situation, pod: Pod, until: float) -> Step:
    """kube-scheduler removes most nominations that failed, but not those of pods that may preempt none."""
    if not pod.nominated or pod.unschedulable_since is None:
        return wait(at, until)
    clear_at = pod.unschedulable_since + NOMINATED_SECONDS
    if at.now < clear_at:
        return wait(at, min(until, clear_at))
    return do(at, ClearNomination(pod.name, pod.uid), until=until)


def replacement_of(move: MoveState, facts: Facts) -> Pod | None:
    """The new pod that `move` is to claim, or None while none is there for it."""
    own = Rival.of(move)
    if own is None:
        return None
    waiting = [*(rival for rival in facts.rivals if rival.waiting and rival.key != own.key), own]
    claimed = {rival.replacement_uid for rival in facts.rivals if rival.key != own.key}
    free = [pod for pod in facts.newcomers if pod.present and pod.uid not in claimed and _later(pod, move)]
    return assign(waiting, free).get(own.key)


def assign(waiting: Iterable[Rival], free: Iterable[Pod]) -> dict[str, Pod]:
    """Pod by key of the waiting move. A move takes no pod that was created before it began to leave."""
    left = sorted(free, key=_order)
    found: dict[str, Pod] = {}
    for rival in sorted(waiting, key=lambda rival: (rival.leaving_at, rival.key)):
        pod = next((pod for pod in left if pod.created_at >= rival.leaving_at - CLOCK_SKEW_SECONDS), None)
        if pod is not None:
            left.remove(pod)
            found[rival.key] = pod
    return found


def outclaimed(move: MoveState, facts: Facts) -> Rival | None:
    """The rival whose claim to the same replacement is better, if any."""
    claim = move.replacement
    if claim is None:
        return None
    mine = (_time(claim.claimed_at, move.timings.leaving_at or 0.0), move.orders.key)
    for rival in facts.rivals:
        if rival.key == move.orders.key or rival.replacement_uid != claim.uid:
            continue
        if rival.settled or (_time(rival.claimed_at, rival.leaving_at), rival.key) < mine:
            return rival
    return None


def _time(claimed_at: float | None, leaving_at: float) -> float:
    return leaving_at if claimed_at is None else claimed_at


def _order(pod: Pod) -> tuple[float, int, str]:
    return (pod.created_at, _number(pod.executor_id), pod.uid)


def _later(pod: Pod, move: MoveState) -> bool:
    """Spark counts executors upwards; an id that is no number says nothing."""
    left, new = _number(move.subject.executor_id), _number(pod.executor_id)
    return new < 0 or new > left


def _number(executor_id: str) -> int:
    return int(executor_id) if executor_id.isascii() and executor_id.isdigit() else -1
