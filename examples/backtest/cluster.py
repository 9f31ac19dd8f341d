"""Two days of a pool that knows no Ballast: what kube-prometheus-stack keeps of eight nodes and three applications.

The executors of one application stand together, as they came; its load peaks at noon, another one's in the evening.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

START = 1_794_960_000
"""2026-11-18T00:00:00Z."""
DAYS = 2
_DAY, _EVERY, _LEAD = 86_400, 60, 600
_NODES = 8
_CORES, _OFFERED = 8, 7.6
_REQUEST_CORES, _REQUEST_BYTES = 1.2, 5 * 2**30
_MEMORY_BYTES, _SYSTEM_CORES = 32 * 2**30, 0.3
_OF_API = 'job="kube-state-metrics"'


@dataclass(frozen=True, slots=True)
class Application:
    name: str
    executors: int
    quiet_cores: float
    """Of one executor, at night."""
    busy_cores: float
    """At the peak."""
    peak_hour: float

    def cores(self, second: float) -> float:
        hours = (second / 3600.0 - self.peak_hour + 12.0) % 24.0 - 12.0
        return self.quiet_cores + (self.busy_cores - self.quiet_cores) * math.exp(-((hours / 3.5) ** 2))


APPLICATIONS = (
    Application("clicks", 8, quiet_cores=0.5, busy_cores=2.3, peak_hour=12.5),
    Application("sessions", 8, quiet_cores=0.6, busy_cores=1.3, peak_hour=20.0),
    Application("orders", 8, quiet_cores=0.6, busy_cores=0.8, peak_hour=15.0),
)


def openmetrics() -> Iterator[str]:
    """Lines with their times. Counters begin a little earlier, so that the first rates are known."""
    random = np.random.default_rng(5)
    executors = [(app, number) for app in APPLICATIONS for number in range(1, app.executors + 1)]
    used, busy = np.zeros(len(executors)), np.zeros(_NODES)
    node_of = np.arange(len(executors)) * _NODES // len(executors)
    for second in range(START - _LEAD, START + DAYS * _DAY + _EVERY, _EVERY):
        now = np.array([app.cores(second - START) for app, _ in executors])
        now *= 1.0 + 0.06 * random.standard_normal(len(now))
        used += _EVERY * now
        busy += _EVERY * np.minimum(np.bincount(node_of, weights=now, minlength=_NODES) + _SYSTEM_CORES, _CORES)
        for node in range(_NODES):
            yield from _node(node, busy[node], second)
        for (app, number), seconds, node in zip(executors, used, node_of.tolist(), strict=True):
            yield from _executor(app.name, number, node, seconds, second)
    yield "# EOF\n"


def _name(node: int) -> str:
    return f"streaming-{node + 1}"


def _node(node: int, busy: float, second: int) -> Iterator[str]:
    address, name = f"10.0.1.{node + 11}", _name(node)
    exporter = f'job="node-exporter",instance="{address}:9100"'
    yield f'node_cpu_seconds_total{{{exporter},cpu="0",mode="user"}} {busy:.3f} {second}\n'
    for cpu in range(_CORES):
        yield f'node_cpu_seconds_total{{{exporter},cpu="{cpu}",mode="idle"}} {second - START + _LEAD} {second}\n'
    yield f"node_memory_MemTotal_bytes{{{exporter}}} {_MEMORY_BYTES} {second}\n"
    yield f"node_memory_MemAvailable_bytes{{{exporter}}} {_MEMORY_BYTES // 3} {second}\n"
    yield f'up{{job="kubelet",node="{name}",instance="{address}:10250"}} 1 {second}\n'
    for resource, amount in (("cpu", _OFFERED), ("memory", 30 * 2**30)):
        yield f'kube_node_status_allocatable{{{_OF_API},node="{name}",resource="{resource}"}} {amount} {second}\n'


def _executor(app: str, number: int, node: int, used: float, second: int) -> Iterator[str]:
    pod = f'namespace="analytics",pod="{app}-exec-{number}"'
    where = f'{pod},node="{_name(node)}",instance="10.0.1.{node + 11}:10250"'
    container = f'job="kubelet",metrics_path="/metrics/cadvisor",container="spark-kubernetes-executor",{where}'
    yield f"container_cpu_usage_seconds_total{{{container}}} {used:.3f} {second}\n"
    yield f"container_memory_working_set_bytes{{{container}}} {4 * 2**30} {second}\n"
    yield f'kube_pod_info{{{_OF_API},{pod},node="{_name(node)}"}} 1 {second}\n'
    labels = f'label_spark_role="executor",label_spark_app_selector="spark-{app}"'
    yield f"kube_pod_labels{{{_OF_API},{pod},{labels}}} 1 {second}\n"
    for resource, amount in (("cpu", _REQUEST_CORES), ("memory", _REQUEST_BYTES)):
        yield f'kube_pod_container_resource_requests{{{_OF_API},{pod},resource="{resource}"}} {amount} {second}\n'
