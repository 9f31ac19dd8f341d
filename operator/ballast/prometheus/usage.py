"""From answers to the usage of nodes and executors that a pass looks at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ballast.model import ConditionReason, ExecutorUsage, MetricsHealth, NodeUsage
from ballast.prometheus.ambiguity import Ambiguity, doubled
from ballast.prometheus.endpoint import shown
from ballast.prometheus.envelope import INCOMPLETE
from ballast.prometheus.preset import EXECUTOR_SOURCES, NODE_SOURCES
from ballast.prometheus.series import (
    Admitted,
    Answer,
    Series,
    ValueByKey,
    admitted,
    application_of,
    averaged,
    by_node,
    by_pod,
    value_of,
)

Answers = Mapping[str, Answer]
"""By signal; a signal whose query failed is absent."""

_BY_EXECUTOR = ("executorTaskSeconds", "executorSlots", "executorBytes", "executorShuffleRead", "executorShuffleWrite")
_SPARK = (*_BY_EXECUTOR, "stateBytes", "batchMilliseconds", "batchSeconds")
"""Signals of Spark's own, whose series name their application themselves."""
_BY_NODE = (
    "nodeCpu", "nodeMemory", "nodeNetworkReceive", "nodeNetworkTransmit", "nodeNetworkCapacity",
    "nodePressure", "nodeAge",
)  # fmt: skip
_BY_POD = ("executorCpu", "executorMemory", "executorNetwork", "executorRecords", "executorThrottling")
DROPPED = ("Malformed", "OutOfRange", "Foreign")
"""Why samples are not used."""
_SHOWN = 3
"""How many problems a message lists."""
_Vectors = Mapping[str, tuple[Series, ...]]

Application = tuple[str, str]
"""Namespace and id (the label spark-app-selector of its pods)."""


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

    namespace: str
    pod: str
    application: str
    executor_id: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.pod}"

    @property
    def owner(self) -> Application:
        return self.namespace, self.application


CLOCK_TOLERANCE_SECONDS = 10.0
"""By which Prometheus' clock may be ahead of ours, or behind. Asked about our present, one that is ahead answers with
samples that are older than they seem.
"""

_OUTLIVED = MetricsHealth(
    available=False,
    reason=ConditionReason.NO_NODE_METRICS,
    message="the nodes' figures have become older than metrics.maxAge, and newer ones have not come yet",
)


