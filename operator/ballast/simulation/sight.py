"""From the simulated cluster to the Snapshot that one pass decides by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ballast.model import (
    MetricsHealth,
    Node,
    NodeUsage,
    Policy,
    Resources,
    Snapshot,
    Topology,
)
from ballast.simulation.cluster import Cluster
from ballast.simulation.flight import Flights
from ballast.simulation.meter import Reading
from ballast.simulation.roster import Roster

_LEAVING = "DeletionCandidateOfClusterAutoscaler"


class Sight:
    """What stays the same from pass to pass is made once."""

    def __init__(self, cluster: Cluster, policy: Policy, topologies: tuple[Topology, ...], *, epoch: float) -> None:
        self._cluster, self._policy, self._epoch = cluster, policy, epoch
        self._topologies = topologies
        self._roster = Roster(cluster, epoch=epoch)
        fleet = cluster.fleet
        self.locations = fleet.locations(policy.levels)
        self._labels = [fleet.labels(index, policy.levels) for index in range(len(fleet))]
        self._allocatable = [Resources(*row) for row in cluster.allocatable.tolist()]

    def snapshot(self, reading: Reading, flights: Flights, time: float) -> Snapshot:
        return Snapshot(
            taken_at=self._epoch + time,
            nodes=tuple(self._nodes(reading)),
            executors=tuple(self._roster.executors(reading)),
            topologies=self._with_failures(flights.failed_by_topology),
            moves=flights.moves(time),
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
        return MetricsHealth(available=True, reason="Available")
    return MetricsHealth(available=False, reason="Unreachable", message="Prometheus does not answer")
