"""How many moves there may be: at once and over time, counted from the moves themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from math import fsum
from zoneinfo import ZoneInfo

from cronsim import CronSim

from ballast.model import Budget, Executor, Move, MovePhase, MovesPolicy, Objection, Phase, Reason
from ballast.moves.rest import left, resting

_ROUNDING = 1e-9

# How many executors there are, since a budget may grow with them.


@dataclass(frozen=True, slots=True)
class ExecutorCounts:
    """Executors that run: a user may create any number that never do, and budgets in percent grow with them."""

    pool: int = 0
    by_topology: Mapping[str, int] = field(default_factory=dict)
    by_node: Mapping[str, int] = field(default_factory=dict)
    cores_by_namespace: Mapping[str, float] = field(default_factory=dict)
    """That they request: a node runs no more than it has. An executor that its author has bound to a node runs only if
    the node's kubelet takes it.
    """

    @classmethod
    def of(cls, executors: Iterable[Executor]) -> ExecutorCounts:
        running = [each for each in executors if each.phase is Phase.RUNNING]
        by_node = Counter(each.node for each in running if each.node is not None)
        cores: dict[str, float] = defaultdict(float)
        for each in running:
            cores[each.namespace] += each.requests.cpu_cores
        return cls(len(running), Counter(each.topology for each in running), by_node, cores)

    def share(self, namespace: str) -> float:
        """Of the pool's executors, by the cores that they request. 1 where nothing is known of others."""
        return self.shares([namespace])[namespace]

    def shares(self, namespaces: Iterable[str]) -> Mapping[str, float]:
        """The same for several."""
        total = sum(self.cores_by_namespace.values())
        return {name: self.cores_by_namespace.get(name, 0.0) / total if total > 0 else 1.0 for name in namespaces}


