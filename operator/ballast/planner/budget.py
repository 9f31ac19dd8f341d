"""Limits on moves over time: concurrency, budgets, cooldowns and pauses, all recomputed from the moves themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim

from ballast.model import Budget, Move, MovePhase, MovesPolicy, Reason

Objection = tuple[Reason, str]

_NEVER_LEFT = frozenset({MovePhase.PROPOSED, MovePhase.REFUSED, MovePhase.EXPIRED})


def left(move: Move) -> bool:
    """Whether its executor was, or is about to be, asked to go: only such moves use up a budget."""
    return move.phase not in _NEVER_LEFT


def objection(
    moves: Iterable[Move], policy: MovesPolicy, *, topology: str, source: str, target: str, now: float
) -> Objection | None:
    """Why no further move of this topology between these nodes may start now, or None."""
    counted = [move for move in moves if left(move)]
    flying = [move for move in moves if move.phase.in_flight or move.phase is MovePhase.PROPOSED]
    return (
        _concurrency(flying, policy, topology=topology, source=source, target=target)
        or _cooldown(counted, policy, topology=topology, source=source, target=target, now=now)
        or _budgets(counted, policy, topology=topology, nodes=(source, target), now=now)
    )


def paused_topologies(moves: Iterable[Move], policy: MovesPolicy) -> frozenset[str]:
    """Topologies whose last `pause_after_failures` judged moves all failed or did not help."""
    if policy.pause_after_failures <= 0:
        return frozenset()
    ended: dict[str, list[Move]] = defaultdict(list)
    for move in moves:
        if move.ended_at is not None and left(move):
            ended[move.topology].append(move)
    return frozenset(topology for topology, past in ended.items() if _failing(past, policy.pause_after_failures))


def _failing(past: list[Move], count: int) -> bool:
    last = sorted(past, key=lambda move: (move.ended_at or 0.0, move.name))[-count:]
    return len(last) == count and all(m.phase is MovePhase.FAILED or m.helped is False for m in last)


def _concurrency(
    flying: list[Move], policy: MovesPolicy, *, topology: str, source: str, target: str
) -> Objection | None:
    if len(flying) >= policy.max_concurrent:
        return Reason.MAX_CONCURRENT, f"{len(flying)} moves are under way, maxConcurrent is {policy.max_concurrent}"
    same = sum(move.topology == topology for move in flying)
    if same >= policy.max_concurrent_per_topology:
        return Reason.MAX_CONCURRENT, f"{same} moves of {topology} are under way"
    for node in (source, target):
        busy = sum(node in (move.source, move.target) for move in flying)
        if busy >= policy.max_concurrent_per_node:
            return Reason.MAX_CONCURRENT, f"{busy} moves from or to {node} are under way"
    return None


def _cooldown(
    counted: list[Move], policy: MovesPolicy, *, topology: str, source: str, target: str, now: float
) -> Objection | None:
    for move in counted:
        until = (move.ended_at if move.ended_at is not None else move.started_at) + policy.cooldown_seconds
        if now >= until:
            continue
        shared = {source, target} & {move.source, move.target}
        if move.topology == topology or shared:
            what = topology if move.topology == topology else " and ".join(sorted(shared))
            return Reason.COOLDOWN, f"{what} rests {until - now:.0f} s more after {move.name}"
    return None


def _budgets(
    counted: list[Move], policy: MovesPolicy, *, topology: str, nodes: tuple[str, str], now: float
) -> Objection | None:
    for budget in policy.budgets:
        if not active(budget, now):
            continue
        spent = max(_spent(counted, budget, topology=topology, node=node, now=now) for node in nodes)
        if spent >= budget.moves:
            return Reason.BUDGET, f"{spent} of {budget.moves} moves used, {_words(budget)}"
    return None


def _spent(counted: list[Move], budget: Budget, *, topology: str, node: str, now: float) -> int:
    match budget.scope:
        case "Topology":
            counted = [move for move in counted if move.topology == topology]
        case "Node":
            counted = [move for move in counted if node in (move.source, move.target)]
    return sum(_within(move, budget, now) for move in counted)


def used(budget: Budget, moves: Iterable[Move], now: float) -> int:
    """Moves that count towards a pool-wide reading of this budget."""
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
