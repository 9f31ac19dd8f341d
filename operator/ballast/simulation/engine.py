"""Runs a scenario under a policy: time passes step by step, and the planner is asked as the operator would ask it.

The planner decides everything: which executors leave the gate and where to, and what moves. What is simulated is the
world around it: load, machines, metrics, kube-scheduler, Spark's replacements, and how long all of that takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import count
from operator import attrgetter
from typing import Any

import numpy as np

from ballast.model import (
    LEAVING_TAINTS,
    ConditionReason,
    Executor,
    ExecutorUsage,
    Location,
    Memory,
    MetricsHealth,
    MovesMode,
    Node,
    NodeUsage,
    Notice,
    Placement,
    Plan,
    Policy,
    Resources,
    Snapshot,
    Topology,
)
from ballast.model.arrays import FloatArray, IntArray
from ballast.planner.plan import plan
from ballast.simulation.cluster import PHASES, Cluster, Lifetimes, State, changes, slot_of, uid_of
from ballast.simulation.demand import Demand
from ballast.simulation.inventory import executor_slots, fleet, topologies
from ballast.simulation.meter import Meter, Reading, Scraper
from ballast.simulation.moves import Scheduler, SimulatedMoves
from ballast.simulation.recorder import Recorder, Title
from ballast.simulation.scenario import Moving, Scenario
from ballast.simulation.trace import Cause, PlacementRecord, Trace

# What a policy is tried in: everything of a run that the policy does not decide.


@dataclass(frozen=True, slots=True)
class World:
    """Made again for each run, which changes its parts."""

    title: Title
    cluster: Cluster
    meter: Meter
    topologies: tuple[Topology, ...]
    moving: Moving
    epoch: float
    """The planner's time when the run begins."""
    passes: Iterator[float]
    """When they are due, in seconds since the run began; ascending and without end."""
    step_seconds: float
    scrape_seconds: float


EPOCH = 1_767_571_200.0
"""The planner's time when a run begins: Monday, 2026-01-05, midnight UTC; schedules of budgets go by it."""

Progress = Callable[[float], None]
"""Is told what share of the run is done, 0…1."""
Planner = Callable[[Snapshot, Policy, Memory, float], tuple[Plan, Memory]]


def simulate(
    scenario: Scenario,
    policy: Policy,
    *,
    seed: int | None = None,
    label: str | None = None,
    progress: Progress | None = None,
    planner: Planner = plan,
) -> Trace:
    """One run. Moves are made in mode Enforce only; the other modes are obeyed as the operator obeys them.

    Equal arguments give equal traces. `seed`: instead of the scenario's own. `label`: what the trace calls the policy.
    `planner`: the operator's, unless it is to be watched or compared with another.
    """
    seed = scenario.spec.seed if seed is None else seed
    world = _described(scenario, policy, seed=seed, label=label or policy.name)
    return Run(world, policy, planner).to_the_end(progress)


