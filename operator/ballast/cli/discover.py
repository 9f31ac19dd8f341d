"""`ballast discover`: a SparkTopology to review, from what runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from ballast.api.topology import SparkTopology
from ballast.cli.access import ANYHOW, Access, address, reads_cluster
from ballast.cli.listed import documents_of, objects_by_kind
from ballast.cli.source import AllNamespacesOption, NamespaceOption, one_namespace
from ballast.comment import comment
from ballast.doctor.real_time import sets_real_time
from ballast.errors import BallastError, InvalidField, InvalidResource
from ballast.files import text_of
from ballast.kube import names
from ballast.planner.discovery import (
    KAFKA,
    Application,
    End,
    Flow,
    Proposal,
    Query,
    Seen,
    dns_label,
    proposed,
    query_of,
)
from ballast.sizing.executor_metrics import BOUNDED, DRIVERS_NAME, NAMED, WINDOW_SECONDS, increase, seconds

EXAMPLES = (
    "kubectl ballast discover -n analytics --prometheus http://localhost:9090",
    "kubectl ballast discover -A > topologies.yaml",
    "kubectl ballast discover ingest -n analytics --progress progress.jsonl > topology.yaml",
    "kubectl get pods -A -o json > pods.json; ballast discover -f pods.json",
)

_BROKERS: Sequence[Mapping[str, str]] = (
    {"strimzi.io/kind": "Kafka"},
    {"app.kubernetes.io/name": "kafka"},
    {"app": "kafka"},
)
"""Labels that the usual installations of Kafka have. Pods that are no brokers have them, too: see `_brokers_of`."""
_STRIMZI_CLUSTER = "strimzi.io/cluster"
_STRIMZI_BROKER = "strimzi.io/broker-role"
_STRIMZI_NAME = "strimzi.io/name"
_INSTANCE = "app.kubernetes.io/instance"
_STREAMING = f'__name__=~"{DRIVERS_NAME}",{BOUNDED}'
_DRIVER = "namespace, pod, application_id"
QUERIES = {
    "exchange": f"{increase('totalShuffleRead_bytes_total', _DRIVER)} / {seconds(_DRIVER)}",
    "arriving": f"{increase('totalInputBytes_bytes_total', _DRIVER)} / {seconds(_DRIVER)}",
    # The id in the name counts only without the label: two series that became one would end the whole query.
    "streaming": (
        f"count by ({_DRIVER}) ({{{_STREAMING},{NAMED}}})"
        f" or count by ({_DRIVER})"
        f' (label_replace({{{_STREAMING},application_id=""}}, "application_id", "$1", "__name__", "{DRIVERS_NAME}"))'
    ),
}
"""Bytes per second, and how many queries, by the driver's pod: a series of another pod counts for no application."""

_MOST_MIB = 1024
"""Of what queries reported in many days."""
_PODS_REMEDY = "write it with `kubectl get pods -A -o json`"
_AS_KUBECTL = "as `kubectl get pods -A -o json` does"

Json = Mapping[str, Any]


class NoAnswerError(BallastError):
    """Prometheus gave none."""


