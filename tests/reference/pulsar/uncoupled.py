"""Shedding and placing as Pulsar does them: one strategy says what leaves, another one then says where each goes.

Nothing is predicted, no arbiter rules, and what comes of it is seen when the figures show it. This is what Ballast is
compared with; no operator runs it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random

from ballast.model import Executor, Memory, Node, Phase, Plan, PlannedMove, Policy, Snapshot
from ballast.moves.score import measured
from ballast.placement import avg_shedder, least_long_term_rate, least_resource_usage, round_robin
from ballast.placement.strategy import Arrival, Candidate
from ballast.planner.arbiter import planned
from ballast.planner.plan import plan
from ballast.planner.traffic_leveling import pool_load, settings_of
from ballast.shedding.load import Suggestion
from ballast.shedding.strategies import shed

_GRACE_SECONDS = 1800.0
"""Pulsar leaves alone what it unloaded in the last half hour (loadBalancerSheddingGracePeriodMinutes)."""


class Placement(StrEnum):
    """Pulsar's placement strategies."""

    LEAST_LONG_TERM_RATE = "LeastLongTermRate"
    LEAST_RESOURCE_USAGE = "LeastResourceUsage"
    ROUND_ROBIN = "RoundRobin"
    AVG_SHEDDER = "AvgShedder"


@dataclass(slots=True)
class Uncoupled:
    """A planner for one run: remembers what Pulsar's leader would. Executors at their gates are placed by Ballast."""

    placement: Placement
    random: Random
    text: str = ""
    """The shedding strategy's own memory."""
    asked_at: float = float("-inf")
    averages: least_resource_usage.Averages = field(default_factory=least_resource_usage.Averages)
    turn: round_robin.Turn = field(default_factory=round_robin.Turn)

    def __call__(self, snapshot: Snapshot, policy: Policy, memory: Memory, now: float) -> tuple[Plan, Memory]:
        calm = replace(policy, shedding=replace(policy.shedding, strategy="None"))
        decided, memory = plan(snapshot, calm, memory, now)
        if now - self.asked_at < policy.interval_seconds or not snapshot.metrics.available:
            return decided, memory
        self.asked_at = now
        return replace(decided, moves=tuple(self._moves(snapshot, policy, now))), memory

    def _moves(self, snapshot: Snapshot, policy: Policy, now: float) -> Iterable[PlannedMove]:
        scores = measured(snapshot, policy).by_node
        resting = _resting(snapshot, now)
        candidates = _candidates(snapshot, scores)
        load = pool_load(
            snapshot, scores, receivers=candidates, movable=lambda executor: executor.uid not in resting, now=now
        )
        found = shed(policy.shedding.strategy, load, settings_of(policy), self.text)
        self.text = found.state
        self.averages = least_resource_usage.averaged(
            candidates.values(), least_resource_usage.UsageSettings(), self.averages
        )
        executors = {executor.key: executor for executor in snapshot.executors}
        for suggestion in found.suggestions:
            target = suggestion.target or self._chosen(executors[suggestion.executor], suggestion.source, candidates)
            if target is not None:
                yield _move(executors[suggestion.executor], suggestion, target, policy, scores)

    def _chosen(self, executor: Executor, source: str, candidates: dict[str, Candidate]) -> str | None:
        """The destination; a node that it has just left would only waste the unload, so it is not asked."""
        others = [each for name, each in sorted(candidates.items()) if name != source]
        names = [each.name for each in others]
        if self.placement is Placement.ROUND_ROBIN:
            chosen, self.turn = round_robin.choose(names, round_robin.RoundRobinSettings(), self.turn)
            return chosen
        possible = self._possible(executor.key, others, names)
        if not possible:
            return None
        drawn = possible[self.random.randrange(len(possible))]
        arrival = Arrival(executor.key, _rate(executor))
        candidates[drawn] = replace(candidates[drawn], arriving=(*candidates[drawn].arriving, arrival))
        return drawn

    def _possible(self, key: str, others: Sequence[Candidate], names: Sequence[str]) -> Sequence[str]:
        if self.placement is Placement.LEAST_LONG_TERM_RATE:
            return least_long_term_rate.possible(others, least_long_term_rate.RateSettings())
        if self.placement is Placement.LEAST_RESOURCE_USAGE:
            return least_resource_usage.possible(names, least_resource_usage.UsageSettings(), self.averages)
        return avg_shedder.possible(key, names, avg_shedder.Destinations())


def _resting(snapshot: Snapshot, now: float) -> frozenset[str]:
    """Executors, by uid, that are on their way or came by a move a short while ago."""
    recent = [move for move in snapshot.moves if move.ended_at is None or now - move.started_at < _GRACE_SECONDS]
    return frozenset(uid for move in recent for uid in (move.executor_uid, move.replacement_uid) if uid is not None)


def _candidates(snapshot: Snapshot, scores: Mapping[str, float]) -> dict[str, Candidate]:
    """Nodes that may take something, with what is on its way to them."""
    here: dict[str, list[Executor]] = defaultdict(list)
    for executor in snapshot.executors:
        if executor.node is not None and executor.phase is Phase.RUNNING:
            here[executor.node].append(executor)
    return {node.name: _candidate(node, scores[node.name], here[node.name]) for node in snapshot.nodes
            if node.open and node.name in scores}  # fmt: skip


def _candidate(node: Node, score: float, executors: Sequence[Executor]) -> Candidate:
    rate = sum(_rate(executor) for executor in executors)
    return Candidate(node.name, score, rate, rate, frozenset(executor.key for executor in executors))


def _rate(executor: Executor) -> float:
    return (executor.usage.records_per_second if executor.usage else None) or 0.0


def _move(
    executor: Executor, suggestion: Suggestion, target: str, policy: Policy, scores: Mapping[str, float]
) -> PlannedMove:
    """Pulsar expects nothing of a move, so nothing is predicted."""
    seen = replace(suggestion, target=target, hot_score=scores[suggestion.source], cold_score=scores[target])
    load_cores = (executor.usage.cpu_cores if executor.usage else None) or 0.0
    return planned(seen, executor, strategy=policy.shedding.strategy, load_cores=load_cores)
