"""From the policy's shedding strategy, by what the arbiter says, to moves with destinations and predictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import fsum

from ballast.model import (
    Constraints,
    Executor,
    LoadUnit,
    Memory,
    Move,
    MovesMode,
    Node,
    Packing,
    Phase,
    PlannedMove,
    Policy,
    Reason,
    Refusal,
    Snapshot,
    Taint,
    Toleration,
    Workload,
)
from ballast.moves.candidates import Candidates
from ballast.moves.loads import Loads
from ballast.moves.rest import left
from ballast.moves.rules import weightless
from ballast.moves.score import STARTING_SECONDS, astray, foreign, points_per_core
from ballast.planner.arbiter import Arbiter, ArbiterTerms, planned
from ballast.planner.strategy_state import USAGE, restored, stored
from ballast.shedding.avg_shedder_usage import PairState, UsageMemory, UsageSettings, avg_shedder_usage
from ballast.shedding.load import ExecutorLoad, NodeLoad, PoolLoad, Suggestion, UsageExecutor, UsageNode, UsagePool
from ballast.shedding.strategies import shed
from ballast.shedding.victims_and_destination import Refused, completed

Pair = tuple[str, str, float]

_SUGGESTED = 10
"""Suggestions in one pass, so that the arbiter has others when it refuses the first ones."""


@dataclass(frozen=True, slots=True)
class Leveling:
    moves: tuple[PlannedMove, ...]
    """Suggested by the strategy and approved by the arbiter; each counts on those before it."""
    refusals: tuple[Refusal, ...]
    pairs: tuple[Pair, ...]
    """Hot, cold, difference: those apart by the low threshold or more, the widest first."""
    memory: Memory


def level(
    snapshot: Snapshot,
    policy: Policy,
    memory: Memory,
    *,
    scores: Mapping[str, float],
    loads: Loads,
    candidates: Candidates,
    arbiter: Arbiter,
    now: float,
) -> Leveling:
    """One pass of the shedding strategy; `scores` and `candidates` include what is arriving and leaving.

    Without metrics the memory stays as it is: hits neither grow nor vanish.
    """
    idle = _idle(snapshot, policy, scores)
    if idle is not None:
        return Leveling((), (idle,), (), memory)
    terms = ArbiterTerms(candidates, arbiter, policy.moves)
    at = _Moment(snapshot, policy, memory, scores, loads, candidates, arbiter, terms, now)
    if policy.shedding.strategy == "AvgShedder" and policy.shedding.avg_shedder.unit is LoadUnit.USAGE:
        return _by_usage(at)
    return _by_traffic(at)


@dataclass(frozen=True, slots=True)
class _Moment:
    """What every strategy starts from."""

    snapshot: Snapshot
    policy: Policy
    memory: Memory
    scores: Mapping[str, float]
    loads: Loads
    candidates: Candidates
    arbiter: Arbiter
    terms: ArbiterTerms
    now: float

    def planned(self, suggestion: Suggestion) -> PlannedMove:
        executor = self.candidates.executor(suggestion.executor)
        strategy, load_cores = self.policy.shedding.strategy, self.candidates.load_cores(executor)
        move = planned(suggestion, executor, strategy=strategy, load_cores=load_cores)
        return replace(
            move,
            locality_delta_ratio=self.candidates.locality_delta_ratio(executor, move.target),
            slowness=self.candidates.slowness(executor),
            pressure_ratio=self.candidates.pressure_ratio(move.source),
        )

    def idle(self, executors: Iterable[Executor]) -> frozenset[str]:
        """Uids of executors that use too little CPU to level anything, wherever they go.

        Their own exporters say what traffic they have. Claims of it must not make them the ones to move, or what is to
        leave a node a multiple of all others' traffic.
        """
        points, speed = points_per_core(self.snapshot, self.policy), self.loads.speed
        per_work = {name: each / speed.get(name, 1.0) for name, each in points.items()}
        most = max(per_work.values(), default=0.0)
        found = []
        for executor in executors:
            home = executor.node or ""
            load = self.loads.known(executor)
            if load is not None and home in points:
                gain = load * (points[home] + speed.get(home, 1.0) * most)
                if gain < self.policy.moves.min_gain:
                    found.append(executor.uid)
        return frozenset(found)

    def ruling(self, suggestion: Suggestion) -> tuple[Reason, str] | None:
        return self.arbiter.ruling(self.planned(suggestion))

    def pool(self, *, from_score: float) -> UsagePool:
        """Every node with a score; candidates only from nodes with a score of at least `from_score`."""
        residents: dict[str, list[Executor]] = defaultdict(list)
        for executor in self.snapshot.executors:
            if executor.node is not None and self.scores.get(executor.node, -1.0) >= from_score:
                residents[executor.node].append(executor)
        nodes = (node for node in self.snapshot.nodes if node.name in self.scores)
        silent = frozenset(node.name for node in self.snapshot.nodes if node.name not in self.scores)
        open_to = destinations(self.snapshot)
        idle = self.idle(chain.from_iterable(residents.values()))
        strayed, others = astray(self.snapshot, self.policy, self.loads), foreign(self.snapshot, self.policy)
        seen = (
            replace(
                self._node(
                    node,
                    residents.get(node.name, ()),
                    from_score=from_score,
                    idle=idle,
                    receives=node.name in open_to,
                ),
                astray=strayed.get(node.name, 0.0),
                foreign=others.get(node.name, 0.0),
            )
            for node in nodes
        )
        moving = moving_nodes(self.snapshot, self.policy, self.now)
        return UsagePool(tuple(seen), silent, changing_nodes(self.snapshot, self.policy, self.now), moving)

    def _node(
        self, node: Node, residents: Sequence[Executor], *, from_score: float, idle: Container[str], receives: bool
    ) -> UsageNode:
        score = self.scores[node.name]
        terms, known = self.terms, self.loads.known
        return UsageNode(
            name=node.name,
            score=score,
            capacity_cores=max(node.allocatable.cpu_cores / self.policy.weights.cpu, 1e-6),
            speed=self.loads.speed.get(node.name, 1.0),
            receives=receives,
            executors=tuple(UsageExecutor(e.key, known(e), terms.objection(e), e.uid in idle) for e in residents),
            gives=score < from_score or bool(residents),
        )


def _refusal(refused: Refused, terms: ArbiterTerms) -> Refusal:
    subject = refused.executor or refused.source
    words = refused.detail or terms.words(refused.executor, refused.target, refused.reason)
    return Refusal(subject, refused.reason, words, refused.target)


def _idle(snapshot: Snapshot, policy: Policy, scores: Mapping[str, float]) -> Refusal | None:
    if policy.shedding.strategy == "None":
        return Refusal(policy.name, Reason.SHEDDING_DISABLED, "shedding.strategy is None")
    if policy.moves.mode is MovesMode.DISABLED:
        return Refusal(policy.name, Reason.MOVES_DISABLED, "moves.mode is Disabled")
    if not snapshot.metrics.available:
        return Refusal(policy.name, Reason.NO_METRICS, f"{snapshot.metrics.reason}: {snapshot.metrics.message}")
    unpredictable = weightless(policy)
    if unpredictable is not None:
        return Refusal(policy.name, *unpredictable)
    if len(scores) < 2:
        return Refusal(policy.name, Reason.POOL_TOO_SMALL, f"{len(scores)} nodes have fresh metrics; it takes two")
    return None


def _by_usage(at: _Moment) -> Leveling:
    shedder = at.policy.shedding.avg_shedder
    before = restored(at.memory, USAGE, UsageMemory) or UsageMemory()
    settings = _usage_settings(at.policy)
    pool = at.pool(from_score=settings.least_hot_score)
    found = avg_shedder_usage(pool, settings, before, now_seconds=at.now, terms=at.terms)
    passed_over = [_refusal(each, at.terms) for each in found.refused]
    made, refused = completed(found.suggestions, pool, at.terms, ruling=at.ruling)
    refusals = [_pair_refusal(pair) for pair in found.pairs if pair.reason not in (None, Reason.BALANCED)]
    return Leveling(
        moves=tuple(at.planned(each) for each in made),
        refusals=(*refusals, *passed_over, *(_refusal(each, at.terms) for each in refused)),
        # Those that are far apart, or acted on although they are not.
        pairs=tuple(
            (p.hot.name, p.cold.name, p.difference)
            for p in found.pairs
            if p.reason is None or p.difference >= shedder.low_threshold
        ),
        memory=stored(at.memory, USAGE, found.memory),
    )


def _usage_settings(policy: Policy) -> UsageSettings:
    shedder, moves = policy.shedding.avg_shedder, policy.moves
    return UsageSettings(
        low_threshold=shedder.low_threshold,
        high_threshold=shedder.high_threshold,
        low_hits=shedder.low_hits,
        high_hits=shedder.high_hits,
        min_hot_score=shedder.min_hot_score,
        # Pack fills nodes up to minHotScore, and leaves others empty on purpose.
        persistent_hits=0 if policy.placement.packing is Packing.PACK else shedder.persistent_hits,
        max_unload_ratio=shedder.max_unload_ratio,
        window_seconds=policy.window_seconds,
        min_gain=moves.min_gain,
        max_moves=max(moves.max_concurrent, _SUGGESTED),
        max_moves_per_node=moves.max_concurrent_per_node,
    )


def _pair_refusal(pair: PairState) -> Refusal:
    return Refusal(pair.hot.name, pair.reason or Reason.BALANCED, pair.detail, pair.cold.name)


# The shedding strategies that look at traffic, or at scores alone, as moves with destinations and predictions.


@dataclass(frozen=True, slots=True)
class TrafficState:
    """What a strategy remembers, in its own words, and when it was last asked."""

    text: str = ""
    at: float = 0.0


def _by_traffic(at: _Moment) -> Leveling:
    """One pass of the policy's strategy. It is asked once a metric window: what it sees sooner it has seen before."""
    name = at.policy.shedding.strategy
    before = restored(at.memory, name, TrafficState) or TrafficState()
    # A time in the future: the wall clock stepped backwards.
    if 0 <= at.now - before.at < at.policy.window_seconds:
        return Leveling((), (), (), at.memory)
    pool = at.pool(from_score=0.0)
    load = pool_load(
        at.snapshot,
        at.scores,
        receivers={node.name for node in pool.nodes if node.receives},
        movable=lambda executor: at.terms.objection(executor) is None,
        idle=at.idle(at.snapshot.executors),
        now=at.now,
    )
    found = shed(name, load, at.policy.shedding.chosen, before.text)
    # Budgets may not suffice for all, and what they are spent on must not depend on names.
    hottest_first = sorted(found.suggestions, key=lambda each: -at.scores[each.source])
    made, refused = completed(hottest_first, pool, at.terms, ruling=at.ruling)
    return Leveling(
        moves=tuple(at.planned(each) for each in made),
        refusals=tuple(_refusal(each, at.terms) for each in refused),
        pairs=(),
        memory=stored(at.memory, name, TrafficState(found.state, at.now)),
    )


