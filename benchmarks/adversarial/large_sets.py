"""Pools of up to 10 000 executors, given by a few numbers: how long a pass takes, and whom it leaves without a node.

Nodes are filled with executors first and emptied again, so everything fits unless limits or separations forbid it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from random import Random

from ballast.cli.situation import Situation
from ballast.model import (
    Anchor,
    Component,
    ConditionReason,
    Executor,
    ExecutorUsage,
    Memory,
    MetricsHealth,
    Node,
    NodeUsage,
    Phase,
    Resources,
    Separation,
    Snapshot,
    Stream,
    Topology,
)
from ballast.runtime import planning_runtime
from benchmarks.adversarial.small_sets import ENFORCED, NOW, placed
from benchmarks.quality.bound import lower_bound
from tests.vectors.storm_instance import Instance

_GIB = float(1 << 30)
_CHOICES: dict[str, tuple[float, ...]] = {
    "executors": (100, 300, 1000, 3000, 10_000),
    "topologies": (1, 1, 3, 10, 50, 200, 1000, 2000),
    "components": (1, 2, 3, 5, 20, 50, 200),
    "templates": (1, 2, 4, 10, 30),
    "cores": (4, 8, 16, 32, 64),
    "spare": (0.0, 0.05, 0.3, 1.0),
    "fill": (0.6, 0.8, 0.9, 0.95),
    "zones": (1, 2, 3, 6),
    "racks": (1, 4, 20),
    "apart": (0, 0, 0, 1),
    "running": (0.0, 0.0, 0.0, 0.5, 0.9),
    "hot": (0.0, 0.0, 0.1, 0.5),
    "exchange": (0.0, 1.0),
    "external": (0, 1),
    "node_ratio": (0.25, 1.0),
}


@dataclass(frozen=True, slots=True)
class Shape:
    seed: int
    executors: float
    topologies: float
    components: float
    """Of each topology."""
    templates: float
    """Sizes of executors."""
    cores: float
    """Of each node."""
    spare: float
    """Nodes that are not needed, by those that are."""
    fill: float
    """How full the nodes are that are needed."""
    zones: float
    racks: float
    """In each zone."""
    apart: float
    """Whether components of a topology keep apart, by node."""
    running: float
    """Share of the executors that run already."""
    hot: float
    """Share of the nodes whose score is high; without any no node has a score."""
    exchange: float
    """By the rate of a stream."""
    external: float
    """Whether each topology reads from brokers in all zones."""
    node_ratio: float


def drawn(random: Random, *, most: int = 10_000) -> Shape:
    values = {name: random.choice(choices) for name, choices in _CHOICES.items()}
    return _bounded(Shape(random.randrange(1 << 20), **values), most)


def changed(shape: Shape, random: Random, *, most: int = 10_000) -> Shape:
    """One number differs, or two do."""
    for _ in range(random.choice((1, 1, 2))):
        name = random.choice([each.name for each in fields(Shape)])
        value = random.choice(_CHOICES[name]) if name in _CHOICES else random.randrange(1 << 20)
        # Which field it is, and so of which type, no type checker can know.
        shape = replace(shape, **{name: value})  # type: ignore[arg-type]
    return _bounded(shape, most)


def _bounded(shape: Shape, most: int) -> Shape:
    executors = min(shape.executors, most)
    topologies = min(shape.topologies, executors)
    components = max(1, min(shape.components, executors // topologies))
    return replace(shape, executors=executors, topologies=topologies, components=components)


def plain(shape: Shape) -> Shape:
    """Without anything that the lower bound of the cost does not know, and with one topology."""
    return replace(certain(shape), topologies=1, hot=0.0, exchange=0.0, external=0)


def seconds(shape: Shape) -> float:
    """CPU seconds of one pass."""
    return seconds_of(situation(shape))


def seconds_of(found: Situation) -> float:
    with planning_runtime():
        started = time.process_time()
        found.plan()
        return time.process_time() - started


def certain(shape: Shape) -> Shape:
    """Without anything that could keep an executor from its node."""
    return replace(shape, apart=0, running=0.0, node_ratio=1.0)


def left_out(shape: Shape) -> float:
    """Executors without a node, of those that certainly fit."""
    found = situation(certain(shape))
    return float(len(found.snapshot.executors) - len(placed(found)))


def bound_ratio(shape: Shape) -> float:
    """The cost of a plain shape by a lower bound of it, which may be below all that is possible."""
    found = situation(plain(shape))
    homes = placed(found)
    if len(homes) < len(found.snapshot.executors):
        return 0.0
    instance = Instance("adversary", found.snapshot, found.policy, None)
    bound = lower_bound(instance)
    return instance.cost(homes) / bound if bound > 0 else 0.0


# From a shape to a pool.


def situation(shape: Shape) -> Situation:
    random = Random(shape.seed)
    homes = list(_homes(shape, random))
    count = 1 + max(node for node, _ in homes)
    needed = range(round(count * (1.0 + shape.spare)))
    running = [random.random() < shape.running for _ in homes]
    taken: dict[int, Resources] = defaultdict(Resources)
    for (node, requests), runs in zip(homes, running, strict=True):
        if runs:
            taken[node] = taken[node].plus(requests)
    nodes = tuple(_node(number, shape, taken[number], random) for number in needed)
    executors = tuple(
        _executor(index, requests, nodes[node].name if runs else None, shape)
        for index, ((node, requests), runs) in enumerate(zip(homes, running, strict=True))
    )
    random_order = sorted(nodes, key=lambda _: random.random())
    snapshot = Snapshot(
        NOW,
        tuple(random_order),
        executors,
        topologies=tuple(_topology(number, shape) for number in range(int(shape.topologies))),
        metrics=MetricsHealth(available=shape.hot > 0, reason=ConditionReason.AVAILABLE),
    )
    placement = replace(ENFORCED.placement, max_executors_per_node_ratio=shape.node_ratio)
    return Situation(replace(ENFORCED, placement=placement), Memory(), snapshot)


def _homes(shape: Shape, random: Random) -> Iterator[tuple[int, Resources]]:
    """A node and requests for each executor, so that every node holds its own; pods are no limit."""
    most = Resources(shape.cores * shape.fill, 4 * shape.cores * shape.fill * _GIB, 0)
    templates = [_template(number, shape, random) for number in range(int(shape.templates))]
    node, free = 0, most
    for _ in range(int(shape.executors)):
        requests = random.choice(templates)
        if not requests.fits_in(replace(free, pods=1)):
            node, free = node + 1, most
        free = free.minus(requests)
        yield node, requests


def _template(number: int, shape: Shape, random: Random) -> Resources:
    largest = min(4.0, shape.cores * shape.fill)
    if shape.templates == 1:
        return Resources(1.0, _GIB, 1)
    cores = random.uniform(0.3, largest) if number % 2 else 1.0 - 0.02 * number
    return Resources(round(max(0.1, cores), 2), random.choice((1, 2, 4)) * max(1.0, cores) * _GIB / 2, 1)


def _node(number: int, shape: Shape, taken: Resources, random: Random) -> Node:
    zone, name = number % int(shape.zones), f"node-{number:05d}"
    rack = number // int(shape.zones) % int(shape.racks)
    score = random.uniform(0.9, 1.0) if random.random() < shape.hot else random.uniform(0.1, 0.6)
    return Node(
        name,
        (f"zone-{zone}", f"rack-{zone}-{rack}", name),
        Resources(shape.cores, 4 * shape.cores * _GIB, 500),
        requested=taken,
        labels={"kubernetes.io/hostname": name},
        usage=NodeUsage(cpu_ratio=score) if shape.hot else None,
    )


def _names(shape: Shape) -> list[str]:
    return [f"part-{number:03d}" for number in range(int(shape.components))]


def _topology(number: int, shape: Shape) -> Topology:
    names = _names(shape)
    parts = [Component(name, exchange_bytes_per_second=shape.exchange * 1e6) for name in names]
    streams = [Stream(source, target, bytes_per_second=1e6) for source, target in pairwise(names)]
    if shape.external:
        zones = [(f"zone-{zone}", None, None) for zone in range(int(shape.zones))]
        parts.append(Component("broker", anchors=tuple(Anchor(z, 1 / len(zones)) for z in zones), external=True))
        streams.append(Stream("broker", names[0], bytes_per_second=1e6))
    apart = (Separation((names[0], names[-1]), "Node"),) if shape.apart and len(names) > 1 else ()
    return Topology(f"team/t{number}", "team", f"t{number}", tuple(parts), streams=tuple(streams), separate=apart)


def _executor(index: int, requests: Resources, node: str | None, shape: Shape) -> Executor:
    topology, name = index % int(shape.topologies), f"e-{index:05d}"
    component = _names(shape)[index // int(shape.topologies) % int(shape.components)]
    return Executor(
        namespace="team",
        name=name,
        uid=name,
        application=f"t{topology}-{component}",
        executor_id=str(index),
        resource_profile="0",
        topology=f"team/t{topology}",
        component=component,
        phase=Phase.GATED if node is None else Phase.RUNNING,
        created_at=NOW - 3600.0 if node else NOW - 10.0,
        node=node,
        requests=requests,
        last_gate_since=NOW - 5.0 if node is None else None,
        running_since=NOW - 3600.0 if node else None,
        graceful=True,
        labeled=True,
        usage=ExecutorUsage(cpu_cores=0.5, state_bytes=1e6) if node else None,
    )
