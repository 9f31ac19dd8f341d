"""The queries of each preset: what a stock Prometheus holds, asked in the words it holds it in.

Every query yields an instant vector, except the batches' samples. Node series are identified by the label `node`, or
by `instance` when that is missing; executor series by `namespace` and `pod`. Spark's own have `application_id` and
`executor_id`, and the driver's pod in `namespace` and `pod`. `$window` stands for the policy's metric window, `$step`
for a part of it. Every selector has `$matchers`, by which one cluster of several is chosen.

Values of nodes and executors are sums over processors, devices and containers. Several clusters, or several replicas of
one Prometheus, would be added up, too: the queries NODE_SOURCES and EXECUTOR_SOURCES find what has several sources.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ballast.enums import Preset

NODE_SOURCES, EXECUTOR_SOURCES = "nodeSources", "executorSources"
"""Signals: how many sources a value has, where these are several. Their label `signal` names the value's."""
SOURCES = (NODE_SOURCES, EXECUTOR_SOURCES)
MATCHERS = "$matchers"

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
    matchers: Mapping[str, str] = field(default_factory=dict)
    """Label → value, of all series that are read."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Of the signals whose sources are counted: what gives one series for each source, with the labels that it has."""

    @classmethod
    def of_each_namespace(cls, texts: Mapping[str, str]) -> Queries:
        """Queries with the label `namespace`, of each of which as many series as its pods may export are read."""
        return cls({name: _bounded(text) for name, text in texts.items()})

    def rendered(self, window_seconds: float) -> dict[str, str]:
        return self._rendered(window_seconds, _MOST_SERIES)

    def shortened(self, window_seconds: float) -> dict[str, list[str]]:
        """Of the bounded queries: what to ask instead, one after the other, where the answer is too long to be read."""
        bounded = Queries(
            {name: text for name, text in self.by_signal.items() if _EXPORTED in text or _MEASURED in text},
            self.matchers,
        )
        found = [bounded._rendered(window_seconds, most) for most in _FEWER_SERIES]
        return {name: [each[name] for each in found] for name in bounded.by_signal}

    def with_more(self, more: Queries) -> Queries:
        """These queries and those of `more`, of the same series."""
        return replace(self, by_signal={**more.by_signal, **self.by_signal})

    def sources_of(self, signal: str, group: Mapping[str, str], *, most: int) -> str:
        """What gives a series for each source of one value, at most so many. `group`: the value's labels."""
        return f"topk({most}, {_filled(self.sources[signal], {MATCHERS: matching({**self.matchers, **group})})})"

    def _rendered(self, window_seconds: float, most_series: Mapping[str, int]) -> dict[str, str]:
        window = max(1, round(window_seconds))
        step = max(1, min(window // _STEPS, _LONGEST_STEP_SECONDS))
        values = {"$window": f"{window}s", "$step": f"{step}s"} | {
            name: str(most) for name, most in most_series.items()
        }
        values[MATCHERS] = matching(self.matchers)
        return {name: _filled(text, values) for name, text in self.by_signal.items()}


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def matching(labels: Mapping[str, str]) -> str:
    """What selects series with these labels, to be followed by further conditions."""
    return "".join(f"{name}={json.dumps(value, ensure_ascii=False)}," for name, value in labels.items())


@dataclass(frozen=True, slots=True)
class Jobs:
    """By which labels `job` the usual installations know their scrapes; those of a policy take their place.

    kube-prometheus-stack's come first. The others are those of Grafana's Alloy, its older agent and its Kubernetes
    charts, and of the charts of the single exporters.
    """

    node_exporter: tuple[str, ...] = ()
    cadvisor: tuple[str, ...] = ()

    @property
    def of_node_exporter(self) -> str:
        return job(self.node_exporter or _NODE_EXPORTER_JOBS)

    @property
    def of_cadvisor(self) -> str:
        return job(self.cadvisor or _CADVISOR_JOBS)


_NODE_EXPORTER_JOBS = (
    "node-exporter", "prometheus-node-exporter", "integrations/node_exporter", "integrations/unix",
)  # fmt: skip
_CADVISOR_JOBS = ("kubelet", "integrations/kubernetes/cadvisor")
KUBE_STATE_METRICS_JOBS = ("kube-state-metrics", "integrations/kubernetes/kube-state-metrics")
_ALL_JOBS = Jobs()


def job(jobs: Iterable[str]) -> str:
    """What selects series of these jobs."""
    return f'job=~"{"|".join(name.replace(".", "[.]") for name in jobs)}"'


# The queries bound what a tenant's pods export: the number of series by namespace, and their length by what a name or
# an id may be. An answer that is too long could not be read, and all tenants would be without that signal.

# Only an IPv6 address has a `[`, so that the values of an answer can be counted before it is read. All other printable
# ASCII but `\` is listed: with `[^[]`, a Prometheus built with Go 1.22 or newer takes seconds for each expression.
_CHARACTER = "[]-~ -Z]"
_NAMESPACE = f'{MATCHERS}namespace=~"{_CHARACTER}{{0,63}}"'
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
"""Several values in the window, each of the slowest of the application's queries that processed records then."""


def _rate(metric: str) -> str:
    return f"rate(metrics_executor_{metric}_total{{{_TASK_RUNNER}}}[$window])"


def _by_application(function: str, metric: str, at: str = "", *, processing: bool = False) -> str:
    """A metric of streaming queries. Its application is in a label, or in the name that Spark gives its metrics.

    The id in the name counts only without the label: two series of one name that became one would end the whole query.
    `processing`: only of queries whose last trigger processed records.
    """
    chosen = _while_processing if processing else _streaming
    labeled = chosen(metric, f'application_id=~"{_ID}"', at)
    unlabeled = chosen(metric, 'application_id=""', at)
    named = f"label_replace({unlabeled}, {_NAMED})"
    return f"({function} by {_BY_APPLICATION} ({labeled}) or {function} by {_BY_APPLICATION} ({named}))"


def _streaming(metric: str, condition: str, at: str = "") -> str:
    return f'{{__name__=~"{_STREAMING}_{metric}",{FROM_POD},{condition}}}{at}'


def _while_processing(metric: str, condition: str, at: str = "") -> str:
    """Ten seconds after a batch, Spark 4.3 lets an empty trigger overwrite the gauges of a query: its rates become 0,
    and its latency the few milliseconds of that trigger, which tell nothing of a batch.
    """
    rate = "processingRate_total_Value"
    active = f"{_of_query(rate, _streaming(rate, _UNNAMED + condition, at))} > 0"
    return f"({_of_query(metric, _streaming(metric, _UNNAMED + condition, at))} and on {_BY_QUERY} ({active}))"


_STREAMING = "metrics_.+_driver_spark_streaming_.+"
_BY_QUERY = "(namespace, pod, application_id, query)"
_ROW_BYTES = 100
"""A row of state takes more in the memory of a JVM: two objects, two arrays and an entry of a map."""
_UNNAMED = 'query="",'
"""Two series of one name that got the same label `query` would end the whole query."""


def _of_query(metric: str, selected: str) -> str:
    """With the query's part of the name in a label: by that, its gauges are joined."""
    return f'label_replace({selected}, "query", "$1", "__name__", "({_STREAMING})_{metric}")'


def _each_query(metric: str) -> str:
    """A gauge of each streaming query, with the labels `namespace`, `pod`, `application_id` and `query` alone."""
    labeled, unlabeled = (
        _of_query(metric, _streaming(metric, _UNNAMED + condition))
        for condition in (f'application_id=~"{_ID}"', 'application_id=""')
    )
    return f"max by {_BY_QUERY} ({labeled} or label_replace({unlabeled}, {_NAMED}))"


def _state_bytes() -> str:
    """Of applications whose state is known.

    Before its first batch, a query's gauges are 0. With RocksDB, `states_usedBytes` is the memory of RocksDB, however
    large the state on disk is (Spark 4.3: 21 MB of 413 MB): that shows where it is less than any row takes in memory,
    or where rows are not counted.
    """
    used, rows = _each_query("states_usedBytes_Value"), _each_query("states_rowsTotal_Value")
    unknown = (
        f"{_each_query('latency_Value')} == 0",
        f"{_ROW_BYTES} * {rows} > {used}",
        f"({rows} == 0) and on {_BY_QUERY} ({used} > 0)",
    )
    doubtful = " or ".join(f"max by {_BY_APPLICATION} ({each})" for each in unknown)
    return f"{_by_application('sum', 'states_usedBytes_Value')} unless on {_BY_APPLICATION} ({doubtful})"


def _ranged(function: str, metric: str) -> str:
    """Its values in the window, of queries that processed records, and of the series that there are at its end: others
    may come and go with each scrape.
    """
    there = _bounded(_by_application(function, metric, " @ end()"))
    values = _by_application(function, metric, processing=True)
    return f"({values} and on {_BY_APPLICATION} {there})[$window:$step]"


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
    "stateBytes": _bounded(_state_bytes()),
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

_BY_NODE = "(namespace, node, instance)"
_IDLE = 'mode!~"idle|iowait|steal"'
_WIRES = 'device!~"lo|(veth|cali|cilium|cni|lxc|docker|flannel|tunl).*"'
_INTERFACES = _WIRES.replace("device", "interface")


@dataclass(frozen=True, slots=True)
class _Measured:
    """A signal that is added up over parts of what it is about. `parts`: the labels that tell these parts apart.

    All other labels of `selected` tell sources apart: cluster, replica, job, instance, and whatever a scrape puts on.
    """

    value: str
    selected: str
    parts: str = ""

    @property
    def sources(self) -> str:
        return f"group without ({self.parts}) ({self.selected})"

    def several(self, signal: str, by: str) -> str:
        return f'label_replace(count by {by} ({self.sources}) > 1, "signal", "{signal}", "", "")'


def _node(query: str) -> str:
    return _bounded(query, _MEASURED)


def _summed(selected: str, parts: str, *, rate: bool = True, of: str = "", factor: str = "") -> _Measured:
    """`of`: what is added up instead of `selected`, if that selects less."""
    text = of or selected
    return _Measured(f"{factor}sum by {_BY_NODE} ({f'rate({text}[$window])' if rate else text})", selected, parts)


def _stack_nodes(jobs: Jobs) -> dict[str, _Measured]:
    chosen = f"{jobs.of_node_exporter},{OF_NODE}"
    total, free = (f"node_memory_{name}_bytes{{{chosen}}}" for name in ("MemTotal", "MemAvailable"))
    cpu, network = "node_cpu_seconds_total", "node_network_{}_bytes_total"
    return {
        "nodeCpu": _summed(
            f'{cpu}{{{chosen},mode="idle"}}', "cpu, mode", of=f"{cpu}{{{chosen},{_IDLE}}}"
        ),
        "nodeMemory": _summed(total, "", of=f"{total} - {free}", rate=False),
        "nodeNetworkReceive": _summed(f"{network.format('receive')}{{{chosen},{_WIRES}}}", "device", factor="8 * "),
        "nodeNetworkTransmit": _summed(f"{network.format('transmit')}{{{chosen},{_WIRES}}}", "device", factor="8 * "),
        "nodePressure": _summed(f"node_pressure_cpu_waiting_seconds_total{{{chosen}}}", ""),
    }  # fmt: skip


def _cadvisor_nodes(selector: str) -> dict[str, _Measured]:
    """The node itself, as its kubelet exports it. A series that was scraped from a pod has the label `pod`: not it."""
    root = f'{selector}id="/",pod="",{OF_NODE}'
    wires = f"{root},{_INTERFACES}"
    return {
        "nodeCpu": _summed(f"container_cpu_usage_seconds_total{{{root}}}", "cpu"),
        "nodeMemory": _summed(f"container_memory_working_set_bytes{{{root}}}", "", rate=False),
        "nodeNetworkReceive": _summed(
            f"container_network_receive_bytes_total{{{wires}}}", "interface", factor="8 * "
        ),
        "nodeNetworkTransmit": _summed(
            f"container_network_transmit_bytes_total{{{wires}}}", "interface", factor="8 * "
        ),
        "nodePressure": _summed(f"container_pressure_cpu_waiting_seconds_total{{{root}}}", ""),
    }  # fmt: skip


_BY_POD = "(namespace, pod, instance)"
"""`instance` shows whether a node exports a series about the pod, or the pod exports it about itself."""
_CONTAINER = "container, id, image, name, cpu"


def _executors(selector: str) -> dict[str, _Measured]:
    chosen = f"{selector}{OF_EXECUTOR}"
    containers = f'{chosen},container!="",container!="POD"'
    cpu, memory = "container_cpu_usage_seconds_total", "container_memory_working_set_bytes"
    receive, transmit = (f"container_network_{way}_bytes_total{{{chosen}}}" for way in ("receive", "transmit"))
    throttled, periods = (
        f"container_cpu_cfs_{name}_total{{{containers}}}" for name in ("throttled_periods", "periods")
    )
    return {
        "executorCpu": _Measured(
            f"sum by {_BY_POD} (rate({cpu}{{{containers}}}[$window]))", f"{cpu}{{{containers}}}", _CONTAINER
        ),
        "executorMemory": _Measured(
            f"sum by {_BY_POD} ({memory}{{{containers}}})", f"{memory}{{{containers}}}", _CONTAINER
        ),
        "executorNetwork": _Measured(
            f"sum by {_BY_POD} (rate({receive}[$window]) + rate({transmit}[$window]))",
            receive,
            f"{_CONTAINER}, interface",
        ),
        "executorThrottling": _Measured(
            f"sum by {_BY_POD} (rate({throttled}[$window])) / (sum by {_BY_POD} (rate({periods}[$window])) > 0)",
            periods,
            _CONTAINER,
        ),
    }


def cadvisor_selector(preset: Preset, jobs: Jobs = _ALL_JOBS) -> str:
    """What selects the series that kubelets export about containers, to be followed by further conditions.

    The kubelets' other pages have series of the same names, and kube-prometheus-stack scrapes them under one job.
    """
    if preset is Preset.KUBE_PROMETHEUS_STACK:
        return f'{jobs.of_cadvisor},metrics_path=~"|/metrics/cadvisor",'
    return f"{job(jobs.cadvisor)}," if jobs.cadvisor else ""


def measured(preset: Preset, jobs: Jobs = _ALL_JOBS) -> dict[str, _Measured]:
    """By signal, what is measured of nodes and executors."""
    selector = cadvisor_selector(preset, jobs)
    nodes = _stack_nodes(jobs) if preset is Preset.KUBE_PROMETHEUS_STACK else _cadvisor_nodes(selector)
    return {**nodes, **_executors(selector)}


def group_of(signal: str) -> str:
    """The labels that tell the values of a measured signal apart."""
    return _BY_NODE if signal.startswith("node") else _BY_POD


def queries(
    preset: Preset, overrides: Mapping[str, str], *, matchers: Mapping[str, str] | None = None, jobs: Jobs = _ALL_JOBS
) -> Queries:
    """The preset's queries with the user's own in place of those they override.

    A node query of the user's own is trusted to be fresh, unless an age of the user's own says otherwise: the
    preset's age applies to the preset's series alone. So do the preset's matchers, and the count of sources.
    """
    found = measured(preset, jobs)
    age = f"time() - max by {_BY_NODE} (timestamp({found['nodeCpu'].selected}))"
    displaced = {"nodeAge": "nodeCpu" in overrides, _BATCHES: "batchSeconds" in overrides}
    own = {**{name: _node(each.value) for name, each in found.items()}, "nodeAge": _node(age), **_SPARK}
    counted = {name: each for name, each in found.items() if name not in overrides}
    texts = {name: text for name, text in own.items() if not displaced.get(name)}
    sources = {name: each.sources for name, each in counted.items()}
    return Queries({**texts, **_several(counted), **overrides}, matchers or {}, sources)


def _several(counted: Mapping[str, _Measured]) -> dict[str, str]:
    found = {}
    for name, prefix in ((NODE_SOURCES, "node"), (EXECUTOR_SOURCES, "executor")):
        parts = [
            each.several(signal, group_of(signal)) for signal, each in counted.items() if signal.startswith(prefix)
        ]
        if parts:
            found[name] = _node(" or ".join(parts))
    return found
