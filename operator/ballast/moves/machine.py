"""The state machine of one move.

    Proposed → Approved → Leaving → Arriving → Settling → Succeeded | Failed
        │          │          └ Refused, Failed  └ Succeeded, Failed
        └──────────┴ Expired, Refused

Level-triggered: every step is decided from what is there, never from what happened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ballast.model import MovePhase, MovesPolicy, Phase, Reason, Refusal
from ballast.model.reason import PASSING
from ballast.moves.arriving import arriving
from ballast.moves.judgment import settling
from ballast.moves.state import MoveMetrics, MoveReason, MoveState, Subject
from ballast.moves.step import Evict, Facts, Pod, Situation, Step, do, enter, note, wait

PATIENCE_SECONDS = 60.0
"""A policy may be created after its moves, or be replaced by another."""
ABANDONED_SECONDS = 24 * 3600.0
"""After which no policy is expected to come back for a move that has begun."""


def advance(move: MoveState, facts: Facts, settings: MovesPolicy, now: float) -> Step:
    """The next step of `move`; `now` in seconds since the epoch. An ended move stays as it is."""
    at = Situation(move, facts, settings, now)
    handle = _PHASES.get(move.phase)
    return handle(at) if handle else wait(at)


def turned_away(move: MoveState, now: float) -> Step | None:
    """End an orphaned move (its policy is gone) that has waited long enough for another one.

    One that has begun waits longer: it is what a policy that comes back counts, and finishes.
    """
    at, source = Situation(move, Facts(None), MovesPolicy(), now), move.orders.source
    gone = f"{source} is in no BalancingPolicy's pool"
    if move.phase in (MovePhase.PROPOSED, MovePhase.APPROVED):
        if now - move.orders.created_at < PATIENCE_SECONDS:
            return None
        remedy = "delete this move, and create one with from set to the node that the executor is on"
        return enter(at, MovePhase.REFUSED, MoveReason.NO_POLICY, f"{gone}: {remedy}")
    began = move.timings.leaving_at
    if now - (move.orders.created_at if began is None else began) < ABANDONED_SECONDS:
        return None
    remedy = f"see whether {move.orders.executor_name} has left, and was replaced"
    return enter(at, MovePhase.FAILED, MoveReason.NO_POLICY, f"{gone}, and nothing finished this move: {remedy}")


# Until the executor has gone: the move waits for approval, is revalidated, and evicts the executor once, or ends.

_BUDGET_HINT = (
    "a PodDisruptionBudget lets executors go only if it has an integer minAvailable, for Kubernetes can't count a "
    "percentage or maxUnavailable of pods that a driver owns"
)
KILL_MARGIN_SECONDS = 10.0
"""From the end of a pod's grace period until its kubelet has surely reported it gone."""
_MOST_LEAVE_TIMEOUTS = 5
"""Times moves.leaveTimeout: how long a pod may take to leave if its own grace period is that long."""


def proposed(at: Situation) -> Step:
    orders = at.move.orders
    expires = orders.created_at + at.settings.approval_timeout_seconds
    refusal = at.facts.stranger or at.facts.revalidation.refusal
    if refusal is not None:
        return _object(at, refusal)
    if at.facts.executor is None or not at.facts.executor.present:
        return _vanished(at)
    if orders.approved:
        timings = replace(at.move.timings, approved_at=at.now)
        message = f"{orders.executor_name} is to go from {orders.source} to {orders.target}{_cause(at)}"
        return enter(at, MovePhase.APPROVED, MoveReason.CLEARED, message, timings=timings)
    if at.now >= expires:
        message = f"not approved within {at.settings.approval_timeout_seconds:.0f} s"
        return enter(at, MovePhase.EXPIRED, MoveReason.APPROVAL_TIMEOUT, message)
    if not at.move.reason:
        way = f"{orders.executor_name} would go from {orders.source} to {orders.target}"
        message = f"{way}{_cause(at)}; set spec.approved: true"
        return enter(at, MovePhase.PROPOSED, MoveReason.AWAITING_APPROVAL, message)
    return wait(at, expires)


