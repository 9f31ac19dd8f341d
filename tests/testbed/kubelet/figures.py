"""What nodes, pods and containers use, under the names of cAdvisor and of the kubelet's own resource metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.testbed.kubelet.cgroups import PERIOD_MICROSECONDS, CpuUse, MemoryUse
from tests.testbed.kubelet.exposition import Sample


@dataclass(frozen=True, slots=True)
class ContainerFigures:
    name: str
    image: str
    identifier: str
    cgroup: str
    started: float
    restarts: int
    cpu: CpuUse
    memory: MemoryUse
    cpu_limit_cores: float | None
    oom_kills: int


@dataclass(frozen=True, slots=True)
class InterfaceFigures:
    """Counters of one network interface, as the pod or node sees it."""

    name: str
    received_bytes: int = 0
    received_packets: int = 0
    receive_errors: int = 0
    receive_drops: int = 0
    sent_bytes: int = 0
    sent_packets: int = 0
    send_errors: int = 0
    send_drops: int = 0


@dataclass(frozen=True, slots=True)
class PodFigures:
    namespace: str
    name: str
    cgroup: str
    cpu: CpuUse
    memory: MemoryUse
    containers: Sequence[ContainerFigures]
    interfaces: Sequence[InterfaceFigures] = ()


@dataclass(frozen=True, slots=True)
class NodeFigures:
    cgroup: str
    cpu: CpuUse
    memory: MemoryUse
    pods: Sequence[PodFigures]
    interfaces: Sequence[InterfaceFigures] = ()


def _use(labels: Mapping[str, str], cpu: CpuUse, memory: MemoryUse) -> Iterator[Sample]:
    def counter(name: str, value: float, **more: str) -> Sample:
        return Sample(f"container_{name}", value, {**labels, **more}, "counter")

    def gauge(name: str, value: float) -> Sample:
        return Sample(f"container_{name}", value, labels)

    yield counter("cpu_usage_seconds_total", cpu.used_seconds, cpu="total")
    yield counter("cpu_user_seconds_total", cpu.user_seconds)
    yield counter("cpu_system_seconds_total", cpu.system_seconds)
    if cpu.periods:
        yield counter("cpu_cfs_periods_total", cpu.periods)
        yield counter("cpu_cfs_throttled_periods_total", cpu.throttled_periods)
        yield counter("cpu_cfs_throttled_seconds_total", cpu.throttled_seconds)
    yield gauge("memory_usage_bytes", memory.usage_bytes)
    yield gauge("memory_working_set_bytes", memory.working_set_bytes)
    yield gauge("memory_rss", memory.rss_bytes)
    yield gauge("memory_cache", memory.cache_bytes)
    yield gauge("spec_memory_limit_bytes", memory.limit_bytes)


def _network(labels: Mapping[str, str], interfaces: Sequence[InterfaceFigures]) -> Iterator[Sample]:
    for face in interfaces:
        for name, value in (
            ("receive_bytes", face.received_bytes),
            ("receive_packets", face.received_packets),
            ("receive_errors", face.receive_errors),
            ("receive_packets_dropped", face.receive_drops),
            ("transmit_bytes", face.sent_bytes),
            ("transmit_packets", face.sent_packets),
            ("transmit_errors", face.send_errors),
            ("transmit_packets_dropped", face.send_drops),
        ):
            yield Sample(f"container_network_{name}_total", value, {**labels, "interface": face.name}, "counter")


def _container(pod: PodFigures, container: ContainerFigures) -> Iterator[Sample]:
    labels = {
        "container": container.name,
        "id": f"/{container.cgroup}",
        "image": container.image,
        "name": container.identifier.rpartition("/")[2],
        "namespace": pod.namespace,
        "pod": pod.name,
    }
    yield from _use(labels, container.cpu, container.memory)
    yield Sample("container_start_time_seconds", container.started, labels)
    yield Sample("container_last_seen", container.started, labels)
    yield Sample("container_oom_events_total", container.oom_kills, labels, "counter")
    if container.cpu_limit_cores is not None:
        yield Sample("container_spec_cpu_period", PERIOD_MICROSECONDS, labels)
        yield Sample("container_spec_cpu_quota", container.cpu_limit_cores * PERIOD_MICROSECONDS, labels)


def cadvisor(node: NodeFigures) -> Iterator[Sample]:
    """/metrics/cadvisor: the whole node, each pod with an empty container label, each container."""
    blank = {"container": "", "image": "", "name": "", "namespace": "", "pod": ""}
    whole = {**blank, "id": "/"}
    yield from _use(whole, node.cpu, node.memory)
    yield from _network(whole, node.interfaces)
    for pod in node.pods:
        labels = {**blank, "id": f"/{pod.cgroup}", "namespace": pod.namespace, "pod": pod.name}
        yield from _use(labels, pod.cpu, pod.memory)
        yield from _network(labels, pod.interfaces)
        for container in pod.containers:
            yield from _container(pod, container)


def resource(node: NodeFigures) -> Iterator[Sample]:
    """/metrics/resource: what metrics-server reads."""
    yield Sample("node_cpu_usage_seconds_total", node.cpu.used_seconds, {}, "counter")
    yield Sample("node_memory_working_set_bytes", node.memory.working_set_bytes)
    for pod in node.pods:
        owner = {"namespace": pod.namespace, "pod": pod.name}
        yield Sample("pod_cpu_usage_seconds_total", pod.cpu.used_seconds, owner, "counter")
        yield Sample("pod_memory_working_set_bytes", pod.memory.working_set_bytes, owner)
        for container in pod.containers:
            labels = {"container": container.name, **owner}
            yield Sample("container_cpu_usage_seconds_total", container.cpu.used_seconds, labels, "counter")
            yield Sample("container_memory_working_set_bytes", container.memory.working_set_bytes, labels)
            yield Sample("container_start_time_seconds", container.started, labels)
    yield Sample("resource_scrape_error", 0)
