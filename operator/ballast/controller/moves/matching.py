"""Which new executor replaces which of those that left.

Spark gives a replacement a new name and id and says nothing about what it replaces, so it is told by application,
resource profile and time. Moves of one application that wait at once are served in the order in which they began
to leave, by newcomers in the order in which they were created; whoever computes it gets the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from ballast.controller.moves.facts import Facts, Pod, Rival
from ballast.controller.moves.state import MoveState

CLOCK_SKEW_SECONDS = 5.0
"""How far the API server's clock, which stamps pods, may lag behind ours."""


def replacement_of(move: MoveState, facts: Facts) -> Pod | None:
    """The newcomer that `move` shall claim, or None while none is there for it."""
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
