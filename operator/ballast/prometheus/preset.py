"""The queries of each preset: what a stock Prometheus holds, asked in the words it holds it in.

Every query yields an instant vector, except the batches' samples. Node series are identified by the label `node`, or
by `instance` when that is missing; executor series by `namespace` and `pod`. Spark's own have `application_id` and
`executor_id`, and the driver's pod in `namespace` and `pod`. `$window` stands for the policy's metric window, `$step`
for a part of it, `$series` for the most series of one namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ballast.enums import Preset

_IDLE = 'mode!~"idle|iowait|steal"'
_WIRES = 'device!~"lo|(veth|cali|cilium|cni|lxc|docker|flannel|tunl).*"'
_WIRED = f'job="node-exporter",{_WIRES}'
_INTERFACES = _WIRES.replace("device", "interface")
_EXECUTOR = 'pod=~".+-exec-[0-9]+"'
_KUBELET = 'job="kubelet",metrics_path="/metrics/cadvisor"'


@dataclass(frozen=True, slots=True)
class Queries:
    """One PromQL query per signal.

    Node CPU in cores used, memory in bytes used, network in bits per second; ages in seconds.
    Executor CPU in cores, memory in bytes, network in bytes and records per second; seconds and bytes per task.
    """

    by_signal: Mapping[str, str] = field(default_factory=dict)

    def rendered(self, window_seconds: float) -> dict[str, str]:
        return self._rendered(window_seconds, MOST_SERIES)

    def shortened(self, window_seconds: float) -> dict[str, list[str]]:
        """Of the bounded queries: what to ask instead, one after the other, where the answer is too long to be read."""
        bounded = Queries({name: text for name, text in self.by_signal.items() if _SERIES in text})
        found = [bounded._rendered(window_seconds, most) for most in _FEWER_SERIES]
        return {name: [each[name] for each in found] for name in bounded.by_signal}

    def _rendered(self, window_seconds: float, most_series: int) -> dict[str, str]:
        window = max(1, round(window_seconds))
        step = max(1, min(window // _STEPS, _LONGEST_STEP_SECONDS))
        values = (("$window", f"{window}s"), ("$step", f"{step}s"), (_SERIES, str(most_series)))
        return {name: _filled(text, values) for name, text in self.by_signal.items()}


def _filled(text: str, values: Iterable[tuple[str, str]]) -> str:
    for name, value in values:
        text = text.replace(name, value)
    return text


_STEPS, _LONGEST_STEP_SECONDS = 20, 15
"""At so many points of the window, or more often, a value that changes with every batch is read."""

# The query bounds what a tenant's pods export: the number of series by namespace, their length by what an id may be. An
# answer that is too long could not be read, and all tenants would be without that signal.

_SERIES = "$series"
MOST_SERIES = 5_000
"""In one namespace. In many namespaces that are still too many for one answer."""
_FEWER_SERIES = (500, 50)
_ID = "[-_.A-Za-z0-9]{1,63}"
_TASK_RUNNER = f'application_id=~"{_ID}",executor_id=~"[0-9]{{1,10}}|driver"'
_BY_TASK_RUNNER = "sum by (namespace, pod, application_id, executor_id)"


def _bounded(query: str) -> str:
    return f"topk by (namespace) ({_SERIES}, {query})"


def _rate(metric: str) -> str:
    return f"rate(metrics_executor_{metric}_total{{{_TASK_RUNNER}}}[$window])"


def _by_application(metric: str) -> str:
    """A metric of streaming queries. Its application is in a label, or in the name that Spark gives its metrics."""
    series = f'{{__name__=~"metrics_.+_driver_spark_streaming_.+_{metric}",application_id=~"|{_ID}"}}'
    from_name = '"application_id", "spark-$1", "__name__", "metrics_spark_([0-9a-f]{32})_driver_.+"'
    return f"by (namespace, pod, application_id) (label_replace({series}, {from_name}))"


_TASKS = f"({_BY_TASK_RUNNER} ({_rate('completedTasks')}) > 0)"
_BATCHES = "batchMilliseconds"
"""Several values in the window, each of the application's slowest query at that time."""

_SPARK = {
    "executorTaskSeconds": _bounded(f"{_BY_TASK_RUNNER} ({_rate('totalDuration_seconds')}) / {_TASKS}"),
    "executorSlots": _bounded(
        f"{_BY_TASK_RUNNER} ({_rate('totalDuration_seconds')})"
        f" / ({_BY_TASK_RUNNER} (metrics_executor_maxTasks{{{_TASK_RUNNER}}}) > 0)"
    ),
    "executorBytes": _bounded(
        f"{_BY_TASK_RUNNER} ({_rate('totalInputBytes_bytes')} + {_rate('totalShuffleRead_bytes')}) / {_TASKS}"
    ),
    "stateBytes": _bounded(f"sum {_by_application('states_usedBytes_Value')}"),
    _BATCHES: _bounded(f"max {_by_application('latency_Value')}") + "[$window:$step]",
}

