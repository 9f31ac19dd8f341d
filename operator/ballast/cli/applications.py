"""`ballast report`: what the shuffle of running applications costs, before anything is installed."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from ballast.cli.access import ANYHOW, Access, address, reads_cluster
from ballast.cli.matchers import MatcherOption, matchers
from ballast.cli.output import AS_TABLE, MetricsOption, saved, show, write
from ballast.cli.picture.page import ReportOption, origin
from ballast.cli.source import AllNamespacesOption, one_namespace
from ballast.doctor.shuffle_service import service_of
from ballast.doctor.submission import properties
from ballast.errors import InvalidField
from ballast.report.price import LIST_PRICES, Cloud, Price, cloud_of, own_price

if TYPE_CHECKING:
    from ballast.controller.viewer import Sighting
    from ballast.kube.submitted_conf import Submitted
    from ballast.model import Policy, Snapshot

EXAMPLES = (
    "kubectl ballast report",
    "kubectl ballast report --prometheus http://localhost:9090 --report report.html",
    "kubectl ballast report -n analytics",
    "kubectl ballast report --cloud aws -o json",
    "ballast report -f snapshot.json --price-per-gib 0.01",
    "kubectl get nodes,pods,configmaps -A -o json > cluster.json; ballast report -f cluster.json",
)
_REMEDY = "write it with `kubectl get nodes,pods,configmaps -A -o json`, or with `kubectl ballast snapshot`"

COLUMNS = (
    "ZONES       executors in each zone (? = no label): as it is -> as Ballast would place them",
    "TRAFFIC     what shares are of: measured, declared, or equal (weights, a rate is unknown)",
    "CROSS-ZONE  share of its traffic between zones: as it is -> as Ballast would have placed it",
    "CROSS-RACK  the same for racks, those of different zones included",
    "SHUFFLE     bytes that executors read of each other's output; <= is an upper bound",
    "PER MONTH   what its shuffle between zones costs in 730 hours, both directions",
    "SAVES       of that, what the other placement would save",
    "SLOWNESS    seconds per task by those of the application's fastest quarter",
)


@reads_cluster
def report(
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only applications of it. Default: all.", metavar="NAME")
    ] = None,
    everywhere: AllNamespacesOption = False,
    filename: Annotated[
        Path | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="A snapshot, or nodes and pods as `kubectl get nodes,pods -A -o json` prints them, instead of a "
            "cluster; - is standard input.",
        ),
    ] = None,
    output: MetricsOption = AS_TABLE,
    page: ReportOption = None,
    prometheus: Annotated[
        str | None,
        typer.Option(
            help="A Prometheus that has Spark's and the nodes' metrics. If unset, only places are reported.",
            metavar="URL",
            callback=address,
        ),
    ] = None,
    cloud: Annotated[
        Cloud | None,
        typer.Option(
            help="Whose list price to use. If unset: the one that the nodes' labels name.", case_sensitive=False
        ),
    ] = None,
    price_per_gib: Annotated[
        float | None,
        typer.Option("--price-per-gib", help="USD per GiB between zones, for each direction.", min=0.0),
    ] = None,
    remote_shuffle: Annotated[
        list[str] | None,
        typer.Option(
            "--remote-shuffle",
            metavar="NAMESPACE/NAME",
            help="An application that shuffles through Celeborn, Uniffle or the like. Repeatable. "
            "If its configuration can be read, it need not be named.",
        ),
    ] = None,
    kafka: Annotated[
        list[str] | None,
        typer.Option(
            "--kafka",
            metavar="NAMESPACE/NAME",
            help="An application that reads from Kafka. Repeatable. "
            "If its configuration names Spark's Kafka connector, it need not be named.",
        ),
    ] = None,
    broker_zones: Annotated[
        str | None,
        typer.Option(
            "--broker-zones", metavar="ZONE,ZONE...", help="Zones of the Kafka brokers. Default: all zones of the pool."
        ),
    ] = None,
    rack_label: Annotated[
        str | None,
        typer.Option(
            "--rack-label", metavar="LABEL", help="The node label that names racks. Default: topology.ballast.dev/rack."
        ),
    ] = None,
    matcher: MatcherOption = None,
    access: Access = ANYHOW,
) -> None:
    """Show what the shuffle of every running Spark application costs between zones, and what placing would save.

    Needs nothing of Ballast's in the cluster: only the right to list pods and nodes. Changes nothing.
    """
    from ballast.cli.report.applications import applications_document, applications_report  # noqa: PLC0415 -- slow
    from ballast.report.pool import Known  # noqa: PLC0415 -- loads numpy, unused for --help
    from ballast.report.pool import report as made_report  # noqa: PLC0415 -- as above

    only = one_namespace(namespace, everywhere=everywhere)
    chosen = matchers(matcher)
    if chosen and prometheus is None:
        raise InvalidField("--matcher", next(iter(chosen)), "name the server as well: --prometheus")
    pool = _pool(filename, access, prometheus=prometheus, rack_label=rack_label, chosen=chosen)
    price = _price(pool.snapshot, cloud, price_per_gib)
    hints = Known(
        remote_shuffle=_named("--remote-shuffle", pool.snapshot, remote_shuffle) | pool.remote_shuffle,
        kafka=_named("--kafka", pool.snapshot, kafka) | pool.kafka,
        broker_zones=_zones(broker_zones),
    )
    found = made_report(pool.snapshot, pool.policy, price=price, hints=hints)
    if only is not None:
        found = found.of_namespace(only)
    if page is not None:
        from ballast.cli.picture.applications import applications_page  # noqa: PLC0415 -- unused without --report

        saved(page, applications_page(found, made=origin()), field="--report")
    if output.for_programs:
        write({**applications_document(found), "problems": list(pool.problems)}, output)
        return
    problems = (Text(problem) for problem in pool.problems)
    show(*applications_report(found, pool.snapshot.nodes, output.form), *problems, form=output.form)


@dataclass(frozen=True, slots=True)
class _Pool:
    snapshot: Snapshot
    policy: Policy
    problems: tuple[str, ...] = ()
    remote_shuffle: frozenset[str] = frozenset()
    kafka: frozenset[str] = frozenset()
    """Applications whose configuration says so."""


def _pool(
    file: Path | None,
    access: Access,
    *,
    prometheus: str | None,
    rack_label: str | None,
    chosen: Mapping[str, str],
) -> _Pool:
    if file is not None:
        return _pool_of_file(file, prometheus=prometheus, rack_label=rack_label, chosen=chosen)
    from ballast.controller.viewer import look  # noqa: PLC0415 -- slow to load, unused for a file
    from ballast.kube.submitted_conf import submitted  # noqa: PLC0415 -- as above

    client = access.client(access.connect())
    try:
        seen = look(client, prometheus=prometheus, rack_label=rack_label, clock=time.time, matchers=chosen)
        conf = submitted(client, _uses)
    finally:
        client.close()
    return _of(seen, conf, "no right to get configmaps in {}")


def _pool_of_file(file: Path, *, prometheus: str | None, rack_label: str | None, chosen: Mapping[str, str]) -> _Pool:
    """Of a snapshot, or of what kubectl printed. Raises BallastError."""
    from ballast.cli.listed import documents_of, objects_by_kind  # noqa: PLC0415 -- unused for a cluster
    from ballast.cli.situation import situation_in  # noqa: PLC0415 -- as above

    found = documents_of(file, remedy=_REMEDY)
    objects = objects_by_kind(found)
    if "Pod" not in objects:
        if found and not isinstance(found[0], dict):
            raise InvalidField("--filename", str(file), f"no object of Kubernetes; {_REMEDY}")
        if found and found[0].get("kind") != "BallastSnapshot":
            kinds = ", ".join(sorted(filter(None, objects))[:5])
            raise InvalidField(
                "--filename", str(file), f"no pod in it{f'; it has {kinds}' if kinds else ''}; {_REMEDY}"
            )
        if prometheus is not None or rack_label is not None:
            option, value = ("--prometheus", prometheus) if prometheus is not None else ("--rack-label", rack_label)
            told = "a snapshot file has its own metrics and levels: leave out one of the two options"
            raise InvalidField(option, value, told)
        situation = situation_in(found, file)
        return _Pool(situation.snapshot, situation.policy)
    if "Node" not in objects:
        raise InvalidField("--filename", str(file), f"no node in it, and nodes have the zones; {_REMEDY}")
    from ballast.controller.viewer import look_at  # noqa: PLC0415 -- slow to load, unused for a snapshot
    from ballast.kube.submitted_conf import submitted_in  # noqa: PLC0415 -- as above

    seen = look_at(objects, prometheus=prometheus, rack_label=rack_label, clock=time.time, matchers=chosen)
    return _of(seen, submitted_in(objects, _uses), "the file has no ConfigMaps of drivers in {}")


def _of(seen: Sighting, conf: Submitted[_Uses], lacking: str) -> _Pool:
    """`lacking`: why configurations are missing, with a place for the namespaces."""
    problems = [*seen.problems]
    if conf.denied:
        where = lacking.format(", ".join(sorted(conf.denied)))
        problems.append(
            f"configurations are left out, which may name a remote shuffle service or Spark's Kafka connector: {where}"
        )
    read = conf.properties
    return _Pool(
        seen.snapshot,
        seen.policy,
        tuple(problems),
        remote_shuffle=frozenset(key for key, each in read.items() if each.remote_shuffle),
        kafka=frozenset(key for key, each in read.items() if each.kafka),
    )


def _price(snapshot: Snapshot, cloud: Cloud | None, per_gib: float | None) -> Price | None:
    if per_gib is not None:
        return own_price(per_gib)
    known = cloud or cloud_of(node.labels for node in snapshot.nodes)
    return None if known is None else LIST_PRICES[known]


def _named(option: str, snapshot: Snapshot, named: Collection[str] | None) -> frozenset[str]:
    """By id. Raises InvalidField for an application that is not there."""
    from ballast.report.names import application_names  # noqa: PLC0415 -- unused without the options

    names = application_names(snapshot.executors)
    there = {f"{each.namespace}/{each.application}" for each in snapshot.executors}
    ids = {names.get(key, key): key for key in there} | {key: key for key in there}
    for each in named or ():
        if each not in ids:
            listed = ", ".join(sorted(names.get(key, key) for key in there)[:5])
            raise InvalidField(option, each, f"no such application; there are: {listed or 'none'}")
    return frozenset(ids[each] for each in named or ())


def _zones(text: str | None) -> tuple[str, ...]:
    """Each once. Raises InvalidField for a list with gaps."""
    zones = tuple(dict.fromkeys(each.strip() for each in (text or "").split(","))) if text is not None else ()
    if not all(zones):
        raise InvalidField("--broker-zones", text or "", "write zones with commas between them, such as eu-1a,eu-1b")
    return zones


@dataclass(frozen=True, slots=True)
class _Uses:
    remote_shuffle: bool
    kafka: bool


def _uses(text: str) -> _Uses:
    conf = _settings(text)
    return _Uses(service_of(conf) is not None, reads_kafka(conf))


def _settings(text: str) -> Mapping[str, str]:
    """Empty for a file that Spark didn't write: one application's must not keep the others from their report."""
    try:
        return properties(text)
    except InvalidField:
        return {}


_CONNECTOR = "spark-sql-kafka"


def reads_kafka(conf: Mapping[str, str]) -> bool:
    """Whether Spark's Kafka connector comes with the application; in an image it is not seen."""
    return any(_CONNECTOR in conf.get(key, "") for key in ("spark.jars.packages", "spark.jars"))