def _described(scenario: Scenario, policy: Policy, *, seed: int, label: str) -> World:
    spec = scenario.spec
    nodes = fleet(spec.nodes)
    slots = executor_slots(spec, nodes)
    cluster = Cluster(nodes, slots, moving=spec.moving, changes=changes(spec.events, nodes), life=Lifetimes())
    every = spec.metrics.scrape_interval.seconds
    return World(
        title=Title(scenario.name, label, seed, spec.duration.seconds, policy.window_seconds, spec.level_points),
        cluster=cluster,
        meter=Scraper(spec, policy, cluster, Demand(spec, nodes, slots, seed), seed),
        topologies=topologies(slots.apps, spec, policy.levels),
        moving=spec.moving,
        epoch=EPOCH,
        passes=count(0.0, policy.interval_seconds),
        step_seconds=min(every, policy.interval_seconds),
        scrape_seconds=every,
    )


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the planner said about an executor that it released."""

    wanted: str | None
    within: Location
    reason: str


class Run:
    """One run of a policy in a world: of a described one (`simulate`), or of a recorded one (`replay`)."""

    def __init__(self, world: World, policy: Policy, planner: Planner = plan) -> None:
        self._policy, self._memory, self._plan = policy, Memory(), planner
        self._world, self._cluster, self._meter = world, world.cluster, world.meter
        epoch = world.epoch
        self._snapshots = SnapshotReader(self._cluster, policy, world.topologies, epoch=epoch)
        self._moves = SimulatedMoves(self._cluster, world.moving, policy.moves, seed=world.title.seed, epoch=epoch)
        self._recorder = Recorder(world.title, self._cluster)
        self._scores: dict[str, float] = {}
        self._wishes: dict[int, _Wish] = {}
        self._next_scrape = 0.0
        self._next_pass = next(world.passes)

    def to_the_end(self, progress: Progress | None) -> Trace:
        step = self._world.step_seconds
        steps = int(self._world.title.duration_seconds / step + 1e-9)
        for index in range(steps + 1):
            self._advance(index * step)
            if progress is not None:
                progress(index / max(steps, 1))
        return self._recorder.trace(self._moves.records())

    def _advance(self, time: float) -> None:
        cluster = self._cluster
        cluster.advance(time)
        self._schedule(time)
        if time >= self._next_scrape - 1e-9:
            self._next_scrape += self._world.scrape_seconds
            self._meter.scrape(time)
        self._recorder.step(self._meter.now, time)
        gated = bool((cluster.state == State.GATED).any())
        if gated or time >= self._next_pass - 1e-9:
            while self._next_pass <= time + 1e-9:
                self._next_pass = next(self._world.passes)
            self._pass(time)

    def _schedule(self, time: float) -> None:
        """Moves go on, and kube-scheduler looks again at what waits for room."""
        pending = self._cluster.state == State.PENDING
        if not pending.any() and not self._moves.under_way:
            return
        waiting = np.flatnonzero(pending & (self._cluster.node < 0)).tolist()
        scheduler = Scheduler(self._cluster, self._snapshots.locations, time)
        self._moves.advance(scheduler, self._scores, time)
        for slot in waiting:
            self._bind(scheduler, slot, time)

    def _pass(self, time: float) -> None:
        snapshot = self._snapshots.snapshot(self._meter.query(time), self._moves, time)
        decided, self._memory = self._plan(snapshot, self._policy, self._memory, self._world.epoch + time)
        self._scores = {view.name: view.score for view in decided.pool.nodes if view.score is not None}
        self._recorder.pass_(decided, self._meter.now, time)
        self._enact(decided, time)

    def _enact(self, decided: Plan, time: float) -> None:
        if decided.placements:
            scheduler = Scheduler(self._cluster, self._snapshots.locations, time)
            for placement in decided.placements:
                self._release(scheduler, placement, time)
        for stranded in decided.replacements:
            self._cluster.delete(slot_of(stranded.uid), time)
        if self._policy.moves.mode is MovesMode.ENFORCE and decided.moves:
            scheduler = Scheduler(self._cluster, self._snapshots.locations, time)
            for move in decided.moves:
                self._moves.begin(move, slot_of(move.uid), scheduler, self._scores, time)

    def _release(self, scheduler: Scheduler, placement: Placement, time: float) -> None:
        slot, level = slot_of(placement.uid), self._policy.levels.index_of(placement.pin)
        self._wishes[slot] = _Wish(
            wanted=placement.node,
            within=placement.location[: level + 1] if level is not None else (),
            reason=placement.reason.value if placement.reason is not None else "",
        )
        self._cluster.pinned[slot] = placement.node is not None and level is not None
        self._bind(scheduler, slot, time)

    def _bind(self, scheduler: Scheduler, slot: int, time: float) -> None:
        cluster = self._cluster
        wish = self._wishes.get(slot, _Wish(None, (), ""))
        preferred = cluster.fleet.index(wish.wanted) if wish.wanted is not None else None
        node = scheduler.bind(slot, preferred=preferred, within=wish.within)
        if node is None:
            return
        cause, app = cluster.cause[slot], cluster.executor_slots.apps[cluster.executor_slots.app_of[slot]]
        if cause is not Cause.ASTRAY:
            cluster.homes[slot] = node
        self._recorder.placements.append(
            PlacementRecord(
                executor=f"{app.namespace}/{cluster.names[slot]}",
                slot=slot,
                application=app.name,
                at=time,
                waited_seconds=time - float(cluster.born_at[slot]),
                node=cluster.fleet.names[node],
                wanted=wish.wanted,
                reason=wish.reason,
                cause=cause,
            )
        )


_BUT_USAGE = attrgetter(*(field.name for field in fields(Executor) if field.name != "usage"))
"""Of an executor, every field before `usage`, which is the last one."""
_MAKE: Callable[..., Executor] = Executor


class Roster:
    """`epoch`: the planner's time when the run begins."""

    def __init__(self, cluster: Cluster, *, epoch: float) -> None:
        self._cluster, self._epoch = cluster, epoch
        self._known: list[tuple[Any, ...]] = [()] * len(cluster.executor_slots)
        self._seen: IntArray = np.full((5, len(cluster.executor_slots)), -1, dtype=np.int64)
        apps, app_of = cluster.executor_slots.apps, cluster.executor_slots.app_of
        self._records = np.array([app.records_per_core for app in apps])[app_of]
        self._bytes = np.array([app.bytes_per_core for app in apps])[app_of]
        self._state_bytes = np.array([app.state_bytes for app in apps])[app_of]
        self._task_seconds = np.array([np.nan if a.task_seconds is None else a.task_seconds for a in apps])[app_of]

    def executors(self, reading: Reading) -> Iterator[Executor]:
        """All executors, in the order of the slots."""
        self._look_for_changes()
        slots = np.flatnonzero(self._cluster.state != State.ABSENT)
        known, make = self._known, _MAKE
        for slot, usage in zip(slots.tolist(), self._usages(slots, reading), strict=True):
            yield make(*known[slot], usage)

    def _usages(self, slots: IntArray, reading: Reading) -> Iterator[ExecutorUsage | None]:
        node = self._cluster.node[slots]
        used: FloatArray = reading.executor_cpu[slots] if reading.available else np.full(len(slots), np.nan)
        work = used * self._cluster.fleet.speed[node]
        seconds = self._task_seconds[slots] * reading.slowdown[node] / self._cluster.fleet.speed[node]
        columns = (
            used,
            self._cluster.executor_slots.requests[slots, 1],
            work * self._records[slots],
            work * self._bytes[slots],
            seconds,
            self._state_bytes[slots],
        )
        listed = (_or_none(each) for each in columns)
        for cores, memory, records, volume, task, state in zip(*listed, strict=True):
            if cores is None:
                yield None
            else:
                yield ExecutorUsage(
                    cpu_cores=cores,
                    memory_bytes=memory,
                    records_per_second=records,
                    bytes_per_second=volume,
                    task_seconds=task,
                    state_bytes=state,
                )

    def _look_for_changes(self) -> None:
        cluster = self._cluster
        waiting = (cluster.state == State.PENDING) & (cluster.node < 0)
        pinned = cluster.pinned.astype(np.int64)
        now = np.stack([cluster.state, cluster.node, cluster.generation, cluster.named, pinned])
        changed = ((now != self._seen).any(axis=0) | waiting) & (cluster.state != State.ABSENT)
        slots = np.flatnonzero(changed)
        for slot, executor in zip(slots.tolist(), self._anew(slots), strict=True):
            self._known[slot] = _BUT_USAGE(executor)
        self._seen = now

    def _anew(self, slots: IntArray) -> Iterator[Executor]:
        """The executors of these slots, without usage."""
        cluster, names, nodes = self._cluster, self._cluster.names, self._cluster.fleet.names
        columns = (
            slots.tolist(),
            cluster.executor_slots.app_of[slots].tolist(),
            cluster.state[slots].tolist(),
            cluster.node[slots].tolist(),
            cluster.generation[slots].tolist(),
            cluster.pinned[slots].tolist(),
            (self._epoch + cluster.born_at[slots]).tolist(),
            _or_none(self._epoch + cluster.running_since[slots]),
            _or_none(self._epoch + cluster.unschedulable_since[slots]),
        )
        for slot, app_of, state, node, generation, pinned, born_at, running, waiting in zip(*columns, strict=True):
            app, uid = cluster.executor_slots.apps[app_of], uid_of(slot, generation)
            yield Executor(
                namespace=app.namespace,
                name=names[slot],
                uid=uid,
                application=app.name,
                executor_id=uid,
                resource_profile="0",
                topology=app.topology,
                component=app.component,
                phase=PHASES[state],
                created_at=born_at,
                node=nodes[node] if node >= 0 else None,
                requests=app.requests,
                cores=app.cores,
                last_gate_since=born_at if state == State.GATED else None,
                running_since=running,
                unschedulable_since=waiting,
                graceful=True,
                pinned=pinned,
            )


