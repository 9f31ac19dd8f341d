"""How many moves there may be: at once and over time, counted from the moves themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim

from ballast.model import Budget, Move, MovePhase, MovesPolicy, Reason
from ballast.moves.cooldown import Objection, left, resting


def pool_objection(moves: Sequence[Move], policy: MovesPolicy, now: float) -> Objection | None:
    """Why no further move may start now, whatever it is."""
    flying = sum(_flying(move) for move in moves)
    if flying >= policy.max_concurrent:
        return Reason.MAX_CONCURRENT, f"{flying} moves are under way, maxConcurrent is {policy.max_concurrent}"
    return _spent_budget(moves, policy, "Pool", now)


def topology_objection(moves: Iterable[Move], policy: MovesPolicy, *, topology: str, now: float) -> Objection | None:
    """Why no further move of this topology may start now, whatever the nodes."""
    own = [move for move in moves if move.topology == topology]
    flying = sum(_flying(move) for move in own)
    if flying >= policy.max_concurrent_per_topology:
        return Reason.MAX_CONCURRENT, f"{flying} moves of {topology} are under way"
    return resting(own, policy, topology, now) or _spent_budget(own, policy, "Topology", now)


def node_objection(moves: Iterable[Move], policy: MovesPolicy, *, node: str, now: float) -> Objection | None:
    """Why no further move from or to this node may start now, whatever the topology."""
    own = [move for move in moves if node in (move.source, move.target)]
    flying = sum(_flying(move) for move in own)
    if flying >= policy.max_concurrent_per_node:
        return Reason.MAX_CONCURRENT, f"{flying} moves from or to {node} are under way"
    return resting(own, policy, node, now) or _spent_budget(own, policy, "Node", now)


def _flying(move: Move) -> bool:
    return move.phase.in_flight or move.phase is MovePhase.PROPOSED


def _spent_budget(own: Sequence[Move], policy: MovesPolicy, scope: str, now: float) -> Objection | None:
    for budget in policy.budgets:
        if budget.scope != scope or not active(budget, now):
            continue
        spent = used(budget, own, now)
        if spent >= budget.moves:
            return Reason.BUDGET, f"{spent} of {budget.moves} moves used, {_words(budget)}"
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


def _words(budget: Budget) -> str:
    where = {"Topology": "in this topology", "Node": "from or to this node"}.get(budget.scope, "in the pool")
    if budget.schedule:
        return f"{where} while the window {budget.schedule!r} ({budget.time_zone}) is open"
    return f"{where} per {budget.per_seconds or 0:.0f} s"