@dataclass(frozen=True, slots=True)
class Reading:
    nodes: Mapping[str, NodeUsage] = field(default_factory=dict)
    executors: Mapping[str, ExecutorUsage] = field(default_factory=dict)
    """By `namespace/pod`."""
    batch_p50_seconds: Mapping[Application, float] = field(default_factory=dict)
    """Unknown where a query of the user's own gives the batch time."""
    batch_p95_seconds: Mapping[Application, float] = field(default_factory=dict)
    health: MetricsHealth = field(default_factory=MetricsHealth)
    at: float | None = None
    """The moment that the figures are of, in seconds since the epoch; None where nothing was asked."""
    rates: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Bytes per second by topology key and query, where topologies' own queries are allowed."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many samples or series were not used, by cause (see DROPPED)."""
    ambiguity: Ambiguity | None = None
    """What has several sources."""

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
    drivers: Mapping[Application, Collection[str]],
    max_age_seconds: float,
    failures: Mapping[str, str],
    counted: Collection[str] = (),
) -> Reading:
    """Join the answers with nodes and executors. `failures`: signal → why its query gave nothing.

    `drivers`: names of the driver pods of each application that has some. `counted`: signals whose sources are counted;
    what has several has no value. Whatever the answers hold, this raises nothing, and every value is finite and within
    its signal's bounds.
    """
    if (ahead := clock_ahead_seconds(answers.values())) is not None:
        return Reading(health=_out_of_step(ahead))
    frames, members = list(nodes), list(executors)
    addresses = {address: frame.name for frame in frames for address in (frame.name, *frame.addresses)}
    sound = {signal: admitted(signal, answer) for signal, answer in answers.items()}
    vectors = {signal: found.series for signal, found in sound.items()}
    unsure = _unsure(failures, counted)

    def known(signals: Iterable[str]) -> list[str]:
        return [signal for signal in signals if signal in vectors and signal not in unsure]

    nodes_by_signal, pods_by_signal = (
        {signal: by_node(vectors[signal], addresses, doubled(vectors, signal, counted)) for signal in known(_BY_NODE)},
        {signal: by_pod(vectors[signal], addresses, doubled(vectors, signal, counted)) for signal in known(_BY_POD)},
    )
    ambiguity = Ambiguity.among(
        nodes_by_signal, pods_by_signal, known=(*(each.name for each in frames), *(each.key for each in members))
    )
    usages = _nodes(nodes_by_signal, frames, max_age_seconds, without=ambiguity.nodes if ambiguity else ())
    sources = Sources(frozenset(frame.owner for frame in members), drivers)
    spark = {signal: sources.select(vectors.get(signal, ())) for signal in _SPARK}
    foreign = sorted({claim for each in spark.values() for claim in each.foreign})
    incomplete = any(why.startswith(INCOMPLETE) for why in failures.values())
    problems = [
        *([ambiguity.words] if ambiguity else ()), *_failed(failures), *_shortened(answers), *_listed(foreign),
        *_unsound(sound), *_disagreeing(nodes_by_signal),
    ]  # fmt: skip
    return Reading(
        nodes=usages,
        executors=_executors(pods_by_signal, spark, members),
        batch_p50_seconds=_batches(spark, 0.5),
        batch_p95_seconds={**_batches(spark, 0.95), **spark["batchSeconds"].largest()},
        health=_health(
            usages, problems, answered=bool(answers), ambiguous=ambiguity is not None, incomplete=incomplete
        ),
        dropped=_dropped(sound.values(), spark.values()),
        ambiguity=ambiguity,
    )


def clock_ahead_seconds(answers: Iterable[Answer]) -> float | None:
    """By how much the server's clock is ahead (negative: behind), where that is too much to use its answers."""
    furthest = max((answer.ahead_seconds for answer in answers), key=abs, default=0.0)
    return furthest if abs(furthest) > CLOCK_TOLERANCE_SECONDS else None


def _out_of_step(ahead_seconds: float) -> MetricsHealth:
    side = "ahead" if ahead_seconds > 0 else "behind"
    message = (
        f"clocks disagree: by the header Date of its answers, Prometheus is {abs(ahead_seconds):.0f} s {side}. Its "
        "metrics are not used, and nothing is moved, until the clocks are synchronized (NTP)"
    )
    return MetricsHealth(available=False, reason=ConditionReason.CLOCKS_DISAGREE, message=message)


def _unsure(failures: Mapping[str, str], counted: Collection[str]) -> frozenset[str]:
    """Signals that are unknown because it could not be learned how old they are, or of how many sources."""
    if "nodeAge" in failures:
        return frozenset(_BY_NODE)
    of_nodes = counted if NODE_SOURCES in failures else ()
    of_pods = counted if EXECUTOR_SOURCES in failures else ()
    return frozenset(of_nodes).intersection(_BY_NODE) | frozenset(of_pods).intersection(_BY_POD)


def _health(
    usages: Mapping[str, NodeUsage], problems: list[str], *, answered: bool, ambiguous: bool, incomplete: bool
) -> MetricsHealth:
    message = "; ".join(problems[:_SHOWN])
    if incomplete and not usages:
        return MetricsHealth(available=False, reason=ConditionReason.PARTIAL, message=message)
    if not answered:
        return MetricsHealth(available=False, reason=ConditionReason.UNREACHABLE, message=message)
    if not usages:
        message = message or "no series matches a node of the pool"
        missing = ConditionReason.METRICS_AMBIGUOUS if ambiguous else ConditionReason.NO_NODE_METRICS
        return MetricsHealth(available=False, reason=missing, message=message)
    age = max(usage.age_seconds for usage in usages.values())
    reason = ConditionReason.PARTIAL if problems else ConditionReason.AVAILABLE
    if ambiguous:
        reason = ConditionReason.METRICS_AMBIGUOUS
    return MetricsHealth(available=True, reason=reason, message=message, age_seconds=age)


