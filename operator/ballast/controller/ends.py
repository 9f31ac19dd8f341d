"""Topologies as the planner sees them: components, streams, and where their fixed ends are right now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ballast.api.topology import Component as DeclaredComponent
from ballast.api.topology import External, Rate, SparkTopology, zone_ratios
from ballast.controller.membership import key_of
from ballast.kube import names
from ballast.kube.pods import Pod
from ballast.model import Anchor, Component, ConditionReason, Location, Phase, Separation, Stream, Topology, Workload

_STAYING = (Phase.PENDING, Phase.RUNNING)
Rates = Mapping[tuple[str, str], float]
"""Bytes per second by topology key and query, where queries are allowed and had an answer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a topology that its owner should know."""

    topology: str
    reason: ConditionReason
    message: str
    stalls: bool = False
    """Nothing of this topology is acted on."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where things are. `locate`: a node's location by its name, None for an unknown node."""

    pods: Mapping[str, Sequence[Pod]]
    """Pods that could be external ends, and drivers, by namespace."""
    locate: Callable[[str], Location | None]
    levels: int
    external_namespaces: frozenset[str]


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
        driver=driver_anchor(namespace, applications, around),
        failed_executors=failed,
    )
    return view, findings


def implicit(
    key: str, components: Iterable[str], around: Surroundings, *, workloads: Mapping[str, str], failed: int = 0
) -> Topology:
    """The topology of an application about which nothing was declared: each resource profile shuffles with itself.

    `workloads`: the workload that the executors' label names, by component.
    """
    namespace, _, application = key.partition("/")
    return Topology(
        key=key,
        namespace=namespace,
        name=application,
        components=tuple(Component(name, workload=_workload(workloads.get(name))) for name in sorted(components)),
        implicit=True,
        driver=driver_anchor(namespace, [application], around),
        failed_executors=failed,
    )


def driver_anchor(namespace: str, applications: Iterable[str], around: Surroundings) -> Anchor | None:
    """Where the driver is: of several applications, the first one's by name that is on a known node."""
    wanted = set(applications)
    drivers = [p for p in around.pods.get(namespace, ()) if p.is_driver and not p.ended and p.node]
    for pod in sorted(drivers, key=lambda pod: pod.name):
        location = around.locate(pod.node or "")
        if pod.labels.get(names.SPARK_APPLICATION) in wanted and location is not None:
            return Anchor(location, 1.0, pod.node)
    return None


def _component(component: DeclaredComponent, anchors: tuple[Anchor, ...], *, rates: Rates, key: str) -> Component:
    return Component(
        name=component.name,
        workload=component.workload,
        expected=component.executors,
        exchange_bytes_per_second=_bytes_per_second(component.exchange, rates, key),
        anchors=anchors,
        external=component.external is not None,
    )


def _bytes_per_second(rate: Rate | None, rates: Rates, key: str) -> float | None:
    if rate is None:
        return None
    if rate.bytes_per_second is not None:
        return float(rate.bytes_per_second)
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
    anchors = _pod_anchors(external, around.pods.get(namespace, ()), around)
    if anchors:
        return anchors, []
    message = f"component {name}: no pod in {namespace} that runs or starts on a node matches external.selector"
    return (), [Finding(key_of(topology), ConditionReason.EXTERNAL_NOT_FOUND, message)]


def _pod_anchors(external: External, pods: Sequence[Pod], around: Surroundings) -> tuple[Anchor, ...]:
    """Pods that only start yet count, too: executors that come with them talk to them where they will be."""
    selector = external.selector
    on_nodes = Counter(
        pod.node
        for pod in pods
        if pod.node and pod.phase in _STAYING and selector is not None and selector.matches(pod.labels)
    )
    located = [(node, count, around.locate(node)) for node, count in sorted(on_nodes.items())]
    total = sum(count for _, count, location in located if location is not None)
    return tuple(Anchor(location, count / total, node) for node, count, location in located if location is not None)


def _drivers_selected(topology: SparkTopology, around: Surroundings) -> list[Finding]:
    drivers = [p for p in around.pods.get(topology.metadata.namespace or "", ()) if p.is_driver and not p.ended]
    findings = []
    for component in topology.spec.components:
        if component.selector is None:
            continue
        hit = next((pod for pod in drivers if component.selector.matches(pod.labels)), None)
        if hit is not None:
            message = (
                f"component {component.name}: its selector matches the driver {hit.name}, and drivers are never "
                "moved; add the label spark-role=executor to the selector"
            )
            findings.append(Finding(key_of(topology), ConditionReason.SELECTOR_MATCHES_DRIVER, message, stalls=True))
    return findings
