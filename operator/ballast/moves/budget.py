"""How many moves there may be: at once and over time, counted from the moves themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim

from ballast.api.policy_moves import REVERSE_COOLDOWNS
from ballast.model import Budget, Executor, Move, MovePhase, MovesPolicy, Phase, Reason

# How many executors there are, since a budget may grow with them.


@dataclass(frozen=True, slots=True)
class ExecutorCounts:
    """Executors that run, or will."""

    pool: int = 0
    by_topology: Mapping[str, int] = field(default_factory=dict)
    by_node: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, executors: Iterable[Executor]) -> ExecutorCounts:
        present = [each for each in executors if each.phase not in (Phase.LEAVING, Phase.ENDED)]
        by_node = Counter(each.node for each in present if each.node is not None)
        return cls(len(present), Counter(each.topology for each in present), by_node)


def allowed(budget: Budget, executors: int) -> int:
    """The moves that the budget allows where there are so many executors."""
    return max(budget.moves, executors * budget.percent // 100)


# What rests because of earlier moves: topologies, nodes and single executors.

Objection = tuple[Reason, str]
ExecutorId = tuple[str, str]
"""Namespace and uid: a move may name any uid, also one of another namespace."""

_NEVER_LEFT = frozenset({MovePhase.PROPOSED, MovePhase.REFUSED, MovePhase.EXPIRED})


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


def precedent(
    moves: Iterable[Move],
    policy: MovesPolicy,
    *,
    executor: ExecutorId,
    source: str,
    target: str,
    now: float,
) -> Objection | None:
    """Why another move of this executor, or one the other way, forbids this one."""
    for other in moves:
        if (other.namespace, other.executor_uid) == executor and not other.phase.ended:
            return Reason.IN_FLIGHT, "a move of this executor is already under way"
        recent = other.ended_at is None or now - other.ended_at < REVERSE_COOLDOWNS * policy.cooldown_seconds
        opposite = other.source == target and other.target == source
        if recent and opposite and left(other):
            return Reason.REVERSE, "a move has lately gone the other way between these nodes"
    return None


@dataclass(frozen=True, slots=True)
class Rest:
    paused: frozenset[str]
    """Topologies whose last `pause_after_failures` judged moves all failed or did not help."""
    executors: Mapping[ExecutorId, Objection]
    """Executors whose move was refused or expired lately: why no other is suggested yet."""
    namespaces: Mapping[str, Objection] = field(default_factory=dict)
    """Namespaces in which a move could lately not be created, or an executor not be evicted, or in which enough moves
    wait for approval: why none is suggested yet. Otherwise their executors, one after the other, would keep those of
    other namespaces from being moved."""

    def of_executor(self, namespace: str, uid: str) -> Objection | None:
        return self.executors.get((namespace, uid)) or self.namespaces.get(namespace)

    def of_topology(self, key: str) -> Objection | None:
        return (Reason.PAUSED, f"moves of {key} are paused") if key in self.paused else None


def rest(moves: Iterable[Move], policy: MovesPolicy, now: float, *, closed: Mapping[str, str] | None = None) -> Rest:
    """`closed`: namespaces in which moves could lately not be created, and why."""
    known = tuple(moves)
    resting = _awaiting_approval(known, policy) | _blocked_lately(known, policy, now)
    for namespace, why in (closed or {}).items():
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


def _blocked_lately(moves: Iterable[Move], policy: MovesPolicy, now: float) -> dict[str, Objection]:
    found: dict[str, Objection] = {}
    for move, left_seconds in _unbegun(moves, policy, now):
        if move.blocked:
            why = f"{move.executor_name} was kept from leaving"
            found[move.namespace] = Reason.COOLDOWN, f"moves in {move.namespace} rest {left_seconds:.0f} s more: {why}"
    return found


def _unbegun(moves: Iterable[Move], policy: MovesPolicy, now: float) -> Iterator[tuple[Move, float]]:
    """Moves that were refused or expired lately, and for how many seconds more their subjects rest."""
    pause = max(policy.cooldown_seconds, policy.leave_timeout_seconds)
    for move in moves:
        over = None if move.ended_at is None else move.ended_at + pause
        if move.phase in (MovePhase.REFUSED, MovePhase.EXPIRED) and over is not None and now < over:
            yield move, over - now


def pool_objection(moves: Sequence[Move], policy: MovesPolicy, counts: ExecutorCounts, now: float) -> Objection | None:
    """Why no further move may start now, whatever it is."""
    own = [move for move in moves if not move.elsewhere]
    flying = sum(_flying(move) for move in own)
    if flying >= policy.max_concurrent:
        return Reason.MAX_CONCURRENT, f"{flying} moves are under way, moves.maxConcurrent is {policy.max_concurrent}"
    return _spent_budget(own, policy, "Pool", where="in the pool", executors=counts.pool, now=now)


def _by_hand(most: int) -> int:
    """How many of so many moves may be made by hand: half, but one at least.

    Users of one namespace must not use up what levels all of them.
    """
    return min(most, max(1, most // 2))


def by_hand_objection(
    moves: Iterable[Move], policy: MovesPolicy, counts: ExecutorCounts, now: float
) -> Objection | None:
    """Why no further move by hand may start now, although one of the strategy may."""
    own = [move for move in moves if move.by_hand and not move.elsewhere]
    flying = sum(_flying(move) for move in own)
    if flying >= _by_hand(policy.max_concurrent):
        words = f"{flying} moves by hand are under way, half of moves.maxConcurrent {policy.max_concurrent} is theirs"
        return Reason.MAX_CONCURRENT, words
    where = "by hand, which get half of the pool's,"
    return _spent_budget(own, policy, "Pool", where=where, executors=counts.pool, now=now, by_hand=True)


def topology_objection(
    moves: Iterable[Move], policy: MovesPolicy, counts: ExecutorCounts, *, topology: str, now: float
) -> Objection | None:
    """Why no further move of this topology may start now, whatever the nodes."""
    own = [move for move in moves if move.topology == topology]
    executors = counts.by_topology.get(topology, 0)
    share = executors * policy.max_concurrent_per_topology_percent // 100
    flying, most = sum(_open(move) for move in own), max(policy.max_concurrent_per_topology, share)
    if flying >= most:
        words = f"{flying} moves of {topology} are under way, moves.maxConcurrentPerTopology allows {most}"
        return Reason.MAX_CONCURRENT, words
    spent = _spent_budget(own, policy, "Topology", where=f"in {topology}", executors=executors, now=now)
    return resting(own, policy, topology, now, most=most) or spent


def node_objection(
    moves: Iterable[Move], policy: MovesPolicy, counts: ExecutorCounts, *, node: str, gives: bool, now: float
) -> Objection | None:
    """Why no further move from (or to) this node may start now, whatever the topology.

    A node that gave may go on giving: each move counts on those before it. What has taken must not soon give.
    """
    own = [move for move in moves if node in (move.source, move.target)]
    flying = sum(_flying(move) for move in own)
    if flying >= policy.max_concurrent_per_node:
        most = policy.max_concurrent_per_node
        words = f"{flying} moves from or to {node} are under way, moves.maxConcurrentPerNode is {most}"
        return Reason.MAX_CONCURRENT, words
    reverse = [move for move in own if node == (move.target if gives else move.source)]
    executors = counts.by_node.get(node, 0)
    spent = _spent_budget(own, policy, "Node", where=f"from or to {node}", executors=executors, now=now)
    return resting(reverse, policy, node, now) or spent


def _flying(move: Move) -> bool:
    return _open(move) and not move.unapproved


def _open(move: Move) -> bool:
    return (move.phase.in_flight or move.phase is MovePhase.PROPOSED) and not move.only_asked_for


def _spent_budget(
    own: Sequence[Move],
    policy: MovesPolicy,
    scope: str,
    *,
    where: str,
    executors: int,
    now: float,
    by_hand: bool = False,
) -> Objection | None:
    for index, budget in enumerate(policy.budgets):
        if budget.scope != scope or not active(budget, now):
            continue
        spent, most = used(budget, own, now), allowed(budget, executors)
        if by_hand:
            most = _by_hand(most)
        if spent >= most:
            words = f"{spent} of {most} moves used, {where} {_span(budget)}, moves.budgets[{index}]"
            return Reason.BUDGET, words
    return None


def used(budget: Budget, moves: Iterable[Move], now: float) -> int:
    """How many of these moves count against the budget."""
    return sum(_within(move, budget, now) for move in moves if left(move))


def next_reset(budget: Budget, moves: Iterable[Move], now: float) -> float | None:
    """When the oldest counted move drops out of the budget; None when nothing is counted."""
    if budget.per_seconds is None:
        return None
    counted = [move.started_at for move in moves if left(move) and _within(move, budget, now)]
    return min(counted) + budget.per_seconds if counted else None


def active(budget: Budget, now: float) -> bool:
    """Whether the budget's schedule (if it has one) covers `now`."""
    if not budget.schedule:
        return True
    start = _last_start(budget, now)
    return start is not None and now < start + budget.duration_seconds


def _last_start(budget: Budget, now: float) -> float | None:
    here = datetime.fromtimestamp(now, ZoneInfo(budget.time_zone))
    backwards = CronSim(budget.schedule, here, reverse=True)
    return next(backwards).timestamp()


def _within(move: Move, budget: Budget, now: float) -> bool:
    if budget.per_seconds is not None:
        return now - move.started_at < budget.per_seconds
    start = _last_start(budget, now) if budget.schedule else None
    return start is not None and move.started_at >= start


def _span(budget: Budget) -> str:
    if budget.schedule:
        return f"while the window {budget.schedule!r} ({budget.time_zone}) is open"
    return f"per {budget.per_seconds or 0:.0f} s"
