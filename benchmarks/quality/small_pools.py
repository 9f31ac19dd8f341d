"""Small pools drawn at random, in which room is short, and the most executors that any placement can place in them."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random

from ballast.model import (
    Component,
    ComponentLimit,
    Constraints,
    Executor,
    Node,
    Phase,
    PlacementPolicy,
    Policy,
    Requirement,
    Resources,
    Separation,
    Snapshot,
    Stream,
    Topology,
)
from ballast.placement.admission import refusal
from benchmarks.quality.limits import limit, separate
from benchmarks.quality.model import SOLVED, Model, solved

_GIB = float(1 << 30)
_NAMES = ("a", "b", "c")


def small_pool(seed: int, *, most_nodes: int = 12) -> tuple[Snapshot, Policy, dict[str, float]]:
    """Up to three topologies on up to twelve nodes, with templates, limits and separations; scores by node.

    Requests come to between half of the room and all of it.
    """
    random = Random(seed)
    nodes = tuple(_node(number, random) for number in range(random.randint(2, most_nodes)))
    topologies = tuple(_topology(f"t{number}", random) for number in range(random.randint(1, 3)))
    waiting: list[Executor] = []
    room = random.uniform(0.5, 1.0) * sum(node.free.cpu_cores for node in nodes)
    templates = [_template(nodes, random) for _ in range(random.randint(1, 4))]
    while (asked := sum(executor.requests.cpu_cores for executor in waiting)) < room and len(waiting) < 60:
        requests, constraints = random.choice(templates)
        if asked + requests.cpu_cores > room:
            break
        topology = random.choice(topologies)
        waiting.append(_executor(len(waiting), topology.name, random.choice(_NAMES), requests, constraints))
    placement = PlacementPolicy(
        max_executors_per_node_ratio=random.choice((0.25, 0.5, 1.0, 1.0)),
        max_executors_per_zone_ratio=random.choice((0.5, 1.0, 1.0)),
        limits=random.choice(((), (), (ComponentLimit("a", 2),))),
    )
    scores = {node.name: random.choice((20.0, 60.0, 95.0)) for node in nodes if random.random() < 0.6}
    return Snapshot(0.0, nodes, tuple(waiting), topologies=topologies), Policy("p", placement=placement), scores


def _node(number: int, random: Random) -> Node:
    name, zone = f"n{number}", random.choice("ab")
    cores = random.choice((2.0, 4.0, 8.0))
    return Node(
        name,
        (zone, f"r{random.randrange(2)}", name),
        Resources(cores, random.choice((2, 4)) * cores * _GIB, 20),
        requested=Resources(random.choice((0.0, 0.5, 1.0)), _GIB, 1),
        labels={"zone": zone, "disk": random.choice(("fast", "slow"))},
    )


def _topology(name: str, random: Random) -> Topology:
    components = tuple(Component(each, expected=random.choice((None, None, 6))) for each in _NAMES)
    apart = (Separation(("a", "b"), random.choice(("Node", "Rack", "Zone"))),)
    streams = (Stream("a", "b"),) if random.random() < 0.7 else ()
    return Topology(
        f"team/{name}", "team", name, components, streams=streams, separate=apart if random.random() < 0.25 else ()
    )


def _template(nodes: tuple[Node, ...], random: Random) -> tuple[Resources, Constraints]:
    requests = Resources(random.choice((0.5, 1.0, 1.5, 2.0)), random.choice((1, 2, 3)) * _GIB, 1)
    zone, node = random.choice("ab"), random.choice(nodes).name
    constraints = (
        Constraints(),
        Constraints(),
        Constraints(node_selector=(("disk", "fast"),)),
        Constraints(affinity_terms=((Requirement("zone", "In", (zone,)),),)),
        Constraints(volume_terms=(((Requirement("metadata.name", "In", (node,), on_field=True),),),)),
    )
    return requests, random.choice(constraints)


def _executor(number: int, topology: str, component: str, requests: Resources, constraints: Constraints) -> Executor:
    return Executor(
        namespace="team",
        name=f"e-{number:03d}",
        uid=f"e-{number:03d}",
        application=f"{topology}-{component}",
        executor_id=str(number),
        resource_profile="0",
        topology=f"team/{topology}",
        component=component,
        phase=Phase.GATED,
        created_at=0.0,
        requests=requests,
        constraints=constraints,
        last_gate_since=0.0,
    )


def most_placed(snapshot: Snapshot, policy: Policy, *, seconds: float) -> int | None:
    """The most executors that fit within room, limits and separations; None when that was not proved in time.

    All executors of the snapshot are gated; no node runs any.
    """
    model = Model()
    kinds = Counter((e.topology, e.component, e.requests, e.constraints) for e in snapshot.executors)
    counts: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    used: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    example = {(e.topology, e.component, e.requests, e.constraints): e for e in snapshot.executors}
    for kind, count in kinds.items():
        topology, component, requests, _ = kind
        total: dict[int, float] = {}
        for node in snapshot.nodes:
            if refusal(example[kind], node) is None:
                variable = model.variable(-1.0, integral=True)
                total[variable] = counts[topology, component, node.name][variable] = 1.0
                used[node.name, "cpu"][variable] = requests.cpu_cores
                used[node.name, "memory"][variable] = requests.memory_bytes / _GIB
                used[node.name, "pods"][variable] = requests.pods
        if total:
            model.row(total, 0.0, count)
    for node in snapshot.nodes:
        free = {"cpu": node.free.cpu_cores, "memory": node.free.memory_bytes / _GIB, "pods": node.free.pods}
        for name, amount in free.items():
            if used[node.name, name]:
                model.row(used[node.name, name], 0.0, amount + 1e-9)
    limit(model, snapshot, policy, counts)
    separate(model, snapshot, counts)
    if not model.rows:
        return 0
    result = solved(model, seconds)
    return -round(result.fun) if result.status == SOLVED else None
