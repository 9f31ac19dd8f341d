"""Seeing pools as the operator does, without acting: for the commands that only read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

from ballast.api import BalancingPolicy, SparkTopology
from ballast.api.policy_metrics import Prometheus
from ballast.controller.cluster_objects import (
    ClusterLister,
    ClusterObjects,
    OpenMove,
    Read,
    listed_volumes,
    read_moves,
    resource_of,
)
from ballast.controller.cluster_view import ClusterView, blocked, pools_of
from ballast.controller.context import Context
from ballast.controller.failures import Failures
from ballast.controller.gateclock import GateClock
from ballast.controller.memory import recalled, recalled_failures
from ballast.controller.metrics_reader import MetricsReader
from ballast.controller.observe import Lists, Metrics, Pool, observe
from ballast.controller.quarantine import Quarantine
from ballast.controller.unclaimed import unclaimed
from ballast.errors import BallastError, InvalidField, InvalidResource
from ballast.kube import kinds
from ballast.kube.client import Client
from ballast.kube.document import JSON
from ballast.kube.errors import Forbidden, NotFound
from ballast.kube.kinds import Kind
from ballast.kube.nodes import NodeReader
from ballast.kube.objects import Query, read_list
from ballast.kube.pods import Pod, PodReader
from ballast.kube.volumes import Volumes, read_volume
from ballast.model import Policy, Snapshot, by_cause
from ballast.model.from_api import policy_from
from ballast.planner.plan import plan
from ballast.prometheus import SHUFFLE


class NoSuchPolicyError(BallastError):
    """No policy of that name, or none that could be read."""


class NoPolicyError(NoSuchPolicyError):
    """There is none at all yet."""


@dataclass(frozen=True, slots=True)
class View:
    """What there was to see."""

    contexts: tuple[Context, ...]
    """One for each policy whose pool could be read, the oldest first."""
    problems: tuple[str, ...]
    """Why other policies, topologies or moves could not be read, and what their owners should know."""
    objects: ClusterObjects

    def why_absent(self, namespace: str, pod: str) -> str:
        """Why no context has this executor, with what to do about it."""
        name = f"{namespace}/{pod}"
        found = next((p for p in self.objects.lists.pods if (p.namespace, p.name) == (namespace, pod)), None)
        if found is None:
            return f"{name}: there is no such pod; say its namespace with -n"
        if found.is_driver:
            return f"{name} is a driver: drivers are never placed or moved"
        if found.beyond:
            return f"{name} is left alone: its namespace has {found.beyond}"
        if found.executor is None:
            return f"{name} is no Spark executor (label spark-role=executor): Ballast never touches it"
        holder = next((context.others[found.uid] for context in self.contexts if found.uid in context.others), None)
        if holder is not None:
            return f"{name}: BalancingPolicy {holder} answers for it; ask with --policy {holder}"
        return f"{name}: no policy's namespaceSelector and topologySelector include it"


class Viewer:
    """`clock`: seconds since the epoch. `namespace`: the operator's own, where the policies' secrets are.

    `prometheus`: an address to ask instead of the policies' own, for those who look from outside of the cluster.
    """

    def __init__(
        self, client: Client, *, clock: Callable[[], float], namespace: str = "", prometheus: str | None = None
    ) -> None:
        self._lister = ClusterLister(client)
        self._metrics = MetricsReader(client, namespace=namespace, more=SHUFFLE)
        self._clock = clock
        self._prometheus = prometheus

    def look(self, policy: str | None = None) -> View:
        """Every policy's pool, or that of one. Raises NoSuchPolicyError when there is nothing to see."""
        objects = self._lister.look()
        moves, broken = read_moves(objects.moves, now=self._clock())
        pools = pools_of(objects.policies, objects.lists.nodes)
        problems = [str(error) for error in (*objects.broken, *broken, *objects.excesses)]
        why_not = {_name(p): why.message for p in objects.policies if (why := blocked(p.resource, pools)) is not None}
        problems += [f"BalancingPolicy {name}: {why}" for name, why in why_not.items()]
        chosen = [read for read in objects.policies if policy in (None, _name(read))]
        if not objects.policies and not problems:
            raise NoPolicyError("there is no BalancingPolicy yet")
        if policy is not None and not chosen:
            names = ", ".join(_name(read) for read in objects.policies)
            raise NoSuchPolicyError(f"there is no BalancingPolicy {policy}; there are: {names or 'none'}")
        now = self._clock()
        pods = objects.lists.pods
        counted = recalled_failures((read.resource for read in objects.policies), objects.lists.namespaces)
        failures = Failures().after(pods, recalled=counted)
        cluster_view = ClusterView(objects, pools, GateClock().after(pods, now), now, failures)
        contexts = [self._context(cluster_view, read, moves) for read in chosen if _name(read) not in why_not]
        if not contexts:
            raise NoSuchPolicyError("; ".join(problems))
        problems += [f"{f.topology}: {f.reason}: {f.message}" for context in contexts for f in context.findings]
        problems += [
            f"BalancingPolicy {context.name}: namespace {namespace} is left out, since a pass fails with it: {why}"
            for context in contexts
            for namespace, why in context.left_out.items()
        ]
        if policy is None:
            problems += _unclaimed(objects, contexts)
        return View(tuple(contexts), tuple(dict.fromkeys(problems)), objects)

    def close(self) -> None:
        self._metrics.close()

    def _context(self, cluster_view: ClusterView, read: Read[BalancingPolicy], moves: list[OpenMove]) -> Context:
        read = self._redirected(read)
        topologies = [topology.resource for topology in cluster_view.objects.topologies]
        memory = recalled(read.resource.status, topologies)
        own = cluster_view.own_moves(moves, _name(read))
        reading = cluster_view.read_metrics(read, self._metrics)
        passes_fail = any(each.type == "NamespacesFollowed" for each in read.resource.status.conditions)

        def decide(left_out: frozenset[str]) -> Context:
            context = cluster_view.without(left_out).context(read, memory, reading, own)
            if passes_fail:
                plan(context.snapshot, context.policy, memory, cluster_view.now)
            return context

        context, left_out = Quarantine(self._clock).decide(decide, cluster_view.namespaces)
        return context.leaving_out(left_out, cluster_view.objects)

    def _redirected(self, read: Read[BalancingPolicy]) -> Read[BalancingPolicy]:
        if self._prometheus is None:
            return read
        spec = read.resource.spec
        known = spec.metrics.prometheus
        server = known.model_copy(update={"url": self._prometheus}) if known else Prometheus(url=self._prometheus)
        metrics = spec.metrics.model_copy(update={"prometheus": server})
        changed = spec.model_copy(update={"metrics": metrics})
        return replace(read, resource=read.resource.model_copy(update={"spec": changed}))


