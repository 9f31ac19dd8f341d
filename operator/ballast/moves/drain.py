"""Emptying nodes that are about to go: which executors may leave, how many at once, in what order and where to.

A drain is no load decision. It needs no metrics, no hits and no gain, and the budgets of leveling don't limit it. It
has its own (`moves.drain`). Before a deadline it hurries, since what is on the node then is killed. A node that goes at
no known time, or may stay, is emptied at the ordinary rate.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf

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
from ballast.moves.budget import ExecutorCounts
from ballast.moves.candidates import Candidates
from ballast.moves.rest import IN_FLIGHT, hindered, left, under_way
from ballast.moves.rules import unheld

STAGE_DEPARTURES = 3
"""Executors that may leave gracefully while one stage runs: the next one ends the job, as Spark gives up at
spark.stage.maxConsecutiveAttempts (4), unless it retains the departed ones."""
STAGE_SECONDS = 3600.0
"""How long a stage of a batch job is taken to run: Kubernetes does not show when one ends."""
STREAMING_STAGE_SECONDS = 300.0
"""The same for a streaming query whose batches are not measured: none of its stages outlasts its batch."""
_SHORTEST_STAGE_SECONDS = 60.0
_BATCHES = 2.0
"""Batches at the 95th percentile that a stage is taken to run where they are measured."""
MOVE_SECONDS = 30.0
"""From an eviction until the replacement runs, as measured with Spark 4.3 and no state to speak of."""
RETRY_SECONDS = 30.0
"""After which an executor whose drain was refused is asked about again; doubled with each refusal."""
_RETRY_DOUBLINGS = 7

Application = tuple[str, str]
"""Namespace and application id: its stages are what departures count in, whatever components it has."""


def draining(node: Node) -> Notice | None:
    """The notice for which executors are to leave this node; None if they may stay, or can't leave it any more."""
    return node.notice if node.notice is not None and node.notice.drains and node.ready else None


def drain_words(notice: Notice, node: str) -> str:
    return f"{node} is about to go: {notice.why} ({notice.taint})"


def leavers(snapshot: Snapshot, policy: Policy, now: float) -> list[tuple[Executor, Notice]]:
    """The running executors on nodes that are about to go, in the order in which they should leave.

    The nearest deadline comes first, guesses last. Among these namespaces come in turn, that with the fewest drains
    first; of a namespace what holds most, because handing that over takes longest.
    """
    if not policy.moves.drain.enabled:
        return []
    notices = {node.name: found for node in snapshot.nodes if (found := draining(node)) is not None}
    left_seconds = {name: found.left_seconds(now) for name, found in notices.items()}
    leaving = sorted(
        (each for each in snapshot.executors if each.node in notices and each.phase is Phase.RUNNING and each.enforced),
        key=lambda each: (left_seconds[each.node or ""], -_held(each, now), each.key),
    )
    served = Counter(move.namespace for move in snapshot.moves if move.taint and _counts_lately(move, now))
    urgency: float | None = None
    turns: list[tuple[float, int, Executor]] = []
    for each in leaving:
        if (seconds := left_seconds[each.node or ""]) != urgency:
            urgency, numbers = seconds, Counter(served)
        turns.append((seconds, numbers[each.namespace], each))
        numbers[each.namespace] += 1
    ordered = sorted(turns, key=lambda turn: turn[:2])
    return [(executor, notices[executor.node or ""]) for _, _, executor in ordered]