def _or_none(values: FloatArray) -> list[Any]:
    """NaN stands for what is not known."""
    listed: list[Any] = values.tolist()
    for index in np.flatnonzero(np.isnan(values)).tolist():
        listed[index] = None
    return listed


_LEAVING = next(row for row in LEAVING_TAINTS if row.key == "ToBeDeletedByClusterAutoscaler")
"""What announces that a node leaves or restarts."""


class SnapshotReader:
    """What stays the same from pass to pass is made once."""

    def __init__(self, cluster: Cluster, policy: Policy, topologies: tuple[Topology, ...], *, epoch: float) -> None:
        self._cluster, self._policy, self._epoch = cluster, policy, epoch
        self._topologies = topologies
        row = next((row for row in policy.moves.drain.taints if row.key == _LEAVING.key), _LEAVING)
        self._notice = Notice(row.key, row.why, row.notice_seconds, drains=row.drains)
        self._roster = Roster(cluster, epoch=epoch)
        fleet = cluster.fleet
        self.locations = fleet.locations(policy.levels)
        self._labels = [fleet.labels(index, policy.levels) for index in range(len(fleet))]
        self._allocatable = [Resources(*row) for row in cluster.allocatable.tolist()]

    def snapshot(self, reading: Reading, simulated_moves: SimulatedMoves, time: float) -> Snapshot:
        return Snapshot(
            taken_at=self._epoch + time,
            nodes=tuple(self._nodes(reading)),
            executors=tuple(self._roster.executors(reading)),
            topologies=self._with_failures(simulated_moves.failed_by_topology),
            moves=simulated_moves.moves(time),
            metrics=_health(reading),
        )

    def _nodes(self, reading: Reading) -> Iterator[Node]:
        cluster, fleet = self._cluster, self._cluster.fleet
        requested, ready, warned = cluster.requested().tolist(), cluster.ready.tolist(), cluster.warned.tolist()
        cpu, memory, age = reading.node_cpu.tolist(), reading.node_memory.tolist(), reading.node_age.tolist()
        speed, known = fleet.speed.tolist(), np.isfinite(reading.node_memory).tolist()
        recent = (reading.node_age <= self._policy.max_age_seconds) & ~np.isnan(reading.node_cpu) & reading.available
        fresh = recent.tolist()
        measured = reading.node_pressure
        pressure = [None] * len(fresh) if measured is None else measured.tolist()
        for index in np.flatnonzero(cluster.listed).tolist():
            usage = None
            if fresh[index]:
                usage = NodeUsage(
                    cpu_ratio=cpu[index],
                    memory_ratio=memory[index] if known[index] else None,
                    pressure_ratio=pressure[index],
                    age_seconds=age[index],
                )
            yield Node(
                name=fleet.names[index],
                location=self.locations[index],
                allocatable=self._allocatable[index],
                requested=Resources(*requested[index]),
                labels=self._labels[index],
                ready=ready[index],
                leaving=_LEAVING.why if warned[index] else "",
                notice=self._notice if warned[index] else None,
                speed=speed[index],
                usage=usage,
            )

    def _with_failures(self, failed: dict[str, int]) -> tuple[Topology, ...]:
        if not failed:
            return self._topologies
        return tuple(replace(each, failed_executors=failed.get(each.key, 0)) for each in self._topologies)


def _health(reading: Reading) -> MetricsHealth:
    if reading.available:
        return MetricsHealth(available=True, reason=ConditionReason.AVAILABLE)
    return MetricsHealth(available=False, reason=ConditionReason.UNREACHABLE, message="Prometheus does not answer")
