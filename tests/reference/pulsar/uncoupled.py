"""Shedding and placing as Pulsar does them: one strategy says what leaves, another one then says where each goes.

Nothing is predicted, no arbiter rules, and what comes of it is seen when the figures show it. This is what Ballast is
compared with; no operator runs it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from random import Random

import numpy as np

from ballast.model import Executor, Memory, Phase, Plan, PlannedMove, Policy, Snapshot
from ballast.model.arrays import IntArray
from ballast.moves.score import measured
from ballast.placement.strategies import Averages, far_below, usage_observed
from ballast.placement.strategy import lowest
from ballast.planner.arbiter import planned
from ballast.planner.leveling import pool_load
from ballast.planner.plan import plan
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


_OVERLOADED_PERCENT = 85.0
_DIFFERENCE_RATIO = 0.1
_HISTORY_RATIO = 0.9
"""Pulsar's defaults."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that may take something."""

    name: str
    score: float
    rate_per_second: float
    """What is on its way to it included."""


@dataclass(slots=True)
class Uncoupled:
    """A planner for one run: remembers what Pulsar's leader would. Executors at their gates are placed by Ballast."""

    placement: Placement
    random: Random
    text: str = ""
    """The shedding strategy's own memory."""
    asked_at: float = float("-inf")
    averages: Averages = field(default_factory=Averages)
    turn: str = ""
    """The node chosen last."""

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
        found = shed(policy.shedding.strategy, load, policy.shedding.chosen, self.text)
        self.text = found.state
        self.averages = usage_observed(snapshot, scores, self.averages, history_ratio=_HISTORY_RATIO)
        executors = {executor.key: executor for executor in snapshot.executors}
        for suggestion in found.suggestions:
            target = suggestion.target or self._chosen(executors[suggestion.executor], suggestion.source, candidates)
            if target is not None:
                yield _move(executors[suggestion.executor], suggestion, target, policy, scores)

    def _chosen(self, executor: Executor, source: str, candidates: dict[str, Candidate]) -> str | None:
        """The destination; a node that it has just left would only waste the unload, so it is not asked."""
        others = [each for name, each in sorted(candidates.items()) if name != source]
        if not others:
            return None
        if self.placement is Placement.ROUND_ROBIN:
            names = [each.name for each in others]
            self.turn = names[bisect_right(names, self.turn) % len(names)]
            return self.turn
        possible = self._possible(others)
        drawn = others[int(possible[self.random.randrange(len(possible))])]
        candidates[drawn.name] = replace(drawn, rate_per_second=drawn.rate_per_second + _rate(executor))
        return drawn.name

    def _possible(self, others: Sequence[Candidate]) -> IntArray:
        """Positions."""
        if self.placement is Placement.LEAST_LONG_TERM_RATE:
            rates = [inf if each.score > _OVERLOADED_PERCENT else each.rate_per_second for each in others]
            return lowest(np.array(rates))
        if self.placement is Placement.LEAST_RESOURCE_USAGE:
            known = dict(self.averages.by_node)
            usage = np.array([known[each.name] for each in others])
            return far_below(usage, float(usage.mean()), _DIFFERENCE_RATIO)
        return np.arange(len(others))


def _resting(snapshot: Snapshot, now: float) -> frozenset[str]:
    """Executors, by uid, that are on their way or came by a move a short while ago."""
    recent = [move for move in snapshot.moves if move.ended_at is None or now - move.started_at < _GRACE_SECONDS]
    return frozenset(uid for move in recent for uid in (move.executor_uid, move.replacement_uid) if uid is not None)


def _candidates(snapshot: Snapshot, scores: Mapping[str, float]) -> dict[str, Candidate]:
    """Nodes that may take something, with what is on its way to them."""
    rates: dict[str, float] = defaultdict(float)
    for executor in snapshot.executors:
        if executor.node is not None and executor.phase is Phase.RUNNING:
            rates[executor.node] += _rate(executor)
    nodes = (node.name for node in snapshot.nodes if node.open and node.name in scores)
    return {name: Candidate(name, scores[name], rates[name]) for name in nodes}


def _rate(executor: Executor) -> float:
    return (executor.usage.records_per_second if executor.usage else None) or 0.0


def _move(
    executor: Executor, suggestion: Suggestion, target: str, policy: Policy, scores: Mapping[str, float]
) -> PlannedMove:
    """Pulsar expects nothing of a move, so nothing is predicted."""
    seen = replace(suggestion, target=target, hot_score=scores[suggestion.source], cold_score=scores[target])
    load_cores = (executor.usage.cpu_cores if executor.usage else None) or 0.0
    return planned(seen, executor, strategy=policy.shedding.strategy, load_cores=load_cores)
