"""A SparkTopology proposed from what runs: applications, what their queries read and write, and what flows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ballast.api.version import API_VERSION
from ballast.enums import Workload
from ballast.errors import BallastError, InvalidField
from ballast.sizing.progress_log import reported

KAFKA = "kafka"
_KAFKA_SOURCE = re.compile(r"^KafkaV2\[\w+\[(.*)\]\]$")
_NO_NAME = re.compile(r"[^a-z0-9]+")
_KI, _MI = 1024.0, 1024.0**2


@dataclass(frozen=True, slots=True)
class Application:
    """One resource profile of a running Spark application."""

    namespace: str
    id: str
    """Label spark-app-selector, and `application_id` in Spark's metrics."""
    name: str
    """Label spark-app-name, or the id."""
    executors: int
    topology: str | None = None
    """Label ballast.dev/topology."""
    component: str | None = None
    """Label ballast.dev/component."""
    profile: str = "0"

    @property
    def named(self) -> bool:
        """Older versions of Spark give no label with the name."""
        return self.name != self.id

    @property
    def own_labels(self) -> dict[str, str]:
        return {"spark-app-name": self.name} if self.named else {"spark-app-selector": self.id}

    @property
    def component_name(self) -> str:
        plain = self.component or dns_label(self.name)
        return plain if self.component or self.profile == "0" else f"{plain}-profile-{self.profile}"


@dataclass(frozen=True, slots=True)
class End:
    """Pods outside Spark that executors talk to."""

    name: str
    namespace: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Query:
    """What a streaming query's progress tells of its ends."""

    topics: tuple[str, ...] = ()
    """That it reads from Kafka."""
    to_kafka: bool = False
    others: tuple[str, ...] = ()
    """Sources that are not Kafka, as Spark describes them."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Measured, in bytes per second; None where there are no values."""

    exchange: float | None = None
    arriving: float | None = None
    streaming: bool = False
    """Whether its driver reports a streaming query."""


@dataclass(frozen=True, slots=True)
class Seen:
    applications: Sequence[Application]
    ends: Sequence[End] = ()
    queries: Mapping[str, Query] = field(default_factory=dict)
    """By the application's id."""
    flows: Mapping[tuple[str, str], Flow] = field(default_factory=dict)
    """By the application's namespace and id."""
    real_time: frozenset[tuple[str, str]] = frozenset()
    """Applications whose configuration has settings of Spark's real-time mode, by namespace and id."""

    def flow(self, application: Application) -> Flow:
        return self.flows.get((application.namespace, application.id), Flow())


@dataclass(frozen=True, slots=True)
class Proposal:
    document: Mapping[str, Any]
    """A SparkTopology."""
    notes: tuple[str, ...]
    """What to check, and what could not be told."""


class NothingFoundError(BallastError):
    """No Spark application runs there."""


def proposed(seen: Seen, *, name: str | None = None) -> list[Proposal]:
    """One topology for each label ballast.dev/topology, and for each application without one; or `name` for all.

    Raises NothingFoundError when there is no application.
    """
    if not seen.applications:
        raise NothingFoundError("no executor runs there: say which namespace with -n")
    groups: dict[tuple[str, str], list[Application]] = {}
    for each in sorted(seen.applications, key=lambda one: (one.namespace, one.component_name)):
        groups.setdefault((each.namespace, name or each.topology or dns_label(each.name)), []).append(each)
    return [_topology(*key, group, seen) for key, group in groups.items()]