def pool_load(
    snapshot: Snapshot,
    scores: Mapping[str, float],
    *,
    receivers: Container[str],
    movable: Callable[[Executor], bool],
    now: float,
    idle: Container[str] = (),
) -> PoolLoad:
    """What these strategies look at: the nodes with a score, what runs on them, and when something last left them.

    `receivers`: nodes that something may be sent to. `idle`: uids of executors whose traffic does not count.
    """
    residents: dict[str, list[Executor]] = defaultdict(list)
    for executor in snapshot.executors:
        if executor.node is not None and executor.node in scores and executor.phase is Phase.RUNNING:
            residents[executor.node].append(_without_traffic(executor) if executor.uid in idle else executor)
    unloaded = _unloaded_at(snapshot.moves, now)
    found = (node for node in snapshot.nodes if node.name in scores)
    nodes = (_node(node, scores[node.name], residents[node.name], movable) for node in found)
    return PoolLoad.of(
        (replace(_rested(node, unloaded.get(node.name), now), receives=node.name in receivers) for node in nodes),
        frozenset(node.name for node in snapshot.nodes if node.name not in scores),
    )


def _without_traffic(executor: Executor) -> Executor:
    usage = executor.usage
    return (
        executor
        if usage is None
        else replace(executor, usage=replace(usage, records_per_second=None, bytes_per_second=None))
    )


