"""Topologies as the planner sees them: components, streams, and where their fixed ends are right now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ballast.api.topology import Component as DeclaredComponent
from ballast.api.topology import External, Rate, SparkTopology, zone_ratios
from ballast.controller.membership import key_of
from ballast.controller.surroundings import Surroundings
from ballast.kube import names
from ballast.model import Anchor, Component, ConditionReason, Separation, Shuffle, Stream, Topology, Workload

Rates = Mapping[tuple[str, str], float]
"""Bytes per second by topology key and query, where queries are allowed and had an answer."""

_MOST_BYTES_PER_SECOND = 1e15
"""Of a rate that is declared, as of a measured one: absurd ones of one topology would come out as no number at all."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a topology that its owner should know."""

    topology: str
    reason: ConditionReason
    message: str
    stalls: bool = False
    """Nothing of this topology is acted on."""


def declared(
    topology: SparkTopology, around: Surroundings, *, rates: Rates, applications: Iterable[str] = (), failed: int = 0
) -> tuple[Topology, list[Finding]]:
    """The planner's view of a SparkTopology. `applications`: ids of those whose executors belong to it."""
    key, namespace = key_of(topology), topology.metadata.namespace or ""
    findings = _drivers_selected(topology, around)
    components = []
    for component in topology.spec.components:
        anchors, found = _anchors(component.external, topology, around, component.name)
        findings += found
        components.append(_component(component, anchors, rates=rates, key=key))
    streams = [Stream(s.from_, s.to, s.grouping, _bytes_per_second(s.rate, rates, key)) for s in topology.spec.streams]
    by = topology.spec.separate_by.value
    view = Topology(
        key=key,
        namespace=namespace,
        name=topology.metadata.name,
        components=tuple(components),
        streams=tuple(streams),
        separate=tuple(Separation(group, by) for group in topology.spec.separate),
        driver=around.driver(namespace, applications),
        failed_executors=failed,
    )
    return view, findings


def implicit(
    key: str,
    components: Iterable[str],
    around: Surroundings,
    *,
    labels: Mapping[str, Mapping[str, str]],
    failed: int = 0,
) -> Topology:
    """The topology of an application about which nothing was declared: each resource profile shuffles with itself.

    `labels`: of the executors, by component: they name its workload, and what becomes of its shuffle files.
    """
    namespace, _, application = key.partition("/")
    return Topology(
        key=key,
        namespace=namespace,
        name=application,
        components=tuple(_labeled(name, labels.get(name, {})) for name in sorted(components)),
        implicit=True,
        driver=around.driver(namespace, [application]),
        failed_executors=failed,
    )


def _component(component: DeclaredComponent, anchors: tuple[Anchor, ...], *, rates: Rates, key: str) -> Component:
    return Component(
        name=component.name,
        workload=component.workload,
        expected=component.executors,
        exchange_bytes_per_second=_bytes_per_second(component.exchange, rates, key),
        anchors=anchors,
        external=component.external is not None,
        shuffle=component.shuffle,
        retained_departures=component.retained_departures,
    )


def _labeled(name: str, labels: Mapping[str, str]) -> Component:
    shuffle, retained = labels.get(names.SHUFFLE), labels.get(names.RETAINED_DEPARTURES, "")
    return Component(
        name,
        workload=_workload(labels.get(names.WORKLOAD)),
        shuffle=Shuffle(shuffle) if shuffle in {s.value for s in Shuffle} else None,
        retained_departures=int(retained) if retained.isascii() and retained.isdigit() else 0,
    )


def _bytes_per_second(rate: Rate | None, rates: Rates, key: str) -> float | None:
    if rate is None:
        return None
    if rate.bytes_per_second is not None:
        return min(float(rate.bytes_per_second), _MOST_BYTES_PER_SECOND)
    return rates.get((key, rate.query or ""))


def _workload(word: str | None) -> Workload | None:
    return Workload(word) if word in {w.value for w in Workload} else None


def _anchors(
    external: External | None, topology: SparkTopology, around: Surroundings, name: str
) -> tuple[tuple[Anchor, ...], list[Finding]]:
    if external is None:
        return (), []
    if external.zones is not None:
        rest = (None,) * (around.levels - 1)
        return tuple(Anchor((zone, *rest), share) for zone, share in zone_ratios(external.zones).items()), []
    own = topology.metadata.namespace or ""
    namespace = external.namespace or own
    if namespace != own and namespace not in around.external_namespaces:
        message = (
            f"component {name}: namespace {namespace} is not among the policy's externalNamespaces; "
            "ask the owner of the policy to add it"
        )
        return (), [Finding(key_of(topology), ConditionReason.EXTERNAL_NAMESPACE_NOT_ALLOWED, message)]
    message = f"component {name}: no pod in {namespace} that runs or starts on a node matches external.selector"
    anchors = around.anchors(external.selector, namespace) if external.selector is not None else ()
    return anchors, [] if anchors else [Finding(key_of(topology), ConditionReason.EXTERNAL_NOT_FOUND, message)]


def _drivers_selected(topology: SparkTopology, around: Surroundings) -> list[Finding]:
    findings = []
    for component in topology.spec.components:
        if component.selector is None:
            continue
        hit = around.selected_driver(component.selector, topology.metadata.namespace or "")
        if hit is not None:
            message = (
                f"component {component.name}: its selector matches the driver {hit.name}, and drivers are never "
                "moved; add the label spark-role=executor to the selector"
            )
            findings.append(Finding(key_of(topology), ConditionReason.SELECTOR_MATCHES_DRIVER, message, stalls=True))
    return findings