def approved(at: Situation) -> Step:
    """The move is revalidated right before the executor leaves."""
    pod = at.facts.executor
    if at.facts.stranger is not None:
        return _object(at, at.facts.stranger)
    if pod is None or not pod.present:
        return _vanished(at)
    refusal = forbidden(at) or at.facts.revalidation.refusal
    target = at.facts.revalidation.destination or at.move.destination
    if refusal is None and target == at.move.orders.source:
        refusal = Refusal(pod.name, Reason.NO_DESTINATION, f"only {target} is left, where it is already")
    if refusal is not None:
        return _object(at, refusal)
    return _leave(at, pod, target)


def _cause(at: Situation) -> str:
    """What to add to a sentence about a move off a node that is about to go."""
    taint = at.move.orders.taint
    return f", since {at.move.orders.source} is about to go ({taint})" if taint else ""


def _vanished(at: Situation) -> Step:
    message = f"{at.move.orders.executor_name} went by itself; nothing was evicted"
    return enter(at, MovePhase.EXPIRED, MoveReason.EXECUTOR_GONE, message)


def forbidden(at: Situation) -> Refusal | None:
    """What forbids the move whatever its scores and budgets: another pod than the orders name, moves switched off."""
    if at.facts.stranger is not None:
        return at.facts.stranger
    name = at.move.orders.executor_name
    if not at.settings.mode.acts:
        return Refusal(
            name, Reason.MOVES_DISABLED, f"the policy's moves.mode is {at.settings.mode}; set Approve or Enforce"
        )
    return None


def _object(at: Situation, refusal: Refusal) -> Step:
    until = (at.move.timings.approved_at or at.now) + at.settings.leave_timeout_seconds
    if refusal.reason not in PASSING or at.now >= until:
        return enter(at, MovePhase.REFUSED, refusal.reason, refusal.detail)
    if at.move.reason != refusal.reason:
        return note(at, refusal.reason, refusal.detail)
    return wait(at, until)


def _leave(at: Situation, pod: Pod, target: str) -> Step:
    orders = at.move.orders
    instead = "" if target == orders.target else f" (instead of {orders.target})"
    return enter(
        at,
        MovePhase.LEAVING,
        MoveReason.EVICTING,
        f"{pod.name} leaves {orders.source} for {target}{instead}{_cause(at)}",
        target=target,
        before=_metrics(at, pod, target),
        subject=Subject(pod.application, pod.resource_profile, pod.executor_id, pod.requests),
        timings=replace(at.move.timings, leaving_at=at.now),
    )


def _metrics(at: Situation, pod: Pod, target: str) -> MoveMetrics:
    return MoveMetrics(
        hot_score=at.facts.scores.get(at.move.orders.source),
        cold_score=at.facts.scores.get(target),
        slowness=at.facts.slowness.get(pod.uid),
        batch_p50_seconds=at.facts.batch_p50_seconds,
        batch_p95_seconds=at.facts.batch_p95_seconds,
    )


def leaving(at: Situation) -> Step:
    pod = at.facts.executor
    if pod is None or pod.phase is Phase.ENDED:
        return _arrive(at, pod)
    if pod.phase is Phase.LEAVING:
        return _terminating(at, pod)
    if at.move.reason == MoveReason.TERMINATING:  # what was seen before can't be undone: these facts are older
        return wait(at, _since(at) + at.settings.leave_timeout_seconds)
    if at.move.withdrawn:
        return enter(at, MovePhase.REFUSED, at.move.reason, at.move.message)
    return _ask(at, pod)


def _since(at: Situation) -> float:
    started = at.move.timings.leaving_at
    return at.now if started is None else started