def _unclaimed(objects: ClusterObjects, contexts: list[Context]) -> list[str]:
    """One line for all executors that opted in and are no policy's."""
    covered = {executor.uid for context in contexts for executor in context.snapshot.executors}
    covered |= {uid for context in contexts for uid in context.others}
    left_out = {namespace for context in contexts for namespace in context.left_out}
    pods = (pod for pod in objects.lists.pods if pod.namespace not in left_out)
    return [
        f"{each.executors} executors opted in and are not placed ({each.cause}), such as {each.first.executor}: "
        f"{each.first.detail}"
        for each in by_cause(unclaimed(pods, objects.lists.namespaces, covered))
    ]


def _name(read: Read[BalancingPolicy]) -> str:
    return read.resource.metadata.name


T = TypeVar("T")
_NO_MATCHERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Sighting:
    snapshot: Snapshot
    policy: Policy
    """Assumed: the defaults, over all nodes."""
    problems: tuple[str, ...]


class _Lister(Protocol):
    def __call__(self, kind: Kind, read: Callable[[JSON], T]) -> list[T]:
        """All objects of this kind. Raises KubeError."""


def look(
    client: Client,
    *,
    prometheus: str | None,
    rack_label: str | None,
    clock: Callable[[], float],
    matchers: Mapping[str, str] = _NO_MATCHERS,
) -> Sighting:
    """Raises KubeError when pods or nodes can't be listed. Volumes and topologies are left out where they can't be.

    `matchers`: labels of all series that are read, by which one cluster of several is chosen.
    """

    def listed(kind: Kind, read: Callable[[JSON], T]) -> list[T]:
        return read_list(client, Query(kind), read).items

    resource = _assumed(prometheus, rack_label, matchers)
    reader = MetricsReader(client, namespace="", more=SHUFFLE)
    return _sighting(listed, partial(listed_volumes, client), resource, clock, reader)


