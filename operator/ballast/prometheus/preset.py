"""The queries of each preset: what a stock Prometheus holds, asked in the words it holds it in.

Every query yields an instant vector, except the batches' samples. Node series are identified by the label `node`, or
by `instance` when that is missing; executor series by `namespace` and `pod`. Spark's own have `application_id` and
`executor_id`, and the driver's pod in `namespace` and `pod`. `$window` stands for the policy's metric window, `$step`
for a part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ballast.enums import Preset

_EXPORTED, _MEASURED = "$exported", "$measured"
"""In the text of a query, these stand for the most series of one namespace: of what pods export about themselves, and
of what nodes' exporters measure of nodes and pods. Those exporters are in one namespace, for all nodes.
"""
_MOST_SERIES = {_EXPORTED: 5_000, _MEASURED: 20_000}
_FEWER_SERIES = ({_EXPORTED: 500, _MEASURED: 5_000}, {_EXPORTED: 50, _MEASURED: 500})
"""To be asked for instead, one after the other: with many namespaces the answer may still be too long to be read."""
_STEPS, _LONGEST_STEP_SECONDS = 20, 15
"""At so many points of the window, or more often, a value that changes with every batch is read."""


@dataclass(frozen=True, slots=True)
class Queries:
    """One PromQL query per signal.

    Node CPU in cores used, memory in bytes used, network in bits per second; ages in seconds.
    Executor CPU in cores, memory in bytes, network in bytes and records per second; seconds and bytes per task.
    """

    by_signal: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_each_namespace(cls, texts: Mapping[str, str]) -> Queries:
        """Queries with the label `namespace`, of each of which as many series as its pods may export are read."""
        return cls({name: _bounded(text) for name, text in texts.items()})

    def rendered(self, window_seconds: float) -> dict[str, str]:
        return self._rendered(window_seconds, _MOST_SERIES)

    def shortened(self, window_seconds: float) -> dict[str, list[str]]:
        """Of the bounded queries: what to ask instead, one after the other, where the answer is too long to be read."""
        bounded = Queries(
            {name: text for name, text in self.by_signal.items() if _EXPORTED in text or _MEASURED in text}
        )
        found = [bounded._rendered(window_seconds, most) for most in _FEWER_SERIES]
        return {name: [each[name] for each in found] for name in bounded.by_signal}

    def _rendered(self, window_seconds: float, most_series: Mapping[str, int]) -> dict[str, str]:
        window = max(1, round(window_seconds))
        step = max(1, min(window // _STEPS, _LONGEST_STEP_SECONDS))
        values = {"$window": f"{window}s", "$step": f"{step}s"} | {
            name: str(most) for name, most in most_series.items()
        }
        return {name: _filled(text, values) for name, text in self.by_signal.items()}


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


# The queries bound what a tenant's pods export: the number of series by namespace, and their length by what a name or
# an id may be. An answer that is too long could not be read, and all tenants would be without that signal.

# Only an IPv6 address has a `[`, so that the values of an answer can be counted before it is read. All other printable
# ASCII but `\` is listed: with `[^[]`, a Prometheus built with Go 1.22 or newer takes seconds for each expression.
_CHARACTER = "[]-~ -Z]"
_NAMESPACE = f'namespace=~"{_CHARACTER}{{0,63}}"'
_INSTANCE = f'instance=~"[[]?{_CHARACTER}{{0,300}}"'
FROM_POD = f'{_NAMESPACE},pod=~"{_CHARACTER}{{0,253}}"'
OF_NODE = f'{_NAMESPACE},node=~"{_CHARACTER}{{0,253}}",{_INSTANCE}'
OF_EXECUTOR = f'{_NAMESPACE},pod=~"{_CHARACTER}{{1,242}}-exec-[0-9]{{1,10}}",{_INSTANCE}'


def _bounded(query: str, most: str = _EXPORTED) -> str:
    return f"topk by (namespace) ({most}, {query})"


# What Spark exports.

_ID = "[-_.A-Za-z0-9]{1,63}"
_TASK_RUNNER = f'application_id=~"{_ID}",executor_id=~"[0-9]{{1,10}}|driver",{FROM_POD}'
_BY_TASK_RUNNER = "sum by (namespace, pod, application_id, executor_id)"
_BY_APPLICATION = "(namespace, pod, application_id)"
_NAMED = '"application_id", "spark-$1", "__name__", "metrics_spark_([0-9a-f]{32})_driver_.+"'
_BATCHES = "batchMilliseconds"
"""Several values in the window, each of the application's slowest query at that time."""


def _rate(metric: str) -> str:
    return f"rate(metrics_executor_{metric}_total{{{_TASK_RUNNER}}}[$window])"


def _by_application(function: str, metric: str, at: str = "") -> str:
    """A metric of streaming queries. Its application is in a label, or in the name that Spark gives its metrics.

    The id in the name counts only without the label: two series of one name that became one would end the whole query.
    """
    name = f'__name__=~"metrics_.+_driver_spark_streaming_.+_{metric}",{FROM_POD}'
    labeled = f'{{{name},application_id=~"{_ID}"}}{at}'
    named = f'label_replace({{{name},application_id=""}}{at}, {_NAMED})'
    return f"({function} by {_BY_APPLICATION} ({labeled}) or {function} by {_BY_APPLICATION} ({named}))"


def _ranged(function: str, metric: str) -> str:
    """Its values in the window, of the series that there are at its end: others may come and go with each scrape."""
    there = _bounded(_by_application(function, metric, " @ end()"))
    return f"({_by_application(function, metric)} and on {_BY_APPLICATION} {there})[$window:$step]"