@reads_cluster
def discover(
    applications: Annotated[
        list[str] | None, typer.Argument(metavar="APPLICATION", help="Only these, by name, id or component.")
    ] = None,
    namespace: NamespaceOption = None,
    everywhere: AllNamespacesOption = False,
    filename: Annotated[
        Path | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Pods as `kubectl get pods -A -o json` or -o yaml prints them; - is standard input.",
        ),
    ] = None,
    progress: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[APPLICATION=]FILE",
            help="StreamingQueryProgress as JSON, one a line, or a driver's log: it names sources and sinks.",
        ),
    ] = None,
    prometheus: Annotated[
        str | None, typer.Option(metavar="URL", help="Ask this Prometheus what flows.", callback=address)
    ] = None,
    external: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NAMESPACE/LABEL=VALUE", help="Pods outside Spark that executors talk to."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Propose one topology of this name for all applications.")
    ] = None,
    access: Access = ANYHOW,
) -> None:
    """Propose a SparkTopology for what runs, as YAML to review. Nothing is written to the cluster.

    Applications are known by Spark's labels, Kafka by the query's progress and the usual labels of its brokers, and
    what flows by Spark's metrics. Comments say what to check and what could not be told.
    """
    only = one_namespace(namespace, everywhere=everywhere)
    if filename is not None:
        pods, ends, real_time = _of_file(filename, only)
    else:
        pods, ends, real_time = _of_cluster(access, namespace=only, everywhere=everywhere)
    running = _applications(pods)
    if filename is not None and not running:
        where = "in it" if namespace is None else f"in namespace {namespace} of it: say which namespace with -n"
        raise InvalidField("--filename", str(filename), f"no executor of Spark runs {where}; {_PODS_REMEDY}")
    found = _chosen(running, applications or ())
    named = [_end(text) for text in external or ()]
    seen = Seen(
        found,
        named if any(end.name == KAFKA for end in named) else (*named, *_kafka(ends)),
        dict(_queries(progress or (), found)),
        _flows(prometheus, found, pods) if prometheus is not None else {},
        frozenset((each.namespace, each.id) for each in found if f"{each.namespace}/{each.id}" in real_time),
    )
    typer.echo("---\n".join(_texts(proposed(seen, name=name))), nl=False)


def _of_file(path: Path, namespace: str | None) -> tuple[list[Json], list[Json], frozenset[str]]:
    """Pods of the namespace, and of all, and which applications are real-time. Raises InvalidField."""
    from ballast.kube.submitted_conf import submitted_in  # noqa: PLC0415 -- slow to load

    by_kind = objects_by_kind(documents_of(path, remedy=_PODS_REMEDY))
    everything: list[Json] = [*by_kind.get("Pod", ()), *by_kind.get("", ())]
    if not everything:
        kinds = ", ".join(sorted(by_kind)[:5])
        told = f"no pod in it{f'; it has {kinds}' if kinds else ''}; {_PODS_REMEDY}"
        raise InvalidField("--filename", str(path), told)
    problems = [problem for position, pod in enumerate(everything) for problem in _problems(pod, f"items[{position}]")]
    if problems:
        raise InvalidResource(f"{path}: List of pods", problems)
    own = [pod for pod in everything if namespace in (None, pod["metadata"].get("namespace"))]
    return own, everything, _true_of(submitted_in(by_kind, sets_real_time).properties)


def _problems(pod: Any, at: str) -> Iterator[InvalidField]:
    """What is read of a pod has the types that the API server gives it."""
    if not isinstance(pod, dict) or not isinstance(pod.get("metadata"), dict):
        yield InvalidField(f"{at}.metadata", "(absent)", f"write a mapping, {_AS_KUBECTL}")
        return
    metadata, status = pod["metadata"], pod.get("status")
    for field, optional in (("name", False), ("namespace", True)):
        if not (isinstance(metadata.get(field), str) or (optional and metadata.get(field) is None)):
            yield InvalidField(f"{at}.metadata.{field}", metadata.get(field, "(absent)"), f"write text, {_AS_KUBECTL}")
    labels = metadata.get("labels") or {}
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        yield InvalidField(f"{at}.metadata.labels", labels, f"write a mapping of text to text, {_AS_KUBECTL}")
    if not (status is None or isinstance(status, dict)):
        yield InvalidField(f"{at}.status", status, f"write a mapping, {_AS_KUBECTL}")


def _true_of(found: Mapping[str, bool]) -> frozenset[str]:
    return frozenset(key for key, value in found.items() if value)


def _of_cluster(
    access: Access, *, namespace: str | None, everywhere: bool
) -> tuple[list[Json], list[Json], frozenset[str]]:
    """Pods of Spark in one namespace or all, and the brokers of all namespaces, as far as they may be read.

    Also the applications whose configuration may be read and is that of real-time queries.
    """
    from ballast.kube import kinds  # noqa: PLC0415 -- slow to load, unused for a file
    from ballast.kube.errors import Forbidden  # noqa: PLC0415 -- as above
    from ballast.kube.objects import Query as Wanted  # noqa: PLC0415 -- as above
    from ballast.kube.objects import read_list  # noqa: PLC0415 -- as above
    from ballast.kube.submitted_conf import submitted  # noqa: PLC0415 -- as above

    connection = access.connect()
    client = access.client(connection)
    try:
        where = None if everywhere else namespace or connection.namespace
        spark = read_list(client, Wanted(kinds.POD, where, f"{names.SPARK_ROLE} in (driver,executor)"), _itself).items
        brokers: list[Json] = []
        for labels in _BROKERS:
            selector = ",".join(f"{key}={value}" for key, value in labels.items())
            try:
                brokers += read_list(client, Wanted(kinds.POD, None, selector), _itself).items
            except Forbidden:
                break
        real_time = _true_of(submitted(client, sets_real_time, namespace=where).properties)
    finally:
        client.close()
    return list(spark), brokers, real_time


