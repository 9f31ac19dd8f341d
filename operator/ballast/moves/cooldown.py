"""What rests because of earlier moves: topologies, nodes and single executors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ballast.model import Move, MovePhase, MovesPolicy, Reason

Objection = tuple[Reason, str]

_NEVER_LEFT = frozenset({MovePhase.PROPOSED, MovePhase.REFUSED, MovePhase.EXPIRED})


def left(move: Move) -> bool:
    """Whether its executor was, or is about to be, asked to go: only such moves use up a budget."""
    return move.phase not in _NEVER_LEFT


def resting(moves: Iterable[Move], policy: MovesPolicy, subject: str, now: float) -> Objection | None:
    """Why `subject`, the topology or node of all these moves, rests at `now`."""
    for move in moves:
        until = (move.ended_at if move.ended_at is not None else move.started_at) + policy.cooldown_seconds
        if left(move) and now < until:
            return Reason.COOLDOWN, f"{subject} rests {until - now:.0f} s more after {move.name}"
    return None


def precedent(
    moves: Iterable[Move],
    policy: MovesPolicy,
    *,
    executor_uid: str,
    component: str,
    source: str,
    target: str,
    now: float,
) -> Objection | None:
    """Why another move of this executor, or one the other way, forbids this one."""
    for other in moves:
        if other.executor_uid == executor_uid and not other.phase.ended:
            return Reason.IN_FLIGHT, "a move of this executor is already under way"
        recent = other.ended_at is None or now - other.ended_at < policy.cooldown_seconds
        opposite = other.source == target and other.target == source
        if recent and opposite and left(other) and other.component == component:
            return Reason.REVERSE, f"{other.name} has just moved {component} the other way"
    return None


@dataclass(frozen=True, slots=True)
class Rest:
    paused: frozenset[str]
    """Topologies whose last `pause_after_failures` judged moves all failed or did not help."""
    executors: Mapping[str, Objection]
    """By uid, executors whose move was refused or expired lately: why no other is suggested yet."""

    def of_topology(self, key: str) -> Objection | None:
        return (Reason.PAUSED, f"moves of {key} are paused") if key in self.paused else None


def rest(moves: Iterable[Move], policy: MovesPolicy, now: float) -> Rest:
    known = tuple(moves)
    return Rest(_paused(known, policy.pause_after_failures), _refused_lately(known, policy, now))


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


def _refused_lately(moves: Iterable[Move], policy: MovesPolicy, now: float) -> dict[str, Objection]:
    found: dict[str, Objection] = {}
    pause = max(policy.cooldown_seconds, policy.leave_timeout_seconds)
    for move in moves:
        over = None if move.ended_at is None else move.ended_at + pause
        if move.phase in (MovePhase.REFUSED, MovePhase.EXPIRED) and over is not None and now < over:
            words = f"its move {move.name} was {move.phase.lower()}; it rests {over - now:.0f} s more"
            found[move.executor_uid] = (Reason.COOLDOWN, words)
    return found
