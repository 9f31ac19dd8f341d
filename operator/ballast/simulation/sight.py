"""From the simulated cluster to the Snapshot that one pass decides by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ballast.model import (
    Executor,
    ExecutorUsage,
    MetricsHealth,
    Node,
    NodeUsage,
    Phase,
    Policy,
    Resources,
    Snapshot,
    Topology,
)
from ballast.simulation.arrays import FloatArray
from ballast.simulation.cluster import Cluster, State
from ballast.simulation.crew import NAMESPACE, App
from ballast.simulation.flight import Flights
from ballast.simulation.meter import Reading
from ballast.simulation.uid import uid_of

_PHASES = {
    State.GATED: Phase.GATED,
    State.PENDING: Phase.PENDING,
    State.RUNNING: Phase.RUNNING,
    State.LEAVING: Phase.LEAVING,
}
_LEAVING = "DeletionCandidateOfClusterAutoscaler"


class Sight:
    """What stays the same from pass to pass is made once."""

    def __init__(self, cluster: Cluster, policy: Policy, topologies: tuple[Topology, ...], *, epoch: float) -> None:
        self._cluster, self._policy, self._epoch = cluster, policy, epoch
        self._topologies = topologies
        fleet = cluster.fleet
        self.locations = fleet.locations(policy.levels)
        self._labels = [fleet.labels(index, policy.levels) for index in range(len(fleet))]
        self._allocatable = [Resources(*row) for row in cluster.allocatable.tolist()]

    def snapshot(self, reading: Reading, flights: Flights, time: float) -> Snapshot:
        return Snapshot(
            taken_at=self._epoch + time,
            nodes=tuple(self._nodes(reading)),
            executors=tuple(self._executors(reading)),
            topologies=self._with_failures(flights.failed_by_topology),
            moves=flights.moves,
            metrics=_health(reading),
        )

    def _nodes(self, reading: Reading) -> Iterator[Node]:
        cluster, fleet = self._cluster, self._cluster.fleet
        requested = cluster.requested()
        memory = requested[:, 1] / cluster.allocatable[:, 1]
        fresh = (reading.node_age <= self._policy.max_age_seconds) & ~np.isnan(reading.node_cpu) & reading.available
        for index in np.flatnonzero(cluster.listed).tolist():
            usage = None
            if fresh[index]:
                usage = NodeUsage(
                    cpu_ratio=float(reading.node_cpu[index]),
                    memory_ratio=float(memory[index]),
                    age_seconds=float(reading.node_age[index]),
                )
            yield Node(
                name=fleet.names[index],
                location=self.locations[index],
                allocatable=self._allocatable[index],
                requested=Resources(*requested[index].tolist()),
                labels=self._labels[index],
                ready=bool(cluster.ready[index]),
                leaving=_LEAVING if cluster.warned[index] else "",
                speed=float(fleet.speed[index]),
                usage=usage,
            )

    def _executors(self, reading: Reading) -> Iterator[Executor]:
        cluster = self._cluster
        names, apps = cluster.fleet.names, cluster.crew.apps
        slots = np.flatnonzero(cluster.state != State.ABSENT)
        columns = (
            slots,
            cluster.crew.app_of[slots],
            cluster.state[slots],
            cluster.node[slots],
            cluster.generation[slots],
            cluster.born_at[slots] + self._epoch,
            cluster.running_since[slots] + self._epoch,
            cluster.unschedulable_since[slots] + self._epoch,
            cluster.pinned[slots],
            self._used(reading)[slots],
        )
        usages = _Usages(cluster, reading)
        for slot, app_index, state, node, generation, born_at, running, stuck, pinned, used in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            app = apps[app_index]
            uid = uid_of(slot, generation)
            yield Executor(
                namespace=NAMESPACE,
                name=f"{app.name}-exec-{uid}",
                uid=uid,
                application=app.name,
                executor_id=uid,
                resource_profile="0",
                topology=app.topology,
                component=app.name,
                phase=_PHASES[state],
                created_at=born_at,
                node=names[node] if node >= 0 else None,
                requests=app.requests,
                cores=app.cores,
                last_gate_since=born_at if state == State.GATED else None,
                running_since=None if running != running else running,  # noqa: PLR0124 -- NaN
                unschedulable_since=None if stuck != stuck else stuck,  # noqa: PLR0124 -- NaN
                graceful=True,
                pinned=pinned,
                usage=None if used != used else usages.of(app, node, used),  # noqa: PLR0124 -- NaN
            )

    def _used(self, reading: Reading) -> FloatArray:
        if not reading.available:
            return np.full(len(self._cluster.crew), np.nan)
        return reading.executor_cpu

    def _with_failures(self, failed: dict[str, int]) -> tuple[Topology, ...]:
        if not failed:
            return self._topologies
        return tuple(replace(each, failed_executors=failed.get(each.key, 0)) for each in self._topologies)


class _Usages:
    """What is measured of executors, from the cores that they use."""

    def __init__(self, cluster: Cluster, reading: Reading) -> None:
        self._speed = cluster.fleet.speed.tolist()
        self._slowdown = np.nan_to_num(reading.slowdown, nan=1.0).tolist()

    def of(self, app: App, node: int, used: float) -> ExecutorUsage:
        work = used * self._speed[node]
        task_seconds = None
        if app.task_seconds is not None:
            task_seconds = app.task_seconds * self._slowdown[node] / self._speed[node]
        return ExecutorUsage(
            cpu_cores=used,
            memory_bytes=app.requests.memory_bytes,
            records_per_second=work * app.records_per_core,
            bytes_per_second=work * app.bytes_per_core,
            task_seconds=task_seconds,
            state_bytes=app.state_bytes,
        )


def _health(reading: Reading) -> MetricsHealth:
    if reading.available:
        return MetricsHealth(available=True, reason="Available")
    return MetricsHealth(available=False, reason="Unreachable", message="Prometheus does not answer")
