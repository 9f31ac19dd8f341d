"""What the history keeps: one PromQL query for each signal, and whose figure it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ballast.prometheus import Preset, queries
from ballast.prometheus.preset import (
    FROM_POD,
    KUBE_STATE_METRICS_JOBS,
    MATCHERS,
    OF_EXECUTOR,
    OF_NODE,
    Jobs,
    cadvisor_selector,
    group_of,
    job,
    matching,
)

# Labels are as long as names may be. Each point of an answer is a row with its labels, and a pod may export any.
_NODE = 'node=~".{1,253}"'
_ANY_NODE, _APPLICATION = 'node=~".{0,253}"', 'application=~".{0,63}"'
_CONTAINERS = f'{OF_EXECUTOR},{_ANY_NODE},container!="",container!="POD"'
# Of the operator's presets, those that are figures at a moment; a driver's own metrics name no pod.
_USAGE = {
    "nodeCpu": "cores used",
    "nodeMemory": "bytes used",
    "nodeNetworkReceive": "bits per second",
    "nodeNetworkTransmit": "bits per second",
    "nodePressure": "share of time in which a task waited for CPU",
    "executorCpu": "cores used",
    "executorMemory": "bytes used",
    "executorNetwork": "bytes per second, in and out",
}


USAGE = frozenset(_USAGE)
"""Names of the signals of what nodes and executors use."""


class Subject(StrEnum):
    """Which columns say whose figure a row holds."""

    NODE = "node"
    EXECUTOR = "executor"
    """`namespace` and `pod`; `node` is where it ran."""
    POOL = "pool"


@dataclass(frozen=True, slots=True)
class Signal:
    name: str
    subject: Subject
    query: str
    meaning: str
    """With its unit."""
    detail: str | None = None
    """The label that the column `detail` holds."""


_NO_MATCHERS: Mapping[str, str] = {}


def signals(
    preset: Preset, *, window_seconds: float, operator: str, matchers: Mapping[str, str] = _NO_MATCHERS
) -> tuple[Signal, ...]:
    """Everything that is asked for, each by its own name. `operator`: the namespace that it runs in.

    `matchers`: labels of all series that are read, by which one cluster of several is chosen.
    """
    asked = (
        *_usage(preset, window_seconds, matchers),
        *_capacity(preset),
        *_placements(preset, operator),
        *_decisions(operator),
    )
    return tuple(replace(signal, query=_of(signal.query, matchers)) for signal in asked)


def _of(query: str, matchers: Mapping[str, str]) -> str:
    return query.replace(MATCHERS, matching(matchers))


# Any pod that Prometheus scrapes may export series of the operator's names. The scrape's own label `namespace` says
# where they come from; a scrape that is configured by address sets none.


def _own(operator: str) -> str:
    return f'{MATCHERS}namespace=~"|{operator}"'


def _executor_info(operator: str) -> str:
    """Labels `namespace` and `pod` are the executor's. The scrape's take their names, unless it honors labels."""
    bounded = f'{_ANY_NODE},{_APPLICATION},{FROM_POD},exported_pod=~".{{0,253}}",exported_namespace=~".{{0,63}}"'
    honored = f'ballast_executor_info{{exported_namespace="",{bounded}}}'
    renamed = (
        "group by (exported_namespace, exported_pod, node, application)"
        f' (ballast_executor_info{{exported_namespace!="",{_own(operator)},{bounded}}})'
    )
    for label in ("namespace", "pod"):
        renamed = f'label_replace({renamed}, "{label}", "$1", "exported_{label}", "(.*)")'
    return f"({honored} or {renamed})"


def foreign(operator: str, matchers: Mapping[str, str] = _NO_MATCHERS) -> tuple[str, ...]:
    """What selects series of the operator's names that are not used: their label `namespace` says whose they are."""
    elsewhere = f'{matching(matchers)}policy!="",namespace!~"|{operator}"'
    return (
        f'{{__name__=~"ballast_.+",__name__!="ballast_executor_info",{elsewhere}}}',
        f'ballast_executor_info{{exported_namespace!="",{elsewhere}}}',
    )