def _counts_lately(move: Move, now: float) -> bool:
    return not move.elsewhere and (_open(move) or _departed(move, now, STAGE_SECONDS))


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
            or self.of_namespace(executor.namespace)
            or self.of_application(executor)
        )

    def of_node(self, name: str | None) -> Objection | None:
        """Why its node need not be emptied, or not any more."""
        if not self._policy.moves.drain.enabled:
            return Reason.NODE_STAYS, "moves.drain.enabled is false"
        if name in self._notices:
            return None
        if any(node.name == name and not node.ready for node in self._snapshot.nodes):
            return Reason.NODE_UNAVAILABLE, f"{name} is not ready: nothing on it can leave gracefully"
        return Reason.NODE_STAYS, f"{name} has no taint any more by which it is about to go"

    def of_executor(self, executor: Executor) -> Objection | None:
        """Why this executor is not asked for, whatever its node. Before a deadline its namespace does not rest."""
        if (executor.namespace, executor.uid) in self._under_way:
            return IN_FLIGHT
        closed = self._snapshot.closed_namespaces.get(executor.namespace)
        if closed is not None:
            return Reason.COOLDOWN, f"moves in {executor.namespace} rest: {closed}"
        until = self._refused_until.get((executor.namespace, executor.uid), 0.0)
        if until > self._now:
            return Reason.COOLDOWN, f"its last move came to nothing; it is asked again in {until - self._now:.0f} s"
        return None if self._urgent(executor) else self._hindered.get(executor.namespace)

    def of_pool(self) -> Objection | None:
        """A proposal without approval, and an executor that may not be evicted, must not keep others waiting."""
        most = self._policy.moves.drain.max_concurrent
        flying = sum(_open(move) and not (move.unapproved or move.blocked or move.elsewhere) for move in self._moves)
        if flying < most:
            return None
        return Reason.MAX_CONCURRENT, f"{flying} moves of drains are under way, moves.drain.maxConcurrent is {most}"

    def of_namespace(self, namespace: str) -> Objection | None:
        """Half, or its part of the executors that are to leave: where no others are, that is all."""
        whole = self._policy.moves.drain.max_concurrent
        most = max(1, int(whole * max(0.5, self._leaving_counts.share(namespace)) + 0.5))
        flying = self._open_by_namespace[namespace]
        if flying < most:
            return None
        words = f"{flying} drains in {namespace} are under way, {most} of moves.drain.maxConcurrent {whole}"
        return Reason.MAX_CONCURRENT, f"{words} are its part"

    def of_application(self, executor: Executor) -> Objection | None:
        """Why no further executor of its application may leave now."""
        application, urgent = (executor.namespace, executor.application), self._urgent(executor)
        own, component = self._moves_of.get(application, ()), self._component(executor)
        # Without a deadline its share is of executors that are missing, too: their replacements may never come.
        flying = sum(_open(move) or (not urgent and bool(move.taint) and move.phase.traveling) for move in own)
        most = self._at_once(application, component, urgent=urgent)
        if flying >= most:
            words = f"{flying} executors of {executor.application} are being drained, {most} may be at once"
            return Reason.MAX_CONCURRENT, words
        if component is None or component.shuffle is Shuffle.REMOTE:
            return None
        most, stage_seconds = _departures(component), self._stage_seconds(application, component)
        gone = sum(_departed(move, self._now, stage_seconds) for move in own)
        if gone < most:
            return None
        return Reason.STAGE_ATTEMPTS, (
            f"{gone} executors of {executor.application} have left within {stage_seconds / 60:.0f} min, and a further "
            "one would end the job if they all left within one stage: set "
            "spark.scheduler.maxRetainedRemovedDecommissionExecutors=100, and declare it as retainedDepartures"
        )

    def _urgent(self, executor: Executor) -> bool:
        found = self._notices.get(executor.node)
        return found is not None and found.left_seconds(self._now) < inf

    def _stage_seconds(self, application: Application, component: Component) -> float:
        if component.workload is not Workload.STREAMING:
            return STAGE_SECONDS
        batch_seconds = self._snapshot.batch_p95_seconds.get("/".join(application))
        return (
            STREAMING_STAGE_SECONDS if batch_seconds is None else max(_SHORTEST_STAGE_SECONDS, _BATCHES * batch_seconds)
        )

    def _at_once(self, application: Application, component: Component | None, *, urgent: bool) -> int:
        """As a share of its executors; more before a deadline that is too short for them to leave in turn."""
        share = int(self._running[application] * self._policy.moves.drain.max_concurrent_ratio)
        most = max(1, share, _in_time(self._deadlines.get(application, ())) if urgent else 0)
        remote = component is not None and component.shuffle is Shuffle.REMOTE
        return most if remote else min(most, _departures(component))

    def _component(self, executor: Executor) -> Component | None:
        topology = self._topologies.get(executor.topology)
        return topology.component(executor.component) if topology is not None else None

    @cached_property
    def _topologies(self) -> Mapping[str, Topology]:
        return {topology.key: topology for topology in self._snapshot.topologies}

    @cached_property
    def _notices(self) -> Mapping[str | None, Notice]:
        return {node.name: found for node in self._snapshot.nodes if (found := draining(node)) is not None}

    @cached_property
    def _running(self) -> Counter[Application]:
        running = (each for each in self._snapshot.executors if each.phase is Phase.RUNNING)
        return Counter((each.namespace, each.application) for each in running)

    @cached_property
    def _leavers(self) -> Sequence[tuple[Executor, Notice]]:
        return leavers(self._snapshot, self._policy, self._now)

    @cached_property
    def _leaving_counts(self) -> ExecutorCounts:
        return ExecutorCounts.of(executor for executor, _ in self._leavers)

    @cached_property
    def _deadlines(self) -> Mapping[Application, Sequence[float]]:
        """Within how many seconds each executor of an application is to leave, ascending."""
        found: dict[Application, list[float]] = defaultdict(list)
        for executor, notice in self._leavers:
            if (seconds := notice.left_seconds(self._now)) < inf:
                found[executor.namespace, executor.application].append(seconds)
        return found

    @cached_property
    def _moves_of(self) -> Mapping[Application, Sequence[Move]]:
        """A move notes the application once its executor leaves; before that, the executor is there."""
        named = {(each.namespace, each.uid): each.application for each in self._snapshot.executors}
        found: dict[Application, list[Move]] = defaultdict(list)
        for move in self._moves:
            application = move.application or named.get((move.namespace, move.executor_uid), "")
            found[move.namespace, application].append(move)
        return found

    @cached_property
    def _open_by_namespace(self) -> Counter[str]:
        return Counter(move.namespace for move in self._moves if _open(move) and not move.elsewhere)

    @cached_property
    def _hindered(self) -> Mapping[str, Objection]:
        return hindered(self._moves, self._policy.moves, self._now)

    @cached_property
    def _under_way(self) -> frozenset[tuple[str, str]]:
        return under_way(self._moves)

    @cached_property
    def _refused_until(self) -> Mapping[tuple[str, str], float]:
        ends: dict[tuple[str, str], list[float]] = defaultdict(list)
        for move in self._moves:
            if move.phase in (MovePhase.REFUSED, MovePhase.EXPIRED) and move.ended_at is not None:
                ends[move.namespace, move.executor_uid].append(move.ended_at)
        return {
            executor: max(past) + RETRY_SECONDS * 2 ** min(len(past) - 1, _RETRY_DOUBLINGS)
            for executor, past in ends.items()
        }


def _in_time(left_seconds_each: Sequence[float]) -> int:
    """How many must be under way at once so that each leaves before its own deadline. Ascending seconds."""
    needed = (
        ceil(count * MOVE_SECONDS / max(left_seconds, MOVE_SECONDS))
        for count, left_seconds in enumerate(left_seconds_each, start=1)
    )
    return max(needed, default=0)


def _departures(component: Component | None) -> int:
    """How many executors may leave while one stage runs."""
    return max(STAGE_DEPARTURES, component.retained_departures if component is not None else 0)


def _open(move: Move) -> bool:
    """Whether it counts for the budgets of drains: until its executor has gone."""
    return bool(move.taint) and (move.phase.departing or move.phase is MovePhase.PROPOSED)


def _departed(move: Move, now: float, within_seconds: float) -> bool:
    if move.phase.departing:
        return True
    since = move.started_at if move.left_at is None else move.left_at
    return left(move) and now - since < within_seconds


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
