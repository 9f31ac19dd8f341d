"""Emptying nodes that are about to go: which executors may leave, how many at once, in what order and where to.

A drain is no load decision. It needs no metrics, no hits and no gain, and the budgets of leveling don't limit it. It
has its own (`moves.drain`), because a notice runs out: what is still on the node then is killed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from ballast.model import (
    Component,
    Executor,
    Move,
    MovePhase,
    Node,
    Notice,
    Objection,
    Phase,
    Policy,
    Reason,
    Shuffle,
    Snapshot,
    Topology,
    Workload,
)
from ballast.moves.candidates import Candidates
from ballast.moves.rest import IN_FLIGHT, left, under_way
from ballast.moves.rules import unheld

STAGE_DEPARTURES = 3
"""Executors that may leave gracefully while one stage runs: the next one ends the job, as Spark gives up at
spark.stage.maxConsecutiveAttempts (4), unless it retains the departed ones."""
STAGE_SECONDS = 3600.0
"""How long a stage is taken to run: Kubernetes does not show when one ends."""
MOVE_SECONDS = 30.0
"""From an eviction until the replacement runs, as measured with Spark 4.3 and no state to speak of."""
RETRY_SECONDS = 30.0
"""After which an executor whose drain was refused is asked about again."""

Application = tuple[str, str]
"""Topology and component."""


def draining(node: Node) -> Notice | None:
    """The notice for which executors are to leave this node; None if they may stay."""
    return node.notice if node.notice is not None and node.notice.drains else None


def drain_words(notice: Notice, node: str) -> str:
    return f"{node} is about to go: {notice.why} ({notice.taint})"


def leavers(snapshot: Snapshot, policy: Policy, now: float) -> list[tuple[Executor, Notice]]:
    """The running executors on nodes that are about to go, in the order in which they should leave.

    The shortest notice comes first; on a node what holds most, because handing that over takes longest.
    """
    if not policy.moves.drain.enabled:
        return []
    notices = {node.name: found for node in snapshot.nodes if (found := draining(node)) is not None}
    leaving = [
        (each, notices[each.node])
        for each in snapshot.executors
        if each.node in notices and each.phase is Phase.RUNNING and each.enforced
    ]
    return sorted(leaving, key=lambda pair: (pair[1].left_seconds(now), -_held(pair[0], now), pair[0].key))


def _held(executor: Executor, now: float) -> float:
    """Bytes that it hands over, or that are loaded again: its state, and what it wrote of its shuffles."""
    usage = executor.usage
    if usage is None:
        return 0.0
    age_seconds = 0.0 if executor.running_since is None else max(0.0, now - executor.running_since)
    return (usage.state_bytes or 0.0) + (usage.shuffle_write_bytes_per_second or 0.0) * min(age_seconds, STAGE_SECONDS)


class DrainRules:
    """What forbids to drain an executor now. `moves`: those that count; by default the snapshot's."""

    def __init__(self, snapshot: Snapshot, policy: Policy, now: float, moves: Sequence[Move] | None = None) -> None:
        self._snapshot, self._policy, self._now = snapshot, policy, now
        self._moves = tuple(snapshot.moves if moves is None else moves)

    def with_move(self, move: Move) -> DrainRules:
        """The same once this move has begun, too."""
        return DrainRules(self._snapshot, self._policy, self._now, (*self._moves, move))

    def objection(self, executor: Executor) -> Objection | None:
        """The weightiest reason against it."""
        return (
            unheld(self._policy)
            or self.of_node(executor.node)
            or self.of_executor(executor)
            or self.of_pool()
            or self.of_application(executor)
        )

    def of_node(self, name: str | None) -> Objection | None:
        """Why its node need not be emptied, or not any more."""
        if not self._policy.moves.drain.enabled:
            return Reason.NODE_STAYS, "moves.drain.enabled is false"
        if name not in self._notices:
            return Reason.NODE_STAYS, f"{name} has no taint any more by which it is about to go"
        return None

    def of_executor(self, executor: Executor) -> Objection | None:
        """Why this executor is not asked for, whatever its node."""
        if (executor.namespace, executor.uid) in self._under_way:
            return IN_FLIGHT
        closed = self._snapshot.closed_namespaces.get(executor.namespace)
        if closed is not None:
            return Reason.COOLDOWN, f"moves in {executor.namespace} rest: {closed}"
        until = self._refused_until.get((executor.namespace, executor.uid), 0.0)
        if until > self._now:
            return Reason.COOLDOWN, f"its last move came to nothing; it is asked again in {until - self._now:.0f} s"
        return None

    def of_pool(self) -> Objection | None:
        most = self._policy.moves.drain.max_concurrent
        flying = sum(_flying(move) for move in self._moves if not move.elsewhere)
        if flying < most:
            return None
        return Reason.MAX_CONCURRENT, f"{flying} moves of drains are under way, moves.drain.maxConcurrent is {most}"

    def of_application(self, executor: Executor) -> Objection | None:
        """Why no further executor of its application may leave now."""
        application = (executor.topology, executor.component)
        own = [move for move in self._moves if (move.topology, move.component) == application]
        component = self._component(application)
        flying, most = sum(_flying(move) for move in own), self._at_once(application, component)
        if flying >= most:
            words = f"{flying} executors of {executor.topology} are being drained, {most} may be at once"
            return Reason.MAX_CONCURRENT, words
        if component is None or component.workload is Workload.STREAMING or component.shuffle is Shuffle.REMOTE:
            return None
        most = _departures(component)
        gone = sum(_departed(move, self._now) for move in own)
        if gone < most:
            return None
        return Reason.STAGE_ATTEMPTS, (
            f"{gone} executors of {executor.topology} have left within {STAGE_SECONDS / 60:.0f} min, and a further one "
            "would end the job if they all left within one stage: set "
            "spark.scheduler.maxRetainedRemovedDecommissionExecutors=100, and declare it as retainedDepartures"
        )

    def _at_once(self, application: Application, component: Component | None) -> int:
        """As a share of its executors; more where the notice is too short for them to leave in turn."""
        share = int(self._running[application] * self._policy.moves.drain.max_concurrent_ratio)
        most = max(1, share, self._in_time(self._waiting.get(application, ())))
        remote = component is not None and component.shuffle is Shuffle.REMOTE
        return most if remote else min(most, _departures(component))

    def _in_time(self, left_seconds_each: Sequence[float]) -> int:
        """How many must be under way at once so that each leaves before its own notice is over. Ascending seconds."""
        needed = (
            ceil(count * MOVE_SECONDS / max(left_seconds, MOVE_SECONDS))
            for count, left_seconds in enumerate(left_seconds_each, start=1)
        )
        return max(needed, default=0)

    def _component(self, application: Application) -> Component | None:
        topology = self._topologies.get(application[0])
        return topology.component(application[1]) if topology is not None else None

    @cached_property
    def _topologies(self) -> Mapping[str, Topology]:
        return {topology.key: topology for topology in self._snapshot.topologies}

    @cached_property
    def _notices(self) -> Mapping[str | None, Notice]:
        return {node.name: found for node in self._snapshot.nodes if (found := draining(node)) is not None}

    @cached_property
    def _running(self) -> Counter[Application]:
        running = (each for each in self._snapshot.executors if each.phase is Phase.RUNNING)
        return Counter((each.topology, each.component) for each in running)

    @cached_property
    def _waiting(self) -> Mapping[Application, Sequence[float]]:
        """Within how many seconds each executor of an application is to leave, ascending."""
        found: dict[Application, list[float]] = defaultdict(list)
        for executor, notice in leavers(self._snapshot, self._policy, self._now):
            found[executor.topology, executor.component].append(notice.left_seconds(self._now))
        return found

    @cached_property
    def _under_way(self) -> frozenset[tuple[str, str]]:
        return under_way(self._moves)

    @cached_property
    def _refused_until(self) -> Mapping[tuple[str, str], float]:
        return {
            (move.namespace, move.executor_uid): move.ended_at + RETRY_SECONDS
            for move in self._moves
            if move.phase in (MovePhase.REFUSED, MovePhase.EXPIRED) and move.ended_at is not None
        }