_TASKS = f"({_BY_TASK_RUNNER} ({_rate('completedTasks')}) > 0)"

_SPARK = {
    "executorTaskSeconds": _bounded(f"{_BY_TASK_RUNNER} ({_rate('totalDuration_seconds')}) / {_TASKS}"),
    "executorSlots": _bounded(
        f"{_BY_TASK_RUNNER} ({_rate('totalDuration_seconds')})"
        f" / ({_BY_TASK_RUNNER} (metrics_executor_maxTasks{{{_TASK_RUNNER}}}) > 0)"
    ),
    "executorBytes": _bounded(
        f"{_BY_TASK_RUNNER} ({_rate('totalInputBytes_bytes')} + {_rate('totalShuffleRead_bytes')}) / {_TASKS}"
    ),
    "stateBytes": _bounded(_by_application("sum", "states_usedBytes_Value")),
    _BATCHES: _ranged("max", "latency_Value"),
}

SHUFFLE = Queries(
    {
        "executorShuffleRead": _bounded(f"{_BY_TASK_RUNNER} ({_rate('totalShuffleRead_bytes')})"),
        "executorShuffleWrite": _bounded(f"{_BY_TASK_RUNNER} ({_rate('totalShuffleWrite_bytes')})"),
    }
)
"""Bytes per second. Only `report` asks for them, and `snapshot`, for reports about it: no decision depends on them."""


# What is measured of nodes, and of executors.

_BY_NODE = "by (namespace, node, instance)"
_IDLE = 'mode!~"idle|iowait|steal"'
_WIRES = 'device!~"lo|(veth|cali|cilium|cni|lxc|docker|flannel|tunl).*"'
_INTERFACES = _WIRES.replace("device", "interface")
_EXPORTER = f'job="node-exporter",{OF_NODE}'


def _node(query: str) -> str:
    return _bounded(query, _MEASURED)


_STACK_NODES = {
    "nodeCpu": _node(f"sum {_BY_NODE} (rate(node_cpu_seconds_total{{{_EXPORTER},{_IDLE}}}[$window]))"),
    "nodeMemory": _node(
        f"sum {_BY_NODE} (node_memory_MemTotal_bytes{{{_EXPORTER}}} - node_memory_MemAvailable_bytes{{{_EXPORTER}}})"
    ),
    "nodeNetworkReceive": _node(
        f"8 * sum {_BY_NODE} (rate(node_network_receive_bytes_total{{{_EXPORTER},{_WIRES}}}[$window]))"
    ),
    "nodeNetworkTransmit": _node(
        f"8 * sum {_BY_NODE} (rate(node_network_transmit_bytes_total{{{_EXPORTER},{_WIRES}}}[$window]))"
    ),
    "nodePressure": _node(f"sum {_BY_NODE} (rate(node_pressure_cpu_waiting_seconds_total{{{_EXPORTER}}}[$window]))"),
    "nodeAge": _node(f'time() - max {_BY_NODE} (timestamp(node_cpu_seconds_total{{{_EXPORTER},mode="idle"}}))'),
}

_ROOT = f'id="/",pod="",{OF_NODE}'
"""The node itself, as its kubelet exports it. A series that was scraped from a pod has the label `pod`, and is none."""

_CADVISOR_NODES = {
    "nodeCpu": _node(f"sum {_BY_NODE} (rate(container_cpu_usage_seconds_total{{{_ROOT}}}[$window]))"),
    "nodeMemory": _node(f"sum {_BY_NODE} (container_memory_working_set_bytes{{{_ROOT}}})"),
    "nodeNetworkReceive": _node(
        f"8 * sum {_BY_NODE} (rate(container_network_receive_bytes_total{{{_ROOT},{_INTERFACES}}}[$window]))"
    ),
    "nodeNetworkTransmit": _node(
        f"8 * sum {_BY_NODE} (rate(container_network_transmit_bytes_total{{{_ROOT},{_INTERFACES}}}[$window]))"
    ),
    "nodePressure": _node(f"sum {_BY_NODE} (rate(container_pressure_cpu_waiting_seconds_total{{{_ROOT}}}[$window]))"),
    "nodeAge": _node(f"time() - max {_BY_NODE} (timestamp(container_cpu_usage_seconds_total{{{_ROOT}}}))"),
}


_KUBELET = 'job="kubelet",metrics_path="/metrics/cadvisor"'
_BY_POD = "by (namespace, pod, instance)"
"""`instance` shows whether a node exports a series about the pod, or the pod exports it about itself."""


def _executors(selector: str) -> dict[str, str]:
    chosen = f"{selector}{',' if selector else ''}{OF_EXECUTOR}"
    containers = f'{chosen},container!="",container!="POD"'
    found = {
        "executorCpu": f"sum {_BY_POD} (rate(container_cpu_usage_seconds_total{{{containers}}}[$window]))",
        "executorMemory": f"sum {_BY_POD} (container_memory_working_set_bytes{{{containers}}})",
        "executorNetwork": (
            f"sum {_BY_POD} (rate(container_network_receive_bytes_total{{{chosen}}}[$window])"
            f" + rate(container_network_transmit_bytes_total{{{chosen}}}[$window]))"
        ),
        "executorThrottling": (
            f"sum {_BY_POD} (rate(container_cpu_cfs_throttled_periods_total{{{containers}}}[$window]))"
            f" / (sum {_BY_POD} (rate(container_cpu_cfs_periods_total{{{containers}}}[$window])) > 0)"
        ),
    }
    return {name: _bounded(text, _MEASURED) for name, text in found.items()}


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