def _arrive(at: Situation, pod: Pod | None) -> Step:
    took = at.now - _since(at)
    ending = f" with exit code {pod.exit_code}" if pod and pod.exit_code is not None else ""
    return enter(
        at,
        MovePhase.ARRIVING,
        MoveReason.AWAITING_REPLACEMENT,
        f"{at.move.orders.executor_name} left {at.move.orders.source} within {took:.1f} s{ending}",
        withdrawn=False,
        timings=replace(at.move.timings, arriving_at=at.now),
    )


def _terminating(at: Situation, pod: Pod) -> Step:
    """Its own grace period counts if that is longer than the policy's leaveTimeout, up to a limit.

    A pod's author sets it. While it lasts, the move is one of those that may be under way at once, and room and load at
    its destination are reserved.
    """
    until = _since(at) + at.settings.leave_timeout_seconds
    if pod.deadline is not None:
        longest = _since(at) + _MOST_LEAVE_TIMEOUTS * at.settings.leave_timeout_seconds
        until = max(until, min(pod.deadline + KILL_MARGIN_SECONDS, longest))
    if at.now >= until:
        message = f"{pod.name} is being deleted since {at.now - _since(at):.0f} s and has not gone"
        return enter(at, MovePhase.FAILED, MoveReason.LEAVE_TIMEOUT, message, withdrawn=False)
    if at.move.reason != MoveReason.TERMINATING:
        return note(at, MoveReason.TERMINATING, f"{pod.name} is finishing its tasks", withdrawn=False)
    return wait(at, until)


def _ask(at: Situation, pod: Pod) -> Step:
    until = _since(at) + at.settings.leave_timeout_seconds
    refusal = forbidden(at) or at.facts.revalidation.refusal
    blocked, failed = at.facts.eviction_refused, at.facts.eviction_failed
    if at.now >= until:
        return _give_up(at, blocked, failed)
    if refusal is not None and refusal.reason not in PASSING:
        return _withdraw(at, refusal.reason, refusal.detail)
    if blocked and at.move.reason != Reason.DISRUPTION_BUDGET:
        words = f"the eviction of {pod.name} was refused: {blocked}; {_BUDGET_HINT}"
        return note(at, Reason.DISRUPTION_BUDGET, words)
    if failed and at.move.reason != MoveReason.NOT_EVICTED:
        return note(at, MoveReason.NOT_EVICTED, f"the eviction of {pod.name} failed: {failed}")
    if refusal is not None:
        return wait(at, until)
    # The move's own name and uid, not those of the pod that was seen: so the API server compares them once more.
    return do(at, Evict(at.move.orders.executor_name, at.move.orders.executor_uid), until=until)


def _give_up(at: Situation, blocked: str, failed: str) -> Step:
    """If this process got no answer, the move's reason holds the last answer to an earlier one."""
    waited = f"not evicted within {at.settings.leave_timeout_seconds:.0f} s"
    if blocked:
        return _withdraw(at, Reason.DISRUPTION_BUDGET, f"{waited}: {blocked}; {_BUDGET_HINT}")
    if failed:
        return _withdraw(at, MoveReason.NOT_EVICTED, f"{waited}: {failed}")
    if at.move.reason in (Reason.DISRUPTION_BUDGET, MoveReason.NOT_EVICTED):
        return _withdraw(at, at.move.reason, f"{waited}: {at.move.message}")
    return _withdraw(at, MoveReason.NOT_EVICTED, waited)


def _withdraw(at: Situation, reason: str, message: str) -> Step:
    """An eviction that was sent may have taken effect unseen: so first no more are sent, then one more look."""
    return note(at, reason, message, withdrawn=True)


_PHASES: dict[MovePhase, Callable[[Situation], Step]] = {
    MovePhase.PROPOSED: proposed,
    MovePhase.APPROVED: approved,
    MovePhase.LEAVING: leaving,
    MovePhase.ARRIVING: arriving,
    MovePhase.SETTLING: settling,
}