def _unloaded_at(moves: Iterable[Move], now: float) -> dict[str, float]:
    """By node, when an executor last left it by a move; `now` where one is about to.

    Moves by hand do not count: TransferShedder waits after each, so a user could make it wait for good.
    """
    found: dict[str, float] = {}
    for move in moves:
        if move.by_hand:
            continue
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


def destinations(snapshot: Snapshot) -> frozenset[str]:
    """Their names: they are open, and no taint of theirs keeps every executor off."""
    shut = _tolerated_by_nobody(snapshot)
    return frozenset(node.name for node in snapshot.nodes if node.open and node.taints not in shut)


def _tolerated_by_nobody(snapshot: Snapshot) -> set[tuple[Taint, ...]]:
    left = {node.taints for node in snapshot.nodes if node.taints}
    seen: set[tuple[Toleration, ...]] = set()
    for executor in snapshot.executors:
        tolerations = executor.constraints.tolerations
        if not left:
            break
        if tolerations not in seen:
            seen.add(tolerations)
            pod = Constraints(tolerations=tolerations)
            left = {taints for taints in left if pod.untolerated(taints) is not None}
    return left


# A score that changes for a known reason is no noise: executors begin on the node, or a move leaves or reaches it. If
# the pool learned that as noise, it would overlook real gaps for hours after its own start, and after each move.
# Executors of batch jobs come and go all the time: that is noise.


def changing_nodes(snapshot: Snapshot, policy: Policy, now: float) -> frozenset[str]:
    """Their names; `now` in seconds since the epoch."""
    streaming = {
        (topology.key, component.name)
        for topology in snapshot.topologies
        for component in topology.components
        if component.workload in (Workload.STREAMING, Workload.REAL_TIME)
    }
    settled_seconds = max(policy.moves.min_executor_age_seconds, policy.window_seconds)
    begun = {
        executor.node
        for executor in snapshot.executors
        if executor.node is not None
        and _begins(executor, now=now, settled_seconds=settled_seconds)
        and (executor.topology, executor.component) in streaming
    }
    return moving_nodes(snapshot, policy, now).union(begun)


def moving_nodes(snapshot: Snapshot, policy: Policy, now: float) -> frozenset[str]:
    """Those of them that a move leaves or reaches."""
    since = now - policy.window_seconds
    return frozenset(node for move in snapshot.moves if _under_way(move, since) for node in _ends(move))


def _begins(executor: Executor, *, now: float, settled_seconds: float) -> bool:
    if executor.phase is Phase.RUNNING:
        return executor.running_since is not None and now - executor.running_since < settled_seconds
    return executor.phase is Phase.PENDING and now - executor.created_at < STARTING_SECONDS


def _under_way(move: Move, since: float) -> bool:
    if not left(move):
        return False
    return move.ended_at is None or move.ended_at > since


def _ends(move: Move) -> tuple[str, str]:
    return move.source, move.target
