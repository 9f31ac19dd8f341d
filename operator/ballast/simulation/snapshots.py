"""From the simulated cluster to the Snapshot that one pass decides by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

import numpy as np

from ballast.model import (
    ConditionReason,
    Executor,
    ExecutorUsage,
    MetricsHealth,
    Node,
    NodeUsage,
    Policy,
    Resources,
    Snapshot,
    Topology,
)
from ballast.model.arrays import FloatArray, IntArray
from ballast.simulation.cluster import PHASES, Cluster, State, uid_of
from ballast.simulation.meter import Reading
from ballast.simulation.moves import SimulatedMoves

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


_LEAVING = "DeletionCandidateOfClusterAutoscaler"


class SnapshotReader:
    """What stays the same from pass to pass is made once."""

    def __init__(self, cluster: Cluster, policy: Policy, topologies: tuple[Topology, ...], *, epoch: float) -> None:
        self._cluster, self._policy, self._epoch = cluster, policy, epoch
        self._topologies = topologies
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
                leaving=_LEAVING if warned[index] else "",
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
