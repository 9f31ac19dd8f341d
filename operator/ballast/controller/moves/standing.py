"""Before anything is touched: a move waits for approval, and then for the arbiter's second look."""

from __future__ import annotations

from dataclasses import replace

from ballast.controller.moves.facts import Pod
from ballast.controller.moves.state import Figures, Subject
from ballast.controller.moves.step import Situation, Step, enter, note, wait
from ballast.controller.moves.word import Word
from ballast.model import Exit, MovePhase, MovesMode, Reason, Refusal

PASSING = frozenset(
    {
        Reason.NO_METRICS,
        Reason.STALE_METRICS,
        Reason.MAX_CONCURRENT,
        Reason.DISRUPTION_BUDGET,
    }
)
"""Objections that may be gone in a moment: worth waiting for, as long as an executor may take to leave."""


def proposed(at: Situation) -> Step:
    orders = at.move.orders
    expires = orders.created_at + at.settings.approval_timeout_seconds
    if at.facts.executor is None or not at.facts.executor.present:
        return _vanished(at)
    if orders.approved:
        timings = replace(at.move.timings, approved_at=at.now)
        message = f"{orders.executor_name} is to go from {orders.source} to {orders.target}"
        return enter(at, MovePhase.APPROVED, Word.CLEARED, message, timings=timings)
    if at.now >= expires:
        message = f"not approved within {at.settings.approval_timeout_seconds:.0f} s"
        return enter(at, MovePhase.EXPIRED, Word.APPROVAL_TIMEOUT, message)
    if not at.move.reason:
        message = f"{orders.executor_name} would go from {orders.source} to {orders.target}; set spec.approved: true"
        return enter(at, MovePhase.PROPOSED, Word.AWAITING_APPROVAL, message)
    return wait(at, expires)


def approved(at: Situation) -> Step:
    """The arbiter is asked again right before the executor leaves."""
    pod = at.facts.executor
    if pod is None or not pod.present:
        return _vanished(at)
    refusal = forbidden(at) or at.facts.clearance.refusal
    target = at.facts.clearance.destination or at.move.destination
    if refusal is None and target == at.move.orders.source:
        refusal = Refusal(pod.name, Reason.NO_DESTINATION, f"only {target} is left, where it is already")
    if refusal is not None:
        return _object(at, refusal)
    return _leave(at, pod, target)


def _vanished(at: Situation) -> Step:
    stranger = at.facts.stranger
    if stranger is not None:
        return enter(at, MovePhase.REFUSED, stranger.reason, stranger.detail)
    message = f"{at.move.orders.executor_name} went by itself; nothing was evicted"
    return enter(at, MovePhase.EXPIRED, Word.EXECUTOR_GONE, message)


def forbidden(at: Situation) -> Refusal | None:
    """What no arbiter needs to be asked for."""
    name = at.move.orders.executor_name
    if at.settings.mode not in (MovesMode.APPROVE, MovesMode.ENFORCE):
        return Refusal(name, Reason.MOVES_OFF, f"the policy's moves.mode is {at.settings.mode}; set Approve or Enforce")
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
    if orders.exit is Exit.AGENT:
        message = "exit Agent needs the agent in the application's driver, and there is none; create it with exit Evict"
        return enter(at, MovePhase.REFUSED, Reason.NO_AGENT, message)
    instead = "" if target == orders.target else f" (instead of {orders.target})"
    return enter(
        at,
        MovePhase.LEAVING,
        Word.EVICTING,
        f"{pod.name} leaves {orders.source} for {target}{instead}",
        target=target,
        before=_figures(at, pod, target),
        subject=Subject(pod.application, pod.resource_profile, pod.executor_id),
        timings=replace(at.move.timings, leaving_at=at.now),
    )


def _figures(at: Situation, pod: Pod, target: str) -> Figures:
    return Figures(
        hot_score=at.facts.scores.get(at.move.orders.source),
        cold_score=at.facts.scores.get(target),
        slowness=at.facts.slowness.get(pod.uid),
        batch_p95_seconds=at.facts.batch_p95_seconds,
    )