def look_at(
    objects: Mapping[str, Sequence[JSON]],
    *,
    prometheus: str | None,
    rack_label: str | None,
    clock: Callable[[], float],
    matchers: Mapping[str, str] = _NO_MATCHERS,
) -> Sighting:
    """As `look`, at objects by their kinds.

    Raises InvalidResource for a pod or node that lacks what the API server writes.
    """

    def listed(kind: Kind, read: Callable[[JSON], T]) -> list[T]:
        if kind not in (kinds.POD, kinds.NODE, kinds.SPARK_TOPOLOGY) and kind.kind not in objects:
            raise Forbidden(f"list {kind.plural}", f"the file has no {kind.kind}")
        return [_read(each, kind, read) for each in objects.get(kind.kind, ())]

    resource = _assumed(prometheus, rack_label, matchers)
    reader = MetricsReader(None, namespace="", more=SHUFFLE)
    return _sighting(listed, lambda _: Volumes.of(listed(kinds.VOLUME, read_volume)), resource, clock, reader)


def _read(document: JSON, kind: Kind, read: Callable[[JSON], T]) -> T:
    metadata = document.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    if isinstance(metadata, dict):
        # A file that was shortened by hand may lack them.
        namespace = {"namespace": "default"} if kind.namespaced else {}
        document = {**document, "metadata": {"uid": f"{metadata.get('namespace')}/{name}", **namespace, **metadata}}
    try:
        return read(document)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        lacks = f"it lacks {error}" if isinstance(error, KeyError) else "a field has the wrong type"
        remedy = f"{lacks}: write it with `kubectl get -o json`"
        raise InvalidResource(f"{kind.kind} {name}".strip(), [InvalidField("object", name, remedy)]) from error


def _sighting(
    listed: _Lister,
    volumes_of: Callable[[Iterable[Pod]], Volumes],
    resource: BalancingPolicy,
    clock: Callable[[], float],
    metrics: MetricsReader,
) -> Sighting:
    pods = listed(kinds.POD, PodReader().read)
    nodes = listed(kinds.NODE, NodeReader().read)
    volumes, problems = _volumes(volumes_of, pods) if any(pod.claims for pod in pods) else (Volumes(), ())
    policy = policy_from(resource, {node.name: node.labels for node in nodes})
    topologies, more = _declared(listed)
    now = clock()
    lists = Lists(pods, nodes, {pod.namespace: {} for pod in pods}, volumes)
    reading = metrics.read(resource, nodes, list(lists.pods), now=now)
    seen = observe(
        lists,
        policy,
        pool=replace(Pool.of(resource.spec), external_namespaces=_external_namespaces(topologies)),
        topologies=topologies,
        clock=GateClock().after(pods, now),
        now=now,
        metrics=Metrics(reading.nodes, reading.executors, reading.health),
    )
    return Sighting(seen.snapshot, policy, (*problems, *more))


def _assumed(prometheus: str | None, rack_label: str | None, matchers: Mapping[str, str]) -> BalancingPolicy:
    spec: JSON = {}
    if prometheus is not None:
        spec["metrics"] = {"prometheus": {"url": prometheus, "matchers": dict(matchers)}}
    if rack_label is not None:
        spec["levels"] = [
            {"label": "topology.kubernetes.io/zone", "distance": 10},
            {"label": rack_label, "distance": 3},
            {"label": "kubernetes.io/hostname", "distance": 1},
        ]
    kind = kinds.BALANCING_POLICY
    return BalancingPolicy.parse(
        {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "assumed"}, "spec": spec}
    )


def _declared(listed: _Lister) -> tuple[list[SparkTopology], tuple[str, ...]]:
    """The SparkTopologies, and why some are left out. Where Ballast is not installed there are none."""
    try:
        found = listed(kinds.SPARK_TOPOLOGY, lambda raw: raw)
    except NotFound:
        return [], ()
    except Forbidden as error:
        return [], (f"SparkTopologies are left out, which declare what executors exchange: {error.message}",)
    topologies, problems = [], []
    for raw in found:
        try:
            topologies.append(resource_of(kinds.SPARK_TOPOLOGY, SparkTopology, raw))
        except InvalidResource as error:
            problems.append(str(error))
    return topologies, tuple(problems)


def _external_namespaces(topologies: Iterable[SparkTopology]) -> frozenset[str]:
    """All that they name: only places are read there."""
    parts = (component.external for topology in topologies for component in topology.spec.components)
    return frozenset(external.namespace for external in parts if external is not None and external.namespace)


def _volumes(volumes_of: Callable[[Iterable[Pod]], Volumes], pods: Iterable[Pod]) -> tuple[Volumes, tuple[str, ...]]:
    try:
        return volumes_of(pods), ()
    except Forbidden as error:
        return Volumes(), (f"volumes are left out, which may tie executors to zones: {error.message}",)