def _itself(document: Json) -> Json:
    return document


def _labels(pod: Json) -> Mapping[str, str]:
    found: Mapping[str, str] = pod["metadata"].get("labels") or {}
    return found


def _applications(pods: Iterable[Json]) -> list[Application]:
    """Of executors that have not ended, counted by application and resource profile."""
    counted: Counter[tuple[str, str, str, str | None, str | None, str]] = Counter()
    for pod in pods:
        labels = _labels(pod)
        ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        leaving = pod["metadata"].get("deletionTimestamp") is not None
        if labels.get(names.SPARK_ROLE) != "executor" or names.SPARK_APPLICATION not in labels or ended or leaving:
            continue
        application = labels[names.SPARK_APPLICATION]
        counted[
            pod["metadata"].get("namespace") or "default",
            application,
            labels.get(names.SPARK_APPLICATION_NAME) or application,
            labels.get(names.TOPOLOGY),
            labels.get(names.COMPONENT),
            labels.get(names.SPARK_RESOURCE_PROFILE) or "0",
        ] += 1
    return [
        Application(namespace, application, name, count, topology, component, profile)
        for (namespace, application, name, topology, component, profile), count in counted.items()
    ]


def _chosen(found: Sequence[Application], wanted: Sequence[str]) -> list[Application]:
    """All without a wish. Raises InvalidField for one that does not run."""
    for text in wanted:
        if not any(_is(each, text) for each in found):
            known = ", ".join(sorted({each.name for each in found})[:5]) or "none"
            raise InvalidField("APPLICATION", text, f"no executor of it runs there; there are: {known}")
    return [each for each in found if not wanted or any(_is(each, text) for text in wanted)]


def _is(application: Application, text: str) -> bool:
    return text in (application.name, application.id, application.component_name)


def _end(text: str) -> End:
    """Of `NAME=NAMESPACE/LABEL=VALUE`. Raises InvalidField."""
    name, _, rest = text.partition("=")
    namespace, _, label = rest.partition("/")
    key, _, value = label.partition("=")
    if not (name and namespace and key and value) or dns_label(name) != name:
        raise InvalidField("--external", text, "write NAME=NAMESPACE/LABEL=VALUE, such as kafka=kafka/app=kafka")
    return End(name, namespace, {key: value})


def _kafka(pods: Iterable[Json]) -> Iterator[End]:
    """Brokers that are known by their labels, if they are of one cluster: any pod may have such labels."""
    found: dict[tuple[str, ...], End] = {}
    for pod in pods:
        labels = _brokers_of(_labels(pod))
        if labels is not None:
            namespace = pod["metadata"].get("namespace") or "default"
            instance = "" if _STRIMZI_CLUSTER in labels else _labels(pod).get(_INSTANCE, "")
            found.setdefault((namespace, instance, *labels.values()), End(KAFKA, namespace, labels))
    clusters = {key[:2] if _STRIMZI_CLUSTER not in end.labels else key for key, end in found.items()}
    if len(clusters) == 1:
        yield next(iter(found.values()))


