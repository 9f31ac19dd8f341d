"""Reads what a node's pods use, for its metrics pages."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from tests.testbed.kubelet import exporter, figures, quantity
from tests.testbed.kubelet.container import Container
from tests.testbed.kubelet.exposition import Sample
from tests.testbed.kubelet.figures import ContainerFigures, InterfaceFigures, NodeFigures, PodFigures
from tests.testbed.kubelet.interfaces import interfaces
from tests.testbed.kubelet.node import NodeAgent
from tests.testbed.kubelet.status import Running
from tests.testbed.kubelet.worker import PodWorker


class Observer:
    """One node's metrics pages. Reading them moves its idle and load figures on."""

    def __init__(self, agent: NodeAgent) -> None:
        self._agent = agent
        self._host = agent.host
        node = agent.host.node
        cores = node.cpu_quota_cores or float(quantity.parse(node.capacity.get("cpu", "1")))
        memory = int(quantity.parse(node.capacity.get("memory", "4Gi")))
        self._capacity = exporter.Capacity(node.name, cores, memory)
        now, used = time.time(), self._host.cgroups.cpu(self._host.cgroup).used_seconds
        self._begun = now
        self._idling = exporter.Idling(now, used)
        self._split = exporter.Split()
        self._load = exporter.Load(now, self._demand(used))

    def _demand(self, used_seconds: float) -> float:
        waited = self._host.cgroups.pressure_seconds(self._host.cgroup, "cpu", "some")
        return used_seconds + (waited or 0.0)

    def cadvisor(self) -> Iterable[Sample]:
        return figures.cadvisor(self._figures())

    def resource(self) -> Iterable[Sample]:
        return figures.resource(self._figures())

    def exporter(self) -> Iterable[Sample]:
        """What node-exporter would say of this node."""
        host, capacity, now = self._host, self._capacity, time.time()
        cpu = host.cgroups.cpu(host.cgroup)
        self._idling = self._idling.after(now, cpu.used_seconds, cores=capacity.cores)
        self._load = self._load.after(now, self._demand(cpu.used_seconds))
        self._split = self._split.after(cpu)
        cpus = exporter.processors(self._split, cores=capacity.cores, idle_seconds=self._idling.idle_seconds)
        pressures = {key: host.cgroups.pressure_seconds(host.cgroup, *key) for key in exporter.PRESSURES}
        yield from exporter.cpu_samples(cpus)
        yield from exporter.memory_samples(capacity, host.cgroups.memory(host.cgroup))
        yield from exporter.network_samples(self._interfaces(), {})
        yield from exporter.pressure_samples(pressures)
        yield from exporter.load_samples(self._load)
        yield from exporter.name_samples(capacity, boot_seconds=self._begun, now=now)

    def _interfaces(self) -> list[InterfaceFigures]:
        """Those of its network namespace, else one that stands for the traffic of all its pods."""
        if self._host.node.netns:
            return interfaces(Path("/run/netns") / self._host.node.netns)
        return [self._agent.traffic.read()] if self._agent.traffic else []

    def _figures(self) -> NodeFigures:
        host = self._host
        return NodeFigures(
            cgroup=host.cgroup,
            cpu=host.cgroups.cpu(host.cgroup),
            memory=host.cgroups.memory(host.cgroup),
            pods=[self._pod(worker) for worker in self._agent.workers.values() if worker.habitat.present],
            interfaces=self._interfaces(),
        )

    def _pod(self, worker: PodWorker) -> PodFigures:
        metadata, groups = worker.pod["metadata"], self._host.cgroups
        running = [c for c in worker.containers if isinstance(c.status.state, Running)]
        return PodFigures(
            namespace=metadata["namespace"],
            name=metadata["name"],
            cgroup=worker.habitat.cgroup,
            cpu=groups.cpu(worker.habitat.cgroup),
            memory=groups.memory(worker.habitat.cgroup),
            containers=[self._container(worker, container) for container in running],
            interfaces=[worker.habitat.traffic.read()] if worker.habitat.traffic else [],
        )

    def _container(self, worker: PodWorker, container: Container) -> ContainerFigures:
        groups, status = self._host.cgroups, container.status
        number = container.attempt.number if container.attempt else 0
        name = worker.habitat.container_cgroup(container.name, number)
        limit = container.spec.get("resources", {}).get("limits", {}).get("cpu")
        return ContainerFigures(
            name=container.name,
            image=status.image,
            identifier=status.container_id,
            cgroup=name,
            started=status.state.started if isinstance(status.state, Running) else 0.0,
            restarts=status.restarts,
            cpu=groups.cpu(name),
            memory=groups.memory(name),
            cpu_limit_cores=None if limit is None else float(quantity.parse(limit)),
            oom_kills=groups.oom_kills(name),
        )