def _listed(claims: list[str]) -> list[str]:
    """One problem, however many pods make false claims."""
    more = f" and {len(claims) - 2} more such claims" if len(claims) > 2 else ""
    return [f"not used: {', '.join(claims[:2])}{more}"] if claims else []


def _unsound(sound: Mapping[str, Admitted]) -> list[str]:
    problems = []
    for signal, found in sound.items():
        if found.malformed:
            problems.append(f"{signal}: series that can't be read: {found.malformed}")
        if found.first is not None:
            labels = ", ".join(f"{name}={found.first[name]}" for name in _TELLING if found.first.get(name))
            problems.append(f"{signal}: samples out of range: {found.out_of_range}, first of {shown(labels)}")
    return problems


_TELLING = ("namespace", "pod", "node", "instance", "application_id", "executor_id")


def _dropped(sound: Iterable[Admitted], selections: Iterable[Selection]) -> dict[str, int]:
    answers = list(sound)
    counts = (
        sum(each.malformed for each in answers),
        sum(each.out_of_range for each in answers),
        sum(sum(each.foreign.values()) for each in selections),
    )
    return {cause: count for cause, count in zip(DROPPED, counts, strict=True) if count}


def _failed(failures: Mapping[str, str]) -> list[str]:
    """Each cause once, with the signals that it took."""
    signals: dict[str, list[str]] = {}
    for signal, why in sorted(failures.items()):
        signals.setdefault(why, []).append(signal)
    return [f"{_named(names)}: {why}" for why, names in signals.items()]


def _shortened(answers: Answers) -> list[str]:
    signals = sorted(name for name, answer in answers.items() if answer.shortened)
    words = "the answer is too long, so only the largest values of each namespace are read"
    return [f"{_named(signals)}: {words}"] if signals else []


def _named(signals: list[str]) -> str:
    shown = ", ".join(signals[:3])
    return f"{shown} and {len(signals) - 3} more" if len(signals) > 3 else shown


def _nodes(
    figures: Mapping[str, ValueByKey], frames: list[NodeFrame], max_age_seconds: float, *, without: Collection[str]
) -> dict[str, NodeUsage]:
    values = {signal: found.values for signal, found in figures.items()}
    usages = {
        frame.name: _node_usage(frame, values)
        for frame in frames
        if frame.name not in without and _fresh(frame.name, values, max_age_seconds)
    }
    return {name: usage for name, usage in usages.items() if usage is not None}


def _disagreeing(figures: Mapping[str, ValueByKey]) -> list[str]:
    return [
        f"{signal}: series of {shown(', '.join(found.ambiguous[:3]))} disagree"
        for signal, found in figures.items()
        if found.ambiguous
    ]


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


def _executors(
    figures: Mapping[str, ValueByKey], spark: Mapping[str, Selection], frames: list[ExecutorFrame]
) -> dict[str, ExecutorUsage]:
    pods = {signal: found.values for signal, found in figures.items()}
    tasks = {signal: spark[signal].by_executor().values for signal in _BY_EXECUTOR}
    members = Counter(frame.owner for frame in frames)
    state = {owner: whole / members[owner] for owner, whole in spark["stateBytes"].sums().items()}
    return {frame.key: _executor_usage(frame, pods, tasks, state.get(frame.owner)) for frame in frames}