def _departures(component: Component | None) -> int:
    """How many executors may leave while one stage runs."""
    return max(STAGE_DEPARTURES, component.retained_departures if component is not None else 0)


def _flying(move: Move) -> bool:
    """Whether it counts for the budgets of drains: decided, and its replacement does not run yet."""
    return bool(move.taint) and (move.phase.traveling or move.phase is MovePhase.PROPOSED)


def _departed(move: Move, now: float) -> bool:
    since = move.started_at if move.left_at is None else move.left_at
    return left(move) and now - since < STAGE_SECONDS


# Where to: near, not hot, and with room; never to a node that is about to go, which takes none.


@dataclass(frozen=True, slots=True)
class Destinations:
    """`scores`: projected, percent, by node; nodes without metrics are absent."""

    candidates: Candidates
    policy: Policy
    nodes: Mapping[str, Node]
    scores: Mapping[str, float]

    def best(self, executor: Executor, arriving: Mapping[str, Sequence[str]]) -> str | None:
        """The node to go to once `arriving`, keys of executors by node, are there too; None where none takes it.

        Limits on executors per node and zone give way if nothing else would: on its node it would be killed.
        """
        ranked = sorted(
            self.candidates.takers(executor) - {executor.node or ""},
            key=lambda name: self._rank(executor, name, arriving),
        )
        crowded = None
        for name in ranked:
            refused = self.candidates.unfit(executor.key, name, tuple(arriving.get(name, ())))
            if refused is None:
                return name
            if crowded is None and refused is Reason.SPREAD_LIMIT:
                crowded = name
        return crowded

    def takes(self, executor: Executor, name: str) -> Reason | None:
        """Why it can't go there, apart from limits that give way."""
        refused = self.candidates.unfit(executor.key, name, ())
        return None if refused is Reason.SPREAD_LIMIT else refused

    def _rank(
        self, executor: Executor, name: str, arriving: Mapping[str, Sequence[str]]
    ) -> tuple[bool, float, float, str]:
        load = self._load(executor, name, [self.candidates.executor(key) for key in arriving.get(name, ())])
        crowded = load > self.policy.placement.max_score_percent
        return crowded, round(self.candidates.locality_delta_ratio(executor, name), 3), load, name

    def _load(self, executor: Executor, name: str, arriving: Iterable[Executor]) -> float:
        """Percent: the score that the node would have; without metrics, how much of its CPU would be requested."""
        coming = (*arriving, executor)
        if name in self.scores:
            return self.scores[name] + sum(self.candidates.points_on(each, name) for each in coming)
        node = self.nodes[name]
        cores = node.allocatable.cpu_cores - self.candidates.room(node).cpu_cores
        return 100.0 * (cores + sum(each.requests.cpu_cores for each in coming)) / max(node.allocatable.cpu_cores, 1e-6)


def destinations(
    candidates: Candidates, snapshot: Snapshot, policy: Policy, scores: Mapping[str, float]
) -> Destinations:
    return Destinations(candidates, policy, {node.name: node for node in snapshot.nodes}, scores)