SHUFFLE = Queries(
    {
        "executorShuffleRead": _bounded(f"{_BY_TASK_RUNNER} ({_rate('totalShuffleRead_bytes')})"),
        "executorShuffleWrite": _bounded(f"{_BY_TASK_RUNNER} ({_rate('totalShuffleWrite_bytes')})"),
    }
)
"""Bytes per second. Only `report` asks for them, and `snapshot`, for reports about it: no decision depends on them."""

_STACK_NODES = {
    "nodeCpu": f'sum by (node, instance) (rate(node_cpu_seconds_total{{job="node-exporter",{_IDLE}}}[$window]))',
    "nodeMemory": (
        'sum by (node, instance) (node_memory_MemTotal_bytes{job="node-exporter"}'
        ' - node_memory_MemAvailable_bytes{job="node-exporter"})'
    ),
    "nodeNetworkReceive": (
        f"8 * sum by (node, instance) (rate(node_network_receive_bytes_total{{{_WIRED}}}[$window]))"
    ),
    "nodeNetworkTransmit": (
        f"8 * sum by (node, instance) (rate(node_network_transmit_bytes_total{{{_WIRED}}}[$window]))"
    ),
    "nodePressure": (
        'sum by (node, instance) (rate(node_pressure_cpu_waiting_seconds_total{job="node-exporter"}[$window]))'
    ),
    "nodeAge": (
        'time() - max by (node, instance) (timestamp(node_cpu_seconds_total{job="node-exporter",mode="idle"}))'
    ),
}

_ROOT = 'id="/",pod=""'
"""The node itself, as its kubelet exports it. A series that was scraped from a pod has the label `pod`, and is none."""

_CADVISOR_NODES = {
    "nodeCpu": f"sum by (node, instance) (rate(container_cpu_usage_seconds_total{{{_ROOT}}}[$window]))",
    "nodeMemory": f"sum by (node, instance) (container_memory_working_set_bytes{{{_ROOT}}})",
    "nodeNetworkReceive": (
        f"8 * sum by (node, instance) (rate(container_network_receive_bytes_total{{{_ROOT},{_INTERFACES}}}[$window]))"
    ),
    "nodeNetworkTransmit": (
        f"8 * sum by (node, instance) (rate(container_network_transmit_bytes_total{{{_ROOT},{_INTERFACES}}}[$window]))"
    ),
    "nodePressure": (
        f"sum by (node, instance) (rate(container_pressure_cpu_waiting_seconds_total{{{_ROOT}}}[$window]))"
    ),
    "nodeAge": f"time() - max by (node, instance) (timestamp(container_cpu_usage_seconds_total{{{_ROOT}}}))",
}


_BY_POD = "by (namespace, pod, instance)"
"""`instance` shows whether a node exports a series about the pod, or the pod exports it about itself."""


def _executors(selector: str) -> dict[str, str]:
    chosen = f"{selector}{',' if selector else ''}{_EXECUTOR}"
    containers = f'{chosen},container!="",container!="POD"'
    return {
        "executorCpu": (f"sum {_BY_POD} (rate(container_cpu_usage_seconds_total{{{containers}}}[$window]))"),
        "executorMemory": (f"sum {_BY_POD} (container_memory_working_set_bytes{{{containers}}})"),
        "executorNetwork": (
            f"sum {_BY_POD} (rate(container_network_receive_bytes_total{{{chosen}}}[$window])"
            f" + rate(container_network_transmit_bytes_total{{{chosen}}}[$window]))"
        ),
        "executorThrottling": (
            f"sum {_BY_POD} (rate(container_cpu_cfs_throttled_periods_total{{{containers}}}[$window]))"
            f" / (sum {_BY_POD} (rate(container_cpu_cfs_periods_total{{{containers}}}[$window])) > 0)"
        ),
    }


def queries(preset: Preset, overrides: Mapping[str, str]) -> Queries:
    """The preset's queries with the user's own in place of those they override.

    A node query of the user's own is trusted to be fresh, unless an age of the user's own says otherwise: the
    preset's age applies to the preset's series alone.
    """
    nodes = _STACK_NODES if preset is Preset.KUBE_PROMETHEUS_STACK else _CADVISOR_NODES
    selector = _KUBELET if preset is Preset.KUBE_PROMETHEUS_STACK else ""
    displaced = {"nodeAge": "nodeCpu" in overrides, _BATCHES: "batchSeconds" in overrides}
    own = {**nodes, **_executors(selector), **_SPARK}
    return Queries({**{name: text for name, text in own.items() if not displaced.get(name)}, **overrides})
