"""While the executor is asked to go: it is evicted once, or it stays untouched and the move ends."""

from __future__ import annotations

from dataclasses import replace

from ballast.controller.moves.action import Evict
from ballast.controller.moves.facts import Pod
from ballast.controller.moves.standing import PASSING, forbidden
from ballast.controller.moves.step import Situation, Step, do, enter, note, wait
from ballast.controller.moves.word import Word
from ballast.model import MovePhase, Phase, Reason

_BUDGET_HINT = (
    "a PodDisruptionBudget lets executors go only if it has an integer minAvailable, for Kubernetes can't count a "
    "percentage or maxUnavailable of pods that a driver owns"
)
KILL_MARGIN_SECONDS = 10.0
"""From the end of a pod's grace period until its kubelet has surely reported it gone."""


def leaving(at: Situation) -> Step:
    pod = at.facts.executor
    if pod is None or pod.phase is Phase.ENDED:
        return _arrive(at, pod)
    if pod.phase is Phase.LEAVING:
        return _terminating(at, pod)
    if at.move.reason == Word.TERMINATING:  # what was seen before can't be undone: these facts are older
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
        Word.AWAITING_REPLACEMENT,
        f"{at.move.orders.executor_name} left {at.move.orders.source} within {took:.1f} s{ending}",
        withdrawn=False,
        timings=replace(at.move.timings, arriving_at=at.now),
    )


def _terminating(at: Situation, pod: Pod) -> Step:
    """Its own grace period counts if that is longer than the policy's leaveTimeout."""
    until = _since(at) + at.settings.leave_timeout_seconds
    if pod.deadline is not None:
        until = max(until, pod.deadline + KILL_MARGIN_SECONDS)
    if at.now >= until:
        message = f"{pod.name} is being deleted since {at.now - _since(at):.0f} s and has not gone"
        return enter(at, MovePhase.FAILED, Word.LEAVE_TIMEOUT, message, withdrawn=False)
    if at.move.reason != Word.TERMINATING:
        return note(at, Word.TERMINATING, f"{pod.name} is finishing its tasks", withdrawn=False)
    return wait(at, until)


def _ask(at: Situation, pod: Pod) -> Step:
    until = _since(at) + at.settings.leave_timeout_seconds
    refusal = forbidden(at) or at.facts.clearance.refusal
    blocked, failed = at.facts.eviction_refused, at.facts.eviction_failed
    if at.now >= until:
        return _give_up(at, blocked, failed)
    if refusal is not None and refusal.reason not in PASSING:
        return _withdraw(at, refusal.reason, refusal.detail)
    if blocked and at.move.reason != Reason.DISRUPTION_BUDGET:
        words = f"the eviction of {pod.name} was refused: {blocked}; {_BUDGET_HINT}"
        return note(at, Reason.DISRUPTION_BUDGET, words)
    if failed and at.move.reason != Word.NOT_EVICTED:
        return note(at, Word.NOT_EVICTED, f"the eviction of {pod.name} failed: {failed}")
    if refusal is not None:
        return wait(at, until)
    return do(at, Evict(pod.name, pod.uid), until=until)


def _give_up(at: Situation, blocked: str, failed: str) -> Step:
    """Without an answer to this process, what was told to the one before it stands in the move."""
    waited = f"not evicted within {at.settings.leave_timeout_seconds:.0f} s"
    if blocked:
        return _withdraw(at, Reason.DISRUPTION_BUDGET, f"{waited}: {blocked}; {_BUDGET_HINT}")
    if failed:
        return _withdraw(at, Word.NOT_EVICTED, f"{waited}: {failed}")
    if at.move.reason in (Reason.DISRUPTION_BUDGET, Word.NOT_EVICTED):
        return _withdraw(at, at.move.reason, f"{waited}: {at.move.message}")
    return _withdraw(at, Word.NOT_EVICTED, waited)


def _withdraw(at: Situation, reason: str, message: str) -> Step:
    """An eviction that was sent may have taken effect unseen: so first no more are sent, then one more look."""
    return note(at, reason, message, withdrawn=True)
