"""The shedding strategies that look at traffic, or at scores alone, as moves with destinations and predictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum

from ballast.model import Executor, Memory, Move, Node, Phase, Policy, Snapshot
from ballast.planner.arbiter import ArbiterTerms
from ballast.planner.strategy_state import restored, stored
from ballast.shedding.completion import Ruling, completed
from ballast.shedding.load import ExecutorLoad, NodeLoad, PoolLoad, Suggestion, UsagePool
from ballast.shedding.strategies import shed
from ballast.shedding.victims_and_destination import Refused


@dataclass(frozen=True, slots=True)
class TrafficState:
    """What a strategy remembers, in its own words, and when it was last asked."""

    text: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class TrafficPass:
    suggestions: tuple[Suggestion, ...]
    refused: tuple[Refused, ...]
    memory: Memory


def by_traffic(
    snapshot: Snapshot,
    policy: Policy,
    memory: Memory,
    *,
    pool: UsagePool,
    terms: ArbiterTerms,
    ruling: Ruling,
    now: float,
) -> TrafficPass:
    """One pass of the policy's strategy. It is asked once a metric window: what it sees sooner it has seen before."""
    name = policy.shedding.strategy
    before = restored(memory, name, TrafficState) or TrafficState()
    # A time that lies ahead is of a clock that has been set back since.
    if 0 <= now - before.at < policy.window_seconds:
        return TrafficPass((), (), memory)
    scores = {node.name: node.score for node in pool.nodes}
    load = pool_load(
        snapshot,
        scores,
        receivers={node.name for node in pool.nodes if node.receives},
        movable=lambda executor: terms.objection(executor) is None,
        now=now,
    )
    found = shed(name, load, settings_of(policy), before.text)
    # Budgets may not suffice for all, and what they are spent on must not depend on names.
    hottest_first = sorted(found.suggestions, key=lambda each: -scores[each.source])
    made, refused = completed(hottest_first, pool, terms, ruling=ruling)
    return TrafficPass(made, refused, stored(memory, name, TrafficState(found.state, now)))


def settings_of(policy: Policy) -> Mapping[str, float]:
    """The strategy's own figures, by the names that `shed` knows."""
    shedder = policy.shedding.avg_shedder
    if policy.shedding.strategy != "AvgShedder":
        return dict(policy.shedding.settings)
    return {
        "low_threshold": shedder.low_threshold,
        "high_threshold": shedder.high_threshold,
        "low_hits": shedder.low_hits,
        "high_hits": shedder.high_hits,
        "max_unload_ratio": shedder.max_unload_ratio,
        "min_rate": shedder.min_rate,
        "min_throughput": shedder.min_throughput_bytes,
    }


def pool_load(
    snapshot: Snapshot,
    scores: Mapping[str, float],
    *,
    receivers: Container[str],
    movable: Callable[[Executor], bool],
    now: float,
) -> PoolLoad:
    """What these strategies look at: the nodes with a score, what runs on them, and when something last left them.

    `receivers`: nodes that something may be sent to.
    """
    residents: dict[str, list[Executor]] = defaultdict(list)
    for executor in snapshot.executors:
        if executor.node is not None and executor.node in scores and executor.phase is Phase.RUNNING:
            residents[executor.node].append(executor)
    unloaded = _unloaded_at(snapshot.moves, now)
    found = (node for node in snapshot.nodes if node.name in scores)
    nodes = (_node(node, scores[node.name], residents[node.name], movable) for node in found)
    return PoolLoad.of(
        (replace(_rested(node, unloaded.get(node.name), now), receives=node.name in receivers) for node in nodes),
        frozenset(node.name for node in snapshot.nodes if node.name not in scores),
    )


def _unloaded_at(moves: Iterable[Move], now: float) -> dict[str, float]:
    """By node, when an executor last left it by a move; `now` where one is about to."""
    found: dict[str, float] = {}
    for move in moves:
        at = move.arrived_at if move.left_at is None else move.left_at
        if at is None and move.phase.traveling:
            at = now
        if at is not None:
            found[move.source] = max(at, found.get(move.source, at))
    return found


def _rested(node: NodeLoad, unloaded_at: float | None, now: float) -> NodeLoad:
    if unloaded_at is None:
        return node
    return replace(node, since_unload_seconds=now - node.age_seconds - unloaded_at)


def _node(node: Node, score: float, executors: Sequence[Executor], movable: Callable[[Executor], bool]) -> NodeLoad:
    """A node's traffic is that of its executors: nothing else on it could be moved."""
    loads = tuple(_executor(e, movable=movable(e)) for e in sorted(executors, key=lambda e: e.key))
    return NodeLoad(
        name=node.name,
        score=score,
        rate_per_second=fsum(load.rate_per_second or 0.0 for load in loads),
        bytes_per_second=fsum(load.bytes_per_second or 0.0 for load in loads),
        age_seconds=node.usage.age_seconds if node.usage else 0.0,
        executors=loads,
    )


def _executor(executor: Executor, *, movable: bool) -> ExecutorLoad:
    usage = executor.usage
    rate, volume = (usage.records_per_second, usage.bytes_per_second) if usage else (None, None)
    if rate is not None or volume is not None:
        rate, volume = rate or 0.0, volume or 0.0
    return ExecutorLoad(executor.key, rate, volume, movable=movable)