def _executor_usage(
    frame: ExecutorFrame,
    pods: Mapping[str, Mapping[str, float]],
    tasks: Mapping[str, Mapping[str, float]],
    state_bytes: float | None,
) -> ExecutorUsage:
    own = f"{frame.namespace}/{frame.application}/{frame.executor_id}"
    return ExecutorUsage(
        cpu_cores=pods.get("executorCpu", {}).get(frame.key),
        memory_bytes=pods.get("executorMemory", {}).get(frame.key),
        records_per_second=pods.get("executorRecords", {}).get(frame.key),
        bytes_per_second=pods.get("executorNetwork", {}).get(frame.key),
        task_seconds=tasks.get("executorTaskSeconds", {}).get(own),
        slot_ratio=tasks.get("executorSlots", {}).get(own),
        task_bytes=tasks.get("executorBytes", {}).get(own),
        shuffle_read_bytes_per_second=tasks.get("executorShuffleRead", {}).get(own),
        shuffle_write_bytes_per_second=tasks.get("executorShuffleWrite", {}).get(own),
        state_bytes=state_bytes,
        throttled_ratio=_share_of_time(pods, "executorThrottling", frame.key),
    )


def _batches(spark: Mapping[str, Selection], quantile: float) -> dict[Application, float]:
    samples = spark["batchMilliseconds"].samples()
    return {application: _quantile(values, quantile) / 1000.0 for application, values in samples.items() if values}


def _quantile(values: list[float], quantile: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))]


@dataclass(frozen=True, slots=True)
class Sources:
    """Which pods may export series of which application.

    `drivers`: names of its driver pods, by application. If no driver pod of an application is known (client mode: the
    driver is outside of the cluster, or in a pod that Spark did not create), the namespace alone must be the
    application's.
    """

    applications: Collection[Application]
    """Those that have executors."""
    drivers: Mapping[Application, Collection[str]] = field(default_factory=dict)

    def select(self, vector: Iterable[Series]) -> Selection:
        """Series of other applications are passed over."""
        known = {name for _, name in self.applications if name}
        kept: list[tuple[Application, Series]] = []
        foreign: Counter[str] = Counter()
        for series in vector:
            name = application_of(series.labels)
            if name not in known:
                continue
            namespace, pod = series.labels.get("namespace", ""), series.labels.get("pod", "")
            application = (namespace, name)
            if application in self.applications and pod in self.drivers.get(application, (pod,)):
                kept.append((application, series))
            else:
                foreign[_claim(name, namespace, pod)] += 1
        return Selection(tuple(kept), foreign)


@dataclass(frozen=True, slots=True)
class Selection:
    series: tuple[tuple[Application, Series], ...]
    foreign: Mapping[str, int]
    """How many series were dropped because they come from another pod than the application's driver, by claim."""

    def by_executor(self) -> ValueByKey:
        """Values by `namespace/application id/executor id`."""
        return averaged(
            (f"{namespace}/{name}/{series.labels['executor_id']}", value_of(series))
            for (namespace, name), series in self.series
            if series.labels.get("executor_id")
        )

    def sums(self) -> dict[Application, float]:
        """One application may run several queries."""
        sums: dict[Application, float] = {}
        for application, value in self._values():
            sums[application] = sums.get(application, 0.0) + value
        return sums

    def largest(self) -> dict[Application, float]:
        """The slowest of an application's queries is what is felt."""
        largest: dict[Application, float] = {}
        for application, value in self._values():
            largest[application] = max(value, largest.get(application, value))
        return largest

    def samples(self) -> dict[Application, list[float]]:
        """Every sample of a range."""
        found: dict[Application, list[float]] = {}
        for application, series in self.series:
            if series.ranged:
                found.setdefault(application, []).extend(series.values)
        return found

    def _values(self) -> Iterable[tuple[Application, float]]:
        for application, series in self.series:
            value = value_of(series)
            if value is not None:
                yield application, value


def _claim(application: str, namespace: str, pod: str) -> str:
    if not namespace:
        return f"series of {shown(application)} have no label namespace: let the scrape set namespace and pod"
    source = f"pod {shown(namespace)}/{shown(pod)}" if pod else f"a target without a label pod in {shown(namespace)}"
    return f"series of {shown(application)} come from {source}, which is not its driver"
