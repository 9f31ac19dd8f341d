"""What rests because of earlier moves: topologies, nodes, namespaces and single executors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ballast.api.policy_moves import REVERSE_COOLDOWNS
from ballast.model import Move, MovePhase, MovesPolicy, Objection, Reason

ExecutorId = tuple[str, str]
"""Namespace and uid: a move may name any uid, also one of another namespace."""

_MOST_DOUBLINGS = 7
"""Of the cooldown of a namespace in which moves come to nothing: at 10 minutes that is most of a day."""
_LEAST_UNBEGUN = 3
"""Moves of a namespace that come to nothing before they begin, and let all of it rest; as many as may be under way, if
those are more."""
_UNBEGUN = frozenset({MovePhase.REFUSED, MovePhase.EXPIRED})
_NEVER_LEFT = _UNBEGUN | {MovePhase.PROPOSED}


def left(move: Move) -> bool:
    """Whether its executor was, or is about to be, asked to go: only such moves use up a budget."""
    return move.phase not in _NEVER_LEFT and not move.only_asked_for


def resting(moves: Iterable[Move], policy: MovesPolicy, subject: str, now: float, *, most: int = 1) -> Objection | None:
    """Why `subject`, the topology or node of all these moves, rests at `now`: `most` of them began or ended lately."""
    ends = (
        (move.ended_at if move.ended_at is not None else move.started_at) + policy.cooldown_seconds
        for move in moves
        if left(move)
    )
    recent = sorted(until for until in ends if now < until)
    if len(recent) < most:
        return None
    return Reason.COOLDOWN, f"{subject} rests {recent[-most] - now:.0f} s more after a move"


IN_FLIGHT: Objection = (Reason.IN_FLIGHT, "a move of this executor is already under way")
REVERSE: Objection = (Reason.REVERSE, "a move has lately gone the other way between these nodes")


def under_way(moves: Iterable[Move]) -> frozenset[ExecutorId]:
    """The executors whose moves have not ended."""
    return frozenset((move.namespace, move.executor_uid) for move in moves if not move.phase.ended)


def ways(
    moves: Iterable[Move], policy: MovesPolicy, now: float, *, by_hand: bool = False
) -> frozenset[tuple[str, str]]:
    """The nodes, from and to, between which something has moved lately: nothing is to go back.

    `by_hand`: for moves that users ask for. Only for these do such moves count. Drains never do: their node comes back
    empty.
    """
    since = now - REVERSE_COOLDOWNS * policy.cooldown_seconds
    return frozenset(
        (move.source, move.target)
        for move in moves
        if left(move)
        and (by_hand or not move.by_hand)
        and not move.taint
        and (move.ended_at is None or move.ended_at > since)
    )


@dataclass(frozen=True, slots=True)
class Rest:
    paused: frozenset[str]
    """Topologies whose last `pause_after_failures` judged moves all failed or did not help."""
    executors: Mapping[ExecutorId, Objection]
    """Executors whose move was refused or expired lately: why no other is suggested yet."""
    namespaces: Mapping[str, Objection] = field(default_factory=dict)
    """Why no move is suggested in these namespaces yet: lately a move could not be created, or an executor could not be
    evicted; many moves were refused or expired; more came to nothing than succeeded; or enough wait for approval.
    Otherwise their executors, one after the other, would keep those of other namespaces from being moved."""

    def of_executor(self, namespace: str, uid: str) -> Objection | None:
        return self.executors.get((namespace, uid)) or self.namespaces.get(namespace)

    def of_topology(self, key: str) -> Objection | None:
        return (Reason.PAUSED, f"moves of {key} are paused") if key in self.paused else None


def rest(
    moves: Iterable[Move], policy: MovesPolicy, now: float, *, closed_namespaces: Mapping[str, str] | None = None
) -> Rest:
    """`closed_namespaces`: namespaces in which moves could lately not be created, and why."""
    every = tuple(moves)
    known = tuple(move for move in every if not move.taint)
    resting = _awaiting_approval(known, policy) | _often_unbegun(known, policy, now) | hindered(every, policy, now)
    for namespace, why in (closed_namespaces or {}).items():
        resting[namespace] = Reason.COOLDOWN, f"moves in {namespace} rest: {why}"
    return Rest(_paused(known, policy.pause_after_failures), _refused_lately(known, policy, now), resting)


def _paused(moves: Iterable[Move], count: int) -> frozenset[str]:
    if count <= 0:
        return frozenset()
    ended: dict[str, list[Move]] = defaultdict(list)
    for move in moves:
        if move.ended_at is not None and _judged(move):
            ended[move.topology].append(move)
    return frozenset(topology for topology, past in ended.items() if _failing(past, count))


def _judged(move: Move) -> bool:
    """A move without a verdict (Inconclusive, NotJudged) neither adds to a row of failures nor ends it."""
    return left(move) and (move.phase is MovePhase.FAILED or move.helped is not None)


def _failing(past: list[Move], count: int) -> bool:
    last = sorted(past, key=lambda move: (move.ended_at or 0.0, move.name))[-count:]
    return len(last) == count and all(m.phase is MovePhase.FAILED or m.helped is False for m in last)


def _refused_lately(moves: Iterable[Move], policy: MovesPolicy, now: float) -> dict[ExecutorId, Objection]:
    found: dict[ExecutorId, Objection] = {}
    for move, left_seconds in _unbegun(moves, policy, now):
        words = f"its move {move.name} was {move.phase.lower()}; it rests {left_seconds:.0f} s more"
        found[move.namespace, move.executor_uid] = (Reason.COOLDOWN, words)
    return found


def _awaiting_approval(moves: Iterable[Move], policy: MovesPolicy) -> dict[str, Objection]:
    waiting = Counter(move.namespace for move in moves if move.unapproved and not move.by_hand and not move.elsewhere)
    return {
        namespace: (Reason.MAX_CONCURRENT, f"{count} moves in {namespace} wait for approval")
        for namespace, count in waiting.items()
        if count >= policy.max_concurrent
    }


def _often_unbegun(moves: Iterable[Move], policy: MovesPolicy, now: float) -> dict[str, Objection]:
    """A user may delete each executor whose move is created, or opt it out, and create another one."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for move, left_seconds in _unbegun(moves, policy, now):
        if not (move.by_hand or move.elsewhere):
            seconds[move.namespace].append(left_seconds)
    most = max(_LEAST_UNBEGUN, policy.max_concurrent)
    found: dict[str, Objection] = {}
    for namespace, left_seconds_each in seconds.items():
        if len(left_seconds_each) >= most:
            until = sorted(left_seconds_each)[-most]
            why = f"{len(left_seconds_each)} of them were lately refused or expired"
            found[namespace] = Reason.COOLDOWN, f"moves in {namespace} rest {until:.0f} s more: {why}"
    return found


