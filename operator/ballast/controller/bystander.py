"""Seeing all Spark applications of a cluster without Ballast. It takes the right to list pods and nodes, no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ballast.api import BalancingPolicy
from ballast.controller.gateclock import GateClock
from ballast.controller.metrics import MetricsReader
from ballast.controller.observe import Lists, Metrics, Pool, observe
from ballast.kube import kinds
from ballast.kube.client import Client
from ballast.kube.document import JSON
from ballast.kube.errors import Forbidden
from ballast.kube.kinds import Kind
from ballast.kube.lists import Query, read_list
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.kube.volumes import Volumes, read_claim, read_volume
from ballast.model import Policy, Snapshot
from ballast.model.from_api import policy_from
from ballast.prometheus import SHUFFLE

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sighting:
    snapshot: Snapshot
    policy: Policy
    """Assumed: the defaults, over all nodes."""
    problems: tuple[str, ...]


def look(client: Client, *, prometheus: str | None, rack_label: str | None, clock: Callable[[], float]) -> Sighting:
    """Raises KubeError when pods or nodes can't be listed. Volumes are left out where they can't be."""
    resource = _assumed(prometheus, rack_label)
    pods = _listed(client, kinds.POD, PodReader().read)
    nodes = _listed(client, kinds.NODE, NodeReader().read)
    volumes, problems = _volumes(client) if any(pod.claims for pod in pods) else (Volumes({}, {}), ())
    policy = policy_from(resource, {node.name: node.labels for node in nodes})
    figures = MetricsReader(client, namespace="", more=SHUFFLE)
    now = clock()
    reading = figures.read(resource, nodes, pods, now=now)
    seen = observe(
        Lists(pods, nodes, {pod.namespace: {} for pod in pods}, volumes),
        policy,
        pool=Pool.of(resource.spec),
        topologies=(),
        clock=GateClock().after(pods, now),
        now=now,
        metrics=Metrics(reading.nodes, reading.executors, reading.health),
    )
    return Sighting(seen.snapshot, policy, problems)


def _assumed(prometheus: str | None, rack_label: str | None) -> BalancingPolicy:
    spec: JSON = {}
    if prometheus is not None:
        spec["metrics"] = {"prometheus": {"url": prometheus}}
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


def _volumes(client: Client) -> tuple[Volumes, tuple[str, ...]]:
    try:
        claims, volumes = _listed(client, kinds.CLAIM, read_claim), _listed(client, kinds.VOLUME, read_volume)
    except Forbidden as error:
        return Volumes({}, {}), (f"volumes are left out, which may tie executors to zones: {error.message}",)
    return Volumes.of(claims, volumes), ()


def _listed(client: Client, kind: Kind, read: Callable[[JSON], T]) -> list[T]:
    return read_list(client, Query(kind), read).items
