"""From answers to the usage of nodes and executors that a pass looks at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ballast.model import ExecutorUsage, MetricsHealth, NodeUsage
from ballast.prometheus import series

Answers = Mapping[str, list[dict[str, Any]]]
"""By signal; a signal whose query failed is absent."""


@dataclass(frozen=True, slots=True)
class NodeFrame:
    """What of a node is needed to make ratios of its figures."""

    name: str
    addresses: tuple[str, ...]
    """Internal addresses and host names, by which an `instance` label may call it."""
    cpu_cores: float
    memory_bytes: float
    network_bits_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class ExecutorFrame:
    """By which names Prometheus knows an executor."""

    key: str
    """`namespace/pod`."""
    application: str
    executor_id: str


_OUTLIVED = MetricsHealth(
    available=False,
    reason="NoNodeFigures",
    message="the nodes' figures have become older than metrics.maxAge, and newer ones have not come yet",
)


@dataclass(frozen=True, slots=True)
class Reading:
    nodes: Mapping[str, NodeUsage] = field(default_factory=dict)
    executors: Mapping[str, ExecutorUsage] = field(default_factory=dict)
    """By `namespace/pod`."""
    batch_p95_seconds: Mapping[str, float] = field(default_factory=dict)
    """By application id."""
    health: MetricsHealth = field(default_factory=MetricsHealth)
    at: float | None = None
    """The moment that the figures are of, in seconds since the epoch; None where nothing was asked."""
    rates: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Bytes per second by topology key and query, where topologies' own queries are allowed."""

    def aged(self, *, now: float, max_age_seconds: float) -> Reading:
        """What is left of it at `now`: without the nodes whose samples have become too old since it was asked for."""
        if self.at is None or not self.nodes:
            return self
        since_seconds = now - self.at
        ages = {name: usage.age_seconds + since_seconds for name, usage in self.nodes.items()}
        fresh = {name: usage for name, usage in self.nodes.items() if ages[name] <= max_age_seconds}
        if not fresh:
            return replace(self, nodes={}, health=_OUTLIVED)
        return replace(self, nodes=fresh, health=replace(self.health, age_seconds=max(ages[name] for name in fresh)))


def reading(
    answers: Answers,
    *,
    nodes: Iterable[NodeFrame],
    executors: Iterable[ExecutorFrame],
    max_age_seconds: float,
    failures: Mapping[str, str],
) -> Reading:
    """Join the answers with nodes and executors. `failures`: signal → why its query gave nothing."""
    frames = list(nodes)
    # Where it could not be learned how old the nodes' samples are, none of them counts as fresh.
    usages, problems = ({}, []) if "nodeAge" in failures else _nodes(answers, frames, max_age_seconds)
    return Reading(
        nodes=usages,
        executors=_executors(answers, list(executors)),
        batch_p95_seconds=_batches(answers),
        health=_health(answers, usages, failures, problems),
    )


def _health(
    answers: Answers, usages: Mapping[str, NodeUsage], failures: Mapping[str, str], problems: list[str]
) -> MetricsHealth:
    told = [*_failed(failures), *problems]
    if not answers:
        return MetricsHealth(available=False, reason="Unreachable", message="; ".join(told[:3]))
    if not usages:
        told = told or ["no series matches a node of the pool"]
        return MetricsHealth(available=False, reason="NoNodeFigures", message="; ".join(told[:3]))
    age = max(usage.age_seconds for usage in usages.values())
    reason = "Available" if not told else "Partial"
    return MetricsHealth(True, reason, "; ".join(told[:3]), age)


def _failed(failures: Mapping[str, str]) -> list[str]:
    """Each cause once, with the signals that it took."""
    signals: dict[str, list[str]] = {}
    for signal, why in sorted(failures.items()):
        signals.setdefault(why, []).append(signal)
    return [f"{_named(names)}: {why}" for why, names in signals.items()]


def _named(signals: list[str]) -> str:
    shown = ", ".join(signals[:3])
    return f"{shown} and {len(signals) - 3} more" if len(signals) > 3 else shown