def hindered(moves: Sequence[Move], policy: MovesPolicy, now: float) -> dict[str, Objection]:
    """Namespaces in which executors can't leave, or come back as no replacement. Drains show it as well as any move."""
    return _blocked_lately(moves, policy, now) | _fruitless(moves, policy, now)


def _blocked_lately(moves: Iterable[Move], policy: MovesPolicy, now: float) -> dict[str, Objection]:
    """Each time that it happens again, with no executor that left in between, doubles the rest."""
    blocked: dict[str, list[Move]] = defaultdict(list)
    last_left: dict[str, float] = defaultdict(float)
    for move in moves:
        if move.blocked and move.phase in _UNBEGUN and move.ended_at is not None:
            blocked[move.namespace].append(move)
        elif move.left_at is not None:
            last_left[move.namespace] = max(last_left[move.namespace], move.left_at)
    found: dict[str, Objection] = {}
    for namespace, past in blocked.items():
        last = max(past, key=lambda move: (move.ended_at or 0.0, move.name))
        ends = sorted(end for move in past if (end := move.ended_at or 0.0) > last_left[namespace])
        again = sum(later - earlier > policy.leave_timeout_seconds for earlier, later in pairwise(ends))
        pause = max(policy.cooldown_seconds, policy.leave_timeout_seconds) * 2 ** min(again, _MOST_DOUBLINGS)
        if (left_seconds := (last.ended_at or 0.0) + pause - now) > 0:
            why = f"{last.executor_name} was kept from leaving"
            found[namespace] = Reason.COOLDOWN, f"moves in {namespace} rest {left_seconds:.0f} s more: {why}"
    return found


def _fruitless(moves: Iterable[Move], policy: MovesPolicy, now: float) -> dict[str, Objection]:
    """Namespaces in which more moves came to nothing than succeeded; each one more doubles the cooldown.

    Their pods may never go (a finalizer), or their replacements never run. If replacements can't even be created (a
    ResourceQuota or LimitRange that has become stricter), each move costs the application an executor. Moves by hand
    count neither way.
    """
    ended: dict[str, list[Move]] = defaultdict(list)
    for move in moves:
        if move.ended_at is not None and not move.by_hand and not move.elsewhere:
            ended[move.namespace].append(move)
    found: dict[str, Objection] = {}
    for namespace, past in ended.items():
        fruitless = [move.ended_at or 0.0 for move in past if _came_to_nothing(move)]
        excess = len(fruitless) - sum(move.phase is MovePhase.SUCCEEDED and not move.unreplaced for move in past)
        if excess <= 0:
            continue
        pause = policy.cooldown_seconds * 2 ** min(excess - 1, _MOST_DOUBLINGS)
        if (left_seconds := max(fruitless) + pause - now) > 0:
            why = f"{excess} more of them came to nothing than succeeded"
            found[namespace] = Reason.COOLDOWN, f"moves in {namespace} rest {left_seconds:.0f} s more: {why}"
    return found


def _came_to_nothing(move: Move) -> bool:
    return move.unreplaced or (move.phase is MovePhase.FAILED and move.helped is None)


def _unbegun(moves: Iterable[Move], policy: MovesPolicy, now: float) -> Iterator[tuple[Move, float]]:
    """Moves that were refused or expired lately, and for how many seconds more their subjects rest."""
    pause = max(policy.cooldown_seconds, policy.leave_timeout_seconds)
    for move in moves:
        over = None if move.ended_at is None else move.ended_at + pause
        if move.phase in _UNBEGUN and over is not None and now < over:
            yield move, over - now
