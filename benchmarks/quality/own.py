"""Instances of our own: rates on the streams, zones, an external end, load; and what LeastAllocated would do."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from ballast.model import (
    Anchor,
    Component,
    Executor,
    LocalityView,
    Memory,
    Node,
    Phase,
    Policy,
    Resources,
    Snapshot,
    Stream,
    Topology,
)
from ballast.placement.locality import counts_by_topology, locality
from ballast.placement.placing import place
from ballast.placement.proximity import Effort

_GIB = float(1 << 30)
_TOPOLOGY = "team/pipeline"


@dataclass(frozen=True, slots=True)
class Layout:
    zones: int = 3
    racks: int = 4
    """In each zone."""

    def place(self, number: int) -> tuple[str, str, str]:
        """Of the node of that number; nodes are dealt out in turn."""
        rack = number // self.zones % self.racks
        return f"zone-{number % self.zones}", f"rack-{rack}", f"node-{number:04d}"


_THREE_ZONES = Layout()


@dataclass(frozen=True, slots=True)
class Pipeline:
    snapshot: Snapshot
    policy: Policy
    scores: Mapping[str, float]

    def ours(self, effort: Effort | None = None) -> LocalityView:
        gated = self.snapshot.executors
        placed = place(self.snapshot, self.policy, Memory(), gated=gated, scores=self.scores, effort=effort)
        return self._view({p.uid: p.node for p in placed.placements if p.node is not None})

    def scheduled(self) -> LocalityView:
        """Each executor to the node with the largest share of requests left, as kube-scheduler scores by default."""
        heap = [(-_share(node, node.free), node.name) for node in self.snapshot.nodes]
        nodes = {node.name: node for node in self.snapshot.nodes}
        free = {node.name: node.free for node in self.snapshot.nodes}
        heapq.heapify(heap)
        homes: dict[str, str | None] = {}
        for executor in self.snapshot.executors:
            _, name = heapq.heappop(heap)
            free[name] = free[name].minus(executor.requests)
            homes[executor.uid] = name
            heapq.heappush(heap, (-_share(nodes[name], free[name]), name))
        return self._view(homes)

    def _view(self, homes: Mapping[str, str | None]) -> LocalityView:
        running = [replace(e, phase=Phase.RUNNING, node=homes[e.uid]) for e in self.snapshot.executors]
        counts = counts_by_topology(running, self.snapshot.nodes)[_TOPOLOGY]
        ratio = self.policy.placement.max_executors_per_node_ratio
        return locality(self.snapshot.topologies[0], counts, self.policy.levels, max_node_ratio=ratio)


def _share(node: Node, free: Resources) -> float:
    return (free.cpu_cores / node.allocatable.cpu_cores + free.memory_bytes / node.allocatable.memory_bytes) / 2


def pipeline(
    seed: int, *, components: int = 5, executors: int = 60, nodes: int = 60, layout: Layout = _THREE_ZONES
) -> Pipeline:
    """A chain of components with side streams; a third of the pool is in use."""
    random = Random(seed)
    pool = tuple(_node(layout.place(number), random) for number in range(nodes))
    names = [f"part-{number}" for number in range(components)]
    shares = [random.random() for _ in range(layout.zones)]
    anchors = tuple(Anchor((f"zone-{zone}", None, None), share / sum(shares)) for zone, share in enumerate(shares))
    parts = [Component(name, exchange_bytes_per_second=random.expovariate(1 / 20e6)) for name in names]
    streams = [Stream("broker", names[0], bytes_per_second=random.expovariate(1 / 40e6))]
    for target in range(1, components):
        source = random.randrange(max(0, target - 2), target)
        streams.append(Stream(names[source], names[target], bytes_per_second=random.expovariate(1 / 20e6)))
    topology = Topology(
        _TOPOLOGY,
        "team",
        "pipeline",
        (Component("broker", anchors=anchors, external=True), *parts),
        streams=tuple(streams),
    )
    crew = tuple(_executor(number, random.choice(names)) for number in range(executors))
    scores = {node.name: random.uniform(5, 95) for node in pool}
    return Pipeline(Snapshot(0.0, pool, crew, topologies=(topology,)), Policy("own"), scores)


def _node(place: tuple[str, str, str], random: Random) -> Node:
    cores = random.choice((4.0, 8.0, 16.0))
    return Node(
        place[-1],
        place,
        Resources(cores, 4 * cores * _GIB, 110),
        requested=Resources(cores * random.uniform(0, 0.6), cores * random.uniform(0, 2) * _GIB, 4),
    )


def _executor(number: int, component: str) -> Executor:
    return Executor(
        namespace="team",
        name=f"executor-{number:05d}",
        uid=str(number),
        application=component,
        executor_id=str(number),
        resource_profile="0",
        topology=_TOPOLOGY,
        component=component,
        phase=Phase.GATED,
        created_at=0.0,
        requests=Resources(1.0, 2 * _GIB, 1),
    )


def storm_sized(seed: int) -> Pipeline:
    """1 000 executors of 20 components on 200 nodes of ten racks, without measured load: Storm does not look at it."""
    return replace(pipeline(seed, components=20, executors=1000, nodes=200, layout=Layout(1, 10)), scores={})