def combined(asked: Sequence[Signal]) -> str:
    """One query for all of them, at least one, whose series have the labels `signal` and `detail` besides their own.

    One query costs one look at Spark's workers instead of many. A tree of `or` keeps cheap what Prometheus compares.
    """
    if len(asked) > 1:
        half = len(asked) // 2
        return f"({combined(asked[:half])} or {combined(asked[half:])})"
    (one,) = asked
    named = f'label_replace({one.query}, "signal", "{one.name}", "", "")'
    return f'label_replace({named}, "detail", "$1", "{one.detail}", "(.*)")' if one.detail else named


def addresses(matchers: Mapping[str, str] = _NO_MATCHERS) -> str:
    """The query by whose series a node's address is known: labels `node` and `instance`."""
    # A pod may export any series: the scrape labels them with the pod.
    return f'group by (node, instance) (up{{{matching(matchers)}{Jobs().of_cadvisor},node!="",pod=""}})'


def _usage(preset: Preset, window_seconds: float, matchers: Mapping[str, str]) -> Iterator[Signal]:
    asked = queries(preset, {}, matchers=matchers)
    rendered = asked.rendered(window_seconds)
    for name, meaning in _USAGE.items():
        # What has several sources, such as two clusters, has no value, as in the operator.
        query = f"{rendered[name]} unless on {group_of(name)} (count by {group_of(name)} ({asked.sources[name]}) > 1)"
        if name.startswith("node"):
            yield Signal(name, Subject.NODE, f"sum by (node, instance) ({query})", meaning)
        else:
            # `instance` says whether the node or the pod itself exports it.
            yield Signal(name, Subject.EXECUTOR, f"sum by (namespace, pod, instance) ({query})", meaning)


# Any pod that Prometheus scrapes may export what kube-state-metrics exports of nodes and pods. kube-prometheus-stack
# gives kube-state-metrics its own job. Elsewhere what pods of one namespace export of a node stays apart from what
# others do: recordings leave out values that contradict each other.

_FROM_API = {
    Preset.KUBE_PROMETHEUS_STACK: f"{MATCHERS}{job(KUBE_STATE_METRICS_JOBS)},",
    Preset.CADVISOR: MATCHERS,
}
_MOST_OF_POD = 2
"""Series of a pod that say where it is, and of which application: more than one contradict each other."""


_MOST_OF_NAMESPACE = 20_000
"""Series of nodes or pods: any pod may export very many, and Prometheus answers no query about too many."""


def _bounded(query: str) -> str:
    return f"topk by (namespace) ({_MOST_OF_NAMESPACE}, {query})"


def _of_node(function: str, metric: str) -> str:
    return f"max by (node, instance) ({_bounded(f'{function} by (namespace, node, instance) ({metric})')})"


def _of_pod(query: str) -> str:
    return f"topk by (namespace, pod) ({_MOST_OF_POD}, {query})"


def _capacity(preset: Preset) -> Iterator[Signal]:
    exporter = Jobs().of_node_exporter
    cpus = f'node_cpu_seconds_total{{{exporter},mode="idle",{OF_NODE}}}'
    cores = {
        Preset.KUBE_PROMETHEUS_STACK: _of_node("count", cpus),
        Preset.CADVISOR: _of_node("max", f'machine_cpu_cores{{pod="",{OF_NODE}}}'),
    }
    memory = {
        Preset.KUBE_PROMETHEUS_STACK: _of_node("max", f"node_memory_MemTotal_bytes{{{exporter},{OF_NODE}}}"),
        Preset.CADVISOR: _of_node("max", f'machine_memory_bytes{{pod="",{OF_NODE}}}'),
    }
    yield Signal("nodeCores", Subject.NODE, cores[preset], "cores of the machine")
    yield Signal("nodeMemoryCapacity", Subject.NODE, memory[preset], "bytes of the machine")
    chosen = f"{_FROM_API[preset]}{_NODE}"
    allocatable = _bounded(f'max by (namespace, node) (kube_node_status_allocatable{{{chosen},resource="%s"}})')
    yield Signal("nodeAllocatableCores", Subject.NODE, allocatable % "cpu", "cores that pods can request")
    yield Signal("nodeAllocatableMemory", Subject.NODE, allocatable % "memory", "bytes that pods can request")
    cordoned = _bounded(f"max by (namespace, node) (kube_node_spec_unschedulable{{{chosen}}})")
    yield Signal("nodeUnschedulable", Subject.NODE, cordoned, "1 while the node is cordoned, else 0")