def _nodes(answers: Answers, frames: list[NodeFrame], max_age_seconds: float) -> tuple[dict[str, NodeUsage], list[str]]:
    addresses = {address: frame.name for frame in frames for address in (frame.name, *frame.addresses)}
    figures = {
        signal: series.by_node(answers[signal], addresses)
        for signal in (
            "nodeCpu", "nodeMemory", "nodeNetworkReceive", "nodeNetworkTransmit", "nodeNetworkCapacity",
            "nodePressure", "nodeAge",
        )
        if signal in answers
    }  # fmt: skip
    problems = [
        f"{signal}: series of {', '.join(found.ambiguous[:3])} disagree"
        for signal, found in figures.items()
        if found.ambiguous
    ]
    values = {signal: found.values for signal, found in figures.items()}
    usages = {frame.name: _node_usage(frame, values) for frame in frames if _fresh(frame.name, values, max_age_seconds)}
    kept = {name: usage for name, usage in usages.items() if usage is not None}
    return kept, problems


def _fresh(name: str, values: Mapping[str, Mapping[str, float]], max_age_seconds: float) -> bool:
    ages = values.get("nodeAge")
    return ages is None or ages.get(name, float("inf")) <= max_age_seconds


def _node_usage(frame: NodeFrame, values: Mapping[str, Mapping[str, float]]) -> NodeUsage | None:
    wire = values.get("nodeNetworkCapacity", {}).get(frame.name, frame.network_bits_per_second)
    usage = NodeUsage(
        cpu_ratio=_ratio(values, "nodeCpu", frame.name, frame.cpu_cores),
        memory_ratio=_ratio(values, "nodeMemory", frame.name, frame.memory_bytes),
        network_receive_ratio=_ratio(values, "nodeNetworkReceive", frame.name, wire),
        network_transmit_ratio=_ratio(values, "nodeNetworkTransmit", frame.name, wire),
        pressure_ratio=_share_of_time(values, "nodePressure", frame.name),
        age_seconds=values.get("nodeAge", {}).get(frame.name, 0.0),
    )
    return usage if usage.cpu_ratio is not None or usage.memory_ratio is not None else None


def _ratio(values: Mapping[str, Mapping[str, float]], signal: str, name: str, whole: float | None) -> float | None:
    amount = values.get(signal, {}).get(name)
    return None if amount is None or not whole or whole <= 0 else amount / whole


def _share_of_time(values: Mapping[str, Mapping[str, float]], signal: str, name: str) -> float | None:
    """A rate over few samples may come out a little above what can be."""
    share = values.get(signal, {}).get(name)
    return None if share is None else min(1.0, max(0.0, share))


def _executors(answers: Answers, frames: list[ExecutorFrame]) -> dict[str, ExecutorUsage]:
    pods = {
        signal: series.by_pod(answers[signal]).values
        for signal in ("executorCpu", "executorMemory", "executorNetwork", "executorRecords")
        if signal in answers
    }
    spark = {
        signal: series.by_executor(answers[signal]).values
        for signal in ("executorTaskSeconds", "executorBytes")
        if signal in answers
    }
    state = series.by_application(answers.get("stateBytes", ()))
    members: dict[str, int] = {}
    for frame in frames:
        members[frame.application] = members.get(frame.application, 0) + 1
    return {
        frame.key: _executor_usage(frame, pods, spark, _share(state, members, frame.application)) for frame in frames
    }


def _share(state: Mapping[str, float], members: Mapping[str, int], application: str) -> float | None:
    whole = state.get(application)
    return None if whole is None else whole / members[application]


def _executor_usage(
    frame: ExecutorFrame,
    pods: Mapping[str, Mapping[str, float]],
    spark: Mapping[str, Mapping[str, float]],
    state_bytes: float | None,
) -> ExecutorUsage:
    own = f"{frame.application}/{frame.executor_id}"
    return ExecutorUsage(
        cpu_cores=pods.get("executorCpu", {}).get(frame.key),
        memory_bytes=pods.get("executorMemory", {}).get(frame.key),
        records_per_second=pods.get("executorRecords", {}).get(frame.key),
        bytes_per_second=pods.get("executorNetwork", {}).get(frame.key),
        task_seconds=spark.get("executorTaskSeconds", {}).get(own),
        task_bytes=spark.get("executorBytes", {}).get(own),
        state_bytes=state_bytes,
    )


def _batches(answers: Answers) -> dict[str, float]:
    samples = series.samples_by_application(answers.get("batchMilliseconds", ()))
    worked_out = {application: _p95(values) / 1000.0 for application, values in samples.items() if values}
    return {**worked_out, **series.largest_by_application(answers.get("batchSeconds", ()))}


def _p95(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