def _topology(namespace: str, name: str, group: Sequence[Application], seen: Seen) -> Proposal:
    streams = [stream for each in group for stream in _streams(each, seen)]
    used = {end for stream in streams for end in (stream["from"], stream["to"])}
    ends = [each for each in seen.ends if each.name in used]
    components = [*(_external(each) for each in ends), *(_component(each, name, seen) for each in group)]
    spec: dict[str, Any] = {"components": components}
    if streams:
        spec["streams"] = streams
    document = {
        "apiVersion": API_VERSION,
        "kind": "SparkTopology",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    return Proposal(document, tuple(_notes(name, group, ends, seen)))


def _external(end: End) -> dict[str, Any]:
    return {"name": end.name, "external": {"namespace": end.namespace, "selector": {"matchLabels": dict(end.labels)}}}


def _component(each: Application, topology: str, seen: Seen) -> dict[str, Any]:
    found: dict[str, Any] = {"name": each.component_name}
    if each.topology != topology or each.component is None:
        found["selector"] = {"matchLabels": each.own_labels}
    # Settings alone tell no trigger, and a query that has it must not be called Streaming: it would be moved.
    if _streams_records(each, seen) and (each.namespace, each.id) not in seen.real_time:
        found["workload"] = str(Workload.STREAMING)
    found["executors"] = each.executors
    exchange = seen.flow(each).exchange
    if exchange:
        found["exchange"] = {"bytesPerSecond": quantity(exchange)}
    return found


def _streams_records(each: Application, seen: Seen) -> bool:
    return each.id in seen.queries or seen.flow(each).streaming


def _streams(each: Application, seen: Seen) -> Iterator[dict[str, Any]]:
    """From Kafka, or from the only other end where the query reads something else; and to Kafka."""
    query, known = seen.queries.get(each.id), [end.name for end in seen.ends]
    if query is None:
        return
    source = KAFKA if query.topics else next((end for end in known if end != KAFKA), None)
    if source in known:
        stream: dict[str, Any] = {"from": source, "to": each.component_name, "grouping": "LocalOrShuffle"}
        arriving = seen.flow(each).arriving
        if arriving:
            stream["rate"] = {"bytesPerSecond": quantity(arriving)}
        yield stream
    if query.to_kafka and KAFKA in known:
        yield {"from": each.component_name, "to": KAFKA}


def _notes(name: str, group: Sequence[Application], ends: Sequence[End], seen: Seen) -> Iterator[str]:
    for end in ends:
        yield f"{end.name}: namespace {end.namespace} must be one of the policy's externalNamespaces."
    for each in group:
        own, query, flow = each.component_name, seen.queries.get(each.id), seen.flow(each)
        yield from _about_workload(each, seen)
        if query is None:
            yield f"{own}: nothing tells what it reads and writes: give --progress {each.name}=FILE."
        elif query.topics and KAFKA not in {end.name for end in ends}:
            topics = ", ".join(query.topics)
            yield f"{own}: reads {topics} from Kafka; name its brokers: --external kafka=NAMESPACE/app=kafka."
        elif query.others:
            yield f"{own}: reads {', '.join(query.others)}: check where that comes from."
        if not flow.exchange:
            yield f"{own}: no shuffle was measured: give --prometheus, or set exchange. If unset, it counts as 1."
        if query is not None and not flow.arriving:
            yield f"{own}: what arrives was not measured (Spark counts no bytes of Kafka): set the stream's rate."
        if each.topology != name or each.component is None:
            yield (
                f"{own}: chosen by its {'name' if each.named else 'id, which is another one in each run'}. Better, let "
                "Spark label it: "
                f"--conf spark.kubernetes.executor.label.ballast.dev/topology={name} "
                f"--conf spark.kubernetes.executor.label.ballast.dev/component={own}"
            )


def _about_workload(each: Application, seen: Seen) -> Iterator[str]:
    own = each.component_name
    if (each.namespace, each.id) in seen.real_time:
        words = "set RealTime if its queries have the real-time trigger, and what it is otherwise; only Streaming moves"
        yield f"{own}: its configuration has settings of Spark's real-time mode: {words}."
    elif not _streams_records(each, seen):
        words = "set Streaming, RealTime, Batch or Interactive; only Streaming moves"
        yield f"{own}: nothing tells its workload: {words}."


def query_of(lines: Iterable[str], name: str) -> Query:
    """Of a file with StreamingQueryProgress as JSON, one a line. Raises InvalidField for another."""
    topics: dict[str, None] = {}
    others: dict[str, None] = {}
    to_kafka, read = False, False
    for number, line in reported(lines):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
            described = [str(source.get("description", "")) for source in document["sources"]]
            sink = str((document.get("sink") or {}).get("description", ""))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            remedy = "not a StreamingQueryProgress; name a file with one (its `json`) a line, or a driver's log"
            raise InvalidField("--progress", f"{name}:{number}", remedy) from None
        read = True
        to_kafka = to_kafka or "kafka" in sink.lower()
        for text in described:
            found = _KAFKA_SOURCE.match(text)
            if found is None:
                others[text] = None
            else:
                topics.update(dict.fromkeys(part.strip() for part in found[1].split(",")))
    if not read:
        raise InvalidField("--progress", name, "no progress in it: let the query run for a batch")
    return Query(tuple(topics), to_kafka, tuple(others))


def quantity(amount: float) -> str:
    """Two digits are enough: what flows changes by more."""
    size, unit = (amount / _MI, "Mi") if amount >= _MI else (amount / _KI, "Ki")
    return f"{max(float(f'{size:.2g}'), 1.0):.0f}{unit}" if size >= 1.0 else str(max(round(amount), 1))


def dns_label(text: str) -> str:
    return _NO_NAME.sub("-", text.lower()).strip("-")[:63].strip("-") or "application"