def _placements(preset: Preset, operator: str) -> Iterator[Signal]:
    info, source = _executor_info(operator), _FROM_API[preset]
    pods = f"{source}{OF_EXECUTOR}"
    located = _of_pod(f"group by (namespace, pod, node) (kube_pod_info{{{pods},{_NODE}}})")
    named = f'{source}label_spark_role="executor",label_spark_app_selector=~".{{0,63}}",{FROM_POD}'
    labeled = _of_pod(f"group by (namespace, pod, label_spark_app_selector) (kube_pod_labels{{{named}}})")
    known = f"kube_pod_info{{{source.rstrip(',')}}}"
    memory = f"container_memory_working_set_bytes{{{cadvisor_selector(preset)}{_CONTAINERS}}}"
    yield Signal(
        "placement",
        Subject.EXECUTOR,
        # Where kube-state-metrics reports pods, a container that Prometheus has not forgotten yet is gone.
        f"{located} or {_bounded(f'group by (namespace, pod, node) ({info})')} unless on (namespace) {known}"
        f" or {_bounded(f'group by (namespace, pod, node, instance) ({memory})')}"
        f" unless on (namespace) {known} unless on (namespace) {info}",
        "1 while the executor is on the node",
    )
    requests = _bounded(f'sum by (namespace, pod) (kube_pod_container_resource_requests{{{pods},resource="%s"}})')
    yield Signal("executorRequestCores", Subject.EXECUTOR, requests % "cpu", "cores requested")
    yield Signal("executorRequestMemory", Subject.EXECUTOR, requests % "memory", "bytes requested")
    yield Signal(
        "executorApplication",
        Subject.EXECUTOR,
        f"{labeled} or on (namespace, pod) label_replace("
        f"{_bounded(f'group by (namespace, pod, application) ({info})')},"
        ' "label_spark_app_selector", "$1", "application", "(.*)")',
        "1; `detail` is the application's id",
        detail="label_spark_app_selector",
    )


def _decisions(operator: str) -> Iterator[Signal]:
    own = _own(operator)
    yield Signal(
        "nodeScore",
        Subject.NODE,
        f"max by (policy, node) (ballast_node_score_percent{{{own}}})",
        "percent, as the operator computed it",
    )
    yield Signal(
        "nodeHits", Subject.NODE, f"max by (policy, node, threshold) (ballast_node_hits{{{own}}})",
        "consecutive passes with too wide a gap; `detail` is the threshold", detail="threshold",
    )  # fmt: skip
    yield Signal(
        "poolGap",
        Subject.POOL,
        f"max by (policy) (ballast_pool_gap_points{{{own}}})",
        "points between the hottest and the coldest node",
    )
    yield Signal(
        "pass", Subject.POOL, f"max by (policy) (ballast_metrics_timestamp_seconds{{{own}}})",
        "time of the metrics of the newest full pass, in seconds since 1970",
    )  # fmt: skip
    counted = "since the operator's start"
    for name, metric, label, what in (
        ("decisions", "ballast_decisions_total", "kind", "placements and moves decided"),
        ("moves", "ballast_moves_total", "phase", "moves that ended"),
        ("refusals", "ballast_refusals_total", "reason", "refusals"),
    ):
        query = f"sum by (policy, {label}) ({metric}{{{own}}})"
        yield Signal(name, Subject.POOL, query, f"{what} {counted}; `detail` is the {label}", detail=label)
    for name, metric in (("predictedGain", "predicted"), ("measuredGain", "measured")):
        query = f"max by (policy) (ballast_move_{metric}_gain_points{{{own}}})"
        yield Signal(name, Subject.POOL, query, f"{metric} gain of the last move, in points")