def _brokers_of(labels: Mapping[str, str]) -> Mapping[str, str] | None:
    """Labels that the brokers of the pod's cluster share, and no other pod; None if it is no broker.

    Strimzi labels controllers, its exporter and its operators like brokers, except for the role. Before it had node
    pools, its brokers had no role, and were named after the cluster.
    """
    cluster = labels.get(_STRIMZI_CLUSTER)
    if cluster is None:
        return next((each for each in _BROKERS if each.items() <= labels.items()), None)
    if labels.get(_STRIMZI_BROKER) == "true":
        return {_STRIMZI_BROKER: "true", _STRIMZI_CLUSTER: cluster}
    if _STRIMZI_BROKER not in labels and labels.get(_STRIMZI_NAME) == f"{cluster}-kafka":
        return {_STRIMZI_NAME: f"{cluster}-kafka", _STRIMZI_CLUSTER: cluster}
    return None


def _queries(options: Sequence[str], found: Sequence[Application]) -> Iterator[tuple[str, Query]]:
    for option in options:
        application, separator, file = option.rpartition("=")
        owners = sorted({each.id for each in found if not separator or _is(each, application)})
        if len(owners) != 1:
            told = f"{len(owners)} applications are meant; write APPLICATION=FILE"
            raise InvalidField("--progress", option, told)
        text = text_of(Path(file), option="--progress", remedy="name a file that can be read", most_mib=_MOST_MIB)
        yield owners[0], query_of(text.splitlines(), file)


def _flows(url: str, found: Sequence[Application], pods: Iterable[Json]) -> dict[tuple[str, str], Flow]:
    """By namespace and application, from its own driver alone."""
    from ballast.prometheus import Endpoint, Prometheus, Queries  # noqa: PLC0415 -- unused without --prometheus
    from ballast.prometheus.usage import Sources  # noqa: PLC0415 -- as above

    answers, failures = Prometheus(Endpoint(url)).ask(Queries.of_each_namespace(QUERIES), WINDOW_SECONDS)
    if failures:
        name, words = next(iter(failures.items()))
        raise NoAnswerError(f"--prometheus: {url.rpartition('@')[2]}: {name}: {words}: name a Prometheus that answers")
    sources = Sources({(each.namespace, each.id) for each in found}, _drivers(pods))
    # Names of metrics have no hyphens, so the application's id in them has none either.
    ids = {(each.namespace, each.id.replace("-", "_")): each.id for each in found}
    values = {
        name: sources.select(replace(each, labels=_with_id(each.labels, ids)) for each in answer.series).sums()
        for name, answer in answers.items()
    }
    return {
        key: Flow(values["exchange"].get(key), values["arriving"].get(key), streaming=key in values["streaming"])
        for key in sources.applications
    }


def _with_id(labels: Mapping[str, str], ids: Mapping[tuple[str, str], str]) -> Mapping[str, str]:
    """Another namespace's application may have an id that differs by its hyphens alone."""
    named = labels.get("application_id", "")
    known = ids.get((labels.get("namespace", ""), named.replace("-", "_")), named)
    return {**labels, "application_id": known}


def _drivers(pods: Iterable[Json]) -> dict[tuple[str, str], set[str]]:
    """Names of the driver pods by namespace and application."""
    drivers: dict[tuple[str, str], set[str]] = {}
    for pod in pods:
        application = _labels(pod).get(names.SPARK_APPLICATION)
        if application and _labels(pod).get(names.SPARK_ROLE) == "driver":
            where = pod["metadata"].get("namespace") or "default"
            drivers.setdefault((where, application), set()).add(pod["metadata"]["name"])
    return drivers


def _texts(proposals: Sequence[Proposal]) -> list[str]:
    """Without those that can't be: labels of one namespace must not keep others from theirs.

    Raises InvalidResource if there is no other.
    """
    texts, wrong = [], []
    for each in proposals:
        try:
            texts.append(_text(each))
        except InvalidResource as error:
            wrong.append((each, error))
    if wrong and not texts:
        raise wrong[0][1]
    for each, why in wrong:
        typer.echo(
            f"Warning: nothing is proposed in namespace {each.document['metadata']['namespace']}: {why}", err=True
        )
    return texts


def _text(proposal: Proposal) -> str:
    """Checked as the API server would."""
    SparkTopology.parse(dict(proposal.document))
    every = ("Proposed by ballast discover. Review it before you apply it.", *proposal.notes)
    notes = "".join(f"{comment(note)}\n" for note in every)
    return notes + yaml.safe_dump(dict(proposal.document), sort_keys=False, allow_unicode=True)