def allowed(budget: Budget, executors: int) -> int:
    """The moves that the budget allows where there are so many executors."""
    return max(budget.moves, executors * budget.percent // 100)


def pool_objection(moves: Sequence[Move], policy: MovesPolicy, counts: ExecutorCounts, now: float) -> Objection | None:
    """Why no further move may start now, whatever it is."""
    own = [move for move in moves if not move.elsewhere]
    flying = sum(_flying(move) for move in own)
    if flying >= policy.max_concurrent:
        return Reason.MAX_CONCURRENT, f"{flying} moves are under way, moves.maxConcurrent is {policy.max_concurrent}"
    return _spent_budget(own, policy, "Pool", where="in the pool", executors=counts.pool, now=now)


def _by_hand(most: int) -> int:
    """How many of so many moves may be made by hand: half, but one at least. Of one move that is every other one.

    Users of one namespace must not use up what levels all of them.
    """
    return min(most, max(1, most // 2))


def _others_turn(own: Iterable[Move], policy: MovesPolicy, most: int, *, where: str, now: float) -> Objection | None:
    """Why no move by hand may start where `most`, how many may be under way at once, is one: then half is half of the
    time. `own`: those by hand that count there.

    A user may keep each under way for long, by a pod's grace period.
    """
    if most > 1:
        return None
    ends = [
        move.ended_at + max(move.ended_at - move.started_at, policy.cooldown_seconds)
        for move in own
        if move.ended_at is not None and left(move)
    ]
    if (seconds := max(ends, default=now) - now) <= 0:
        return None
    words = f"one move at a time is allowed {where}, and others have their turn for {seconds:.0f} s more"
    return Reason.MAX_CONCURRENT, words


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
    return _others_turn(own, policy, policy.max_concurrent, where="in the pool", now=now) or _spent_budget(
        own, policy, "Pool", where=where, executors=counts.pool, now=now, by_hand=True
    )


def namespace_objection(
    moves: Iterable[Move], policy: MovesPolicy, counts: ExecutorCounts, *, namespace: str, now: float
) -> Objection | None:
    """Why no further move in this namespace may start now, although one in another may.

    Half of what the pool may move, or as much as the namespace has of the pool's executors: applications of ever new
    names must not use up what levels the others'. Nor must namespaces together: a user may have several.
    """
    share = max(0.5, counts.share(namespace))
    if share >= 1.0:
        return None

    def part(most: int) -> int:
        return min(most, max(1, int(most * share + 0.5)))

    here = [move for move in moves if not move.elsewhere]
    own = [move for move in here if move.namespace == namespace]
    flying, most = sum(_flying(move) for move in own), part(policy.max_concurrent)
    if flying >= most:
        words = f"{flying} moves in {namespace} are under way, {most} of moves.maxConcurrent {policy.max_concurrent}"
        return Reason.MAX_CONCURRENT, f"{words} are its part"
    where = f"in {namespace}, which gets {share:.0%} of the pool's,"
    spent = _spent_budget(own, policy, "Pool", where=where, executors=counts.pool, now=now, part=part)
    return spent or _beyond_shares(here, policy, counts, namespace=namespace, now=now)


def _beyond_shares(
    moves: Sequence[Move], policy: MovesPolicy, counts: ExecutorCounts, *, namespace: str, now: float
) -> Objection | None:
    """Why this namespace may have no move beyond its share: it and others use up what there is for such moves."""
    flying = Counter(move.namespace for move in moves if _flying(move))
    if _too_many_beyond(flying, counts, policy.max_concurrent, namespace=namespace):
        return Reason.MAX_CONCURRENT, f"{_BEYOND}, of moves.maxConcurrent {policy.max_concurrent}"
    counted = of_pool(moves)
    for index, budget in enumerate(policy.budgets):
        if budget.scope != "Pool" or not active(budget, now):
            continue
        spent = Counter(move.namespace for move in _charged(budget, counted, now))
        if _too_many_beyond(spent, counts, allowed(budget, counts.pool), namespace=namespace):
            return Reason.BUDGET, f"{_BEYOND}, {_span(budget)}, moves.budgets[{index}]"
    return None


_BEYOND = "namespaces with more moves than their share of the pool's executors get half of what is left for others"


def _too_many_beyond(moves: Counter[str], counts: ExecutorCounts, most: int, *, namespace: str) -> bool:
    """Whether one more move of this namespace is beyond its share of `most`, and such moves are half of what is left.

    One such move is always allowed.
    """
    shares = counts.shares({*moves, namespace})
    if moves[namespace] + 1 <= shares[namespace] * most:
        return False
    counted = moves + Counter({namespace: 1})
    beyond = {name: count - shares[name] * most for name, count in counted.items() if count > shares[name] * most}
    left_for_others = most - fsum(shares[name] * most for name in beyond)
    return fsum(beyond.values()) > max(1.0, left_for_others / 2.0) + _ROUNDING


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
    moves: Iterable[Move],
    policy: MovesPolicy,
    counts: ExecutorCounts,
    *,
    node: str,
    gives: bool,
    now: float,
    by_hand: bool = False,
) -> Objection | None:
    """Why no further move from (or to) this node may start now, whatever the topology. `by_hand`: a user asks for it.

    A node that gave may go on giving: each move counts on those before it. What has taken must not soon give. But moves
    by hand let a node rest for such moves alone: their author chooses the node, and others' executors may make it hot.
    """
    own = [move for move in moves if node in (move.source, move.target)]
    flying = sum(_flying(move) for move in own)
    if flying >= policy.max_concurrent_per_node:
        most = policy.max_concurrent_per_node
        words = f"{flying} moves from or to {node} are under way, moves.maxConcurrentPerNode is {most}"
        return Reason.MAX_CONCURRENT, words
    found = _by_hand_at_node(own, policy, counts, node=node, now=now) if by_hand else None
    if found is not None:
        return found
    counted = [move for move in own if (by_hand or not move.by_hand) and not move.taint]
    reverse = [move for move in counted if node == (move.target if gives else move.source)]
    executors = counts.by_node.get(node, 0)
    spent = _spent_budget(own, policy, "Node", where=f"from or to {node}", executors=executors, now=now)
    return resting(reverse, policy, node, now) or spent


def _by_hand_at_node(
    own: Iterable[Move], policy: MovesPolicy, counts: ExecutorCounts, *, node: str, now: float
) -> Objection | None:
    """Why no further move by hand from or to this node may start now, although one of the strategy may.

    `own`: the moves from or to it. Users must not use up what levels the node: others have executors there, too.
    """
    mine = [move for move in own if move.by_hand]
    flying, most = sum(_flying(move) for move in mine), policy.max_concurrent_per_node
    if flying >= _by_hand(most):
        return Reason.MAX_CONCURRENT, (
            f"{flying} moves by hand from or to {node} are open, half of moves.maxConcurrentPerNode {most} is theirs"
        )
    where, executors = f"by hand from or to {node}, which get half,", counts.by_node.get(node, 0)
    return _others_turn(mine, policy, most, where=f"from or to {node}", now=now) or _spent_budget(
        mine, policy, "Node", where=where, executors=executors, now=now, by_hand=True
    )


def _flying(move: Move) -> bool:
    """Drains count against `moves.drain` alone."""
    return _open(move) and not move.unapproved and not move.taint


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
    part: Callable[[int], int] = int,
    by_hand: bool = False,
) -> Objection | None:
    """`part`: how many of so many moves these may be. `by_hand`: whether they are those by hand."""
    for index, budget in enumerate(policy.budgets):
        if budget.scope != scope or not active(budget, now):
            continue
        # An executor that never goes uses up what its own topology may move, not what others may. By hand it counts:
        # each has kept others from being moved for as long as leaveTimeout and more.
        counted = own if by_hand or scope == "Topology" else [move for move in own if not _stayed(move)]
        whole = allowed(budget, executors)
        most, periods = (_by_hand(whole), 2 if whole == 1 else 1) if by_hand else (part(whole), 1)
        spent = used(budget, counted, now, periods=periods)
        if spent >= most:
            every = f"in {periods} periods, " if periods > 1 else ""
            words = f"{spent} of {most} moves used, {where} {every}{_span(budget)}, moves.budgets[{index}]"
            return Reason.BUDGET, words
    return None


def of_pool(moves: Iterable[Move]) -> list[Move]:
    """Those that count against the budgets of the whole pool."""
    return [move for move in moves if not (move.elsewhere or _stayed(move))]


def _stayed(move: Move) -> bool:
    """Whether its executor was evicted, has not gone in time, and may never go: no other move waits for it."""
    return move.phase is MovePhase.FAILED and move.left_at is None and not move.blocked


def pool_budgets_left(
    moves: Iterable[Move], policy: MovesPolicy, counts: ExecutorCounts, now: float
) -> Mapping[str, int]:
    """How many more moves each budget of the whole pool allows now, by its place in `moves.budgets`."""
    charged = of_pool(moves)
    return {
        str(index): max(0, allowed(budget, counts.pool) - used(budget, charged, now))
        for index, budget in enumerate(policy.budgets)
        if budget.scope == "Pool" and active(budget, now)
    }


def used(budget: Budget, moves: Iterable[Move], now: float, *, periods: int = 1) -> int:
    """How many of these moves count against the budget, or have in its last `periods`."""
    return len(_charged(budget, moves, now, periods=periods))


def next_reset(budget: Budget, moves: Iterable[Move], now: float) -> float | None:
    """When the oldest counted move drops out of the budget; None when nothing is counted."""
    if budget.per_seconds is None:
        return None
    counted = [move.started_at for move in _charged(budget, moves, now)]
    return min(counted) + budget.per_seconds if counted else None


def active(budget: Budget, now: float) -> bool:
    """Whether the budget's schedule (if it has one) covers `now`."""
    if not budget.schedule:
        return True
    return now < _last_start(budget, now) + budget.duration_seconds


def _last_start(budget: Budget, now: float, *, periods: int = 1) -> float:
    """When the schedule's last period began, or the first one of so many."""
    here = datetime.fromtimestamp(now, ZoneInfo(budget.time_zone))
    backwards = islice(CronSim(budget.schedule, here, reverse=True), periods)
    return min(start.timestamp() for start in backwards)


def _charged(budget: Budget, moves: Iterable[Move], now: float, *, periods: int = 1) -> list[Move]:
    """Those of these moves that count against the budget, or have in its last `periods`."""
    gone = [move for move in moves if left(move) and not move.taint]
    if budget.per_seconds is not None:
        return [move for move in gone if now - move.started_at < budget.per_seconds * periods]
    if not budget.schedule or not gone:
        return []
    began = _last_start(budget, now, periods=periods)
    return [move for move in gone if move.started_at >= began]


def _span(budget: Budget) -> str:
    if budget.schedule:
        return f"while the window {budget.schedule!r} ({budget.time_zone}) is open"
    return f"per {budget.per_seconds or 0:.0f} s"
