"""The node's figures under node-exporter's names, for a node that is a cgroup with a quota.

A node of 1.5 cores has a whole cpu 0 and half a cpu 1: over all modes the seconds of a cpu grow by its share
of a core per second, and what the node's pods don't use of it is idle. So busy ÷ total is 1 exactly when the
quota is used up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.testbed.kubelet.cgroups import CpuUse, MemoryUse
from tests.testbed.kubelet.exposition import Sample
from tests.testbed.kubelet.figures import InterfaceFigures

MAX_OWED_SECONDS = 0.5
LOAD_MINUTES = (1, 5, 15)
OTHER_MODES = ("iowait", "irq", "nice", "softirq", "steal")
PRESSURES = {
    ("cpu", "some"): "cpu_waiting",
    ("memory", "some"): "memory_waiting",
    ("memory", "full"): "memory_stalled",
    ("io", "some"): "io_waiting",
    ("io", "full"): "io_stalled",
}


@dataclass(frozen=True, slots=True)
class Capacity:
    name: str
    cores: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Processor:
    """Seconds in each mode of one of the node's cpus."""

    user: float
    system: float
    idle: float


@dataclass(frozen=True, slots=True)
class Split:
    """What a node used, as time in user and in system mode, neither of which ever falls.

    The kernel samples the modes and measures the sum, so the sampled share of the sum can fall. A counter that does
    looks to Prometheus as if it had begun again.
    """

    user_seconds: float = 0.0
    system_seconds: float = 0.0

    def after(self, cpu: CpuUse) -> Split:
        sampled = cpu.user_seconds + cpu.system_seconds
        wanted = cpu.used_seconds * (cpu.user_seconds / sampled if sampled else 1.0)
        gain = max(0.0, cpu.used_seconds - self.user_seconds - self.system_seconds)
        user = min(max(wanted - self.user_seconds, 0.0), gain)
        # In this order: adding the whole gain first can round a small system time away.
        return Split(self.user_seconds + user, self.system_seconds + (gain - user))


def processors(split: Split, *, cores: float, idle_seconds: float) -> list[Processor]:
    """The node's cpus."""
    shares = [min(1.0, cores - index) / cores for index in range(max(1, -int(-cores // 1)))]
    return [Processor(split.user_seconds * s, split.system_seconds * s, idle_seconds * s) for s in shares]


@dataclass(frozen=True, slots=True)
class Idling:
    """Counts what a node's pods left unused of its cores.

    The kernel enforces a quota by periods, so use runs ahead of it by a little; that much is owed and taken
    from the next gain. More is not: without a quota, pods may use more than the node says it has.
    """

    at: float
    used_seconds: float
    idle_seconds: float = 0.0
    owed_seconds: float = 0.0

    def after(self, now: float, used_seconds: float, *, cores: float) -> Idling:
        gain = cores * (now - self.at) - (used_seconds - self.used_seconds) - self.owed_seconds
        owed = min(max(0.0, -gain), cores * MAX_OWED_SECONDS)
        return Idling(now, used_seconds, self.idle_seconds + max(0.0, gain), owed)


@dataclass(frozen=True, slots=True)
class Load:
    """Load averages: cores used and waited for, averaged with the kernel's three decays."""

    at: float
    demand_seconds: float
    averages: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def after(self, now: float, demand_seconds: float) -> Load:
        elapsed = now - self.at
        if elapsed <= 0:
            return self
        rate = (demand_seconds - self.demand_seconds) / elapsed
        one, five, fifteen = (
            average + (rate - average) * (1 - math.exp(-elapsed / minutes / 60))
            for average, minutes in zip(self.averages, LOAD_MINUTES, strict=True)
        )
        return Load(now, demand_seconds, (one, five, fifteen))


def load_samples(load: Load) -> Iterator[Sample]:
    for minutes, average in zip(LOAD_MINUTES, load.averages, strict=True):
        yield Sample(f"node_load{minutes}", average)


def cpu_samples(cpus: Sequence[Processor]) -> Iterator[Sample]:
    for index, cpu in enumerate(cpus):
        modes = {"idle": cpu.idle, "system": cpu.system, "user": cpu.user} | dict.fromkeys(OTHER_MODES, 0.0)
        for mode, seconds in sorted(modes.items()):
            yield Sample("node_cpu_seconds_total", seconds, {"cpu": str(index), "mode": mode}, "counter")


def memory_samples(capacity: Capacity, memory: MemoryUse) -> Iterator[Sample]:
    total = capacity.memory_bytes
    yield Sample("node_memory_MemTotal_bytes", total)
    yield Sample("node_memory_MemAvailable_bytes", max(0, total - memory.working_set_bytes))
    yield Sample("node_memory_MemFree_bytes", max(0, total - memory.usage_bytes))
    yield Sample("node_memory_Cached_bytes", memory.cache_bytes)
    yield Sample("node_memory_Buffers_bytes", 0)


def network_samples(interfaces: Sequence[InterfaceFigures], speeds: Mapping[str, int]) -> Iterator[Sample]:
    """`speeds`: bytes per second of the interfaces whose links are limited."""
    for face in interfaces:
        labels = {"device": face.name}
        for name, value in (
            ("receive_bytes", face.received_bytes),
            ("receive_packets", face.received_packets),
            ("receive_errs", face.receive_errors),
            ("receive_drop", face.receive_drops),
            ("transmit_bytes", face.sent_bytes),
            ("transmit_packets", face.sent_packets),
            ("transmit_errs", face.send_errors),
            ("transmit_drop", face.send_drops),
        ):
            yield Sample(f"node_network_{name}_total", value, labels, "counter")
        yield Sample("node_network_up", 1, labels)
        if face.name in speeds:
            yield Sample("node_network_speed_bytes", speeds[face.name], labels)


def pressure_samples(pressures: Mapping[tuple[str, str], float | None]) -> Iterator[Sample]:
    for key, name in PRESSURES.items():
        seconds = pressures.get(key)
        if seconds is not None:
            yield Sample(f"node_pressure_{name}_seconds_total", seconds, {}, "counter")


def name_samples(capacity: Capacity, *, boot_seconds: float, now: float) -> Iterator[Sample]:
    labels = {
        "nodename": capacity.name,
        "sysname": "Linux",
        "machine": "",
        "release": "",
        "version": "",
        "domainname": "",
    }
    yield Sample("node_uname_info", 1, labels)
    yield Sample("node_boot_time_seconds", boot_seconds)
    yield Sample("node_time_seconds", now)
