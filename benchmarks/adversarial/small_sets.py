"""Small pools and one topology, all of whose executors are gated: drawn, changed, and compared with the optimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from ballast.cli.situation import Situation
from ballast.model import (
    Anchor,
    Component,
    Executor,
    Memory,
    Node,
    Phase,
    PlacementMode,
    PlacementPolicy,
    Policy,
    Resources,
    Snapshot,
    Stream,
    Topology,
)
from benchmarks.quality.exact import least_cost
from benchmarks.quality.small_pools import most_placed
from tests.vectors.storm_instance import Instance

NOW = 1_000_000.0
ENFORCED = Policy("adversary", placement=PlacementPolicy(mode=PlacementMode.ENFORCE))
_GIB = float(1 << 30)
_TOPOLOGY = "team/t"
_NAMES = ("a", "b", "c", "d")
_BROKER = "broker"
_RATES = (1e6, 3e6, 10e6, 30e6, 100e6)
_CORES = (2.0, 3.0, 4.0, 6.0, 8.0)
_REQUESTS = tuple(Resources(cpu, memory * _GIB, 1) for cpu in (0.5, 1.0, 1.5, 2.0) for memory in (1, 2, 4))
_MOST_NODES = 8
MOST_EXECUTORS = 12
_SOLVER_SECONDS = 2.0
_LEAST_SHARE = 0.05
"""An optimum below this share of what it costs to have everything in different zones counts as this share."""


def drawn(random: Random) -> Situation:
    """Up to eight nodes in up to three zones, and up to twelve executors of up to four components."""
    nodes = tuple(_node(random) for _ in range(random.randint(3, _MOST_NODES)))
    names = _NAMES[: random.randint(1, len(_NAMES))]
    parts = [Component(name, exchange_bytes_per_second=_rate_or_none(random)) for name in names]
    zones = sorted({node.location[0] for node in nodes}, key=str)
    anchors = tuple(Anchor((zone, None, None), 1.0 / len(zones)) for zone in zones)
    broker = Component(_BROKER, anchors=anchors, external=True)
    streams = tuple(_stream(names, random) for _ in range(random.randint(1, 4)))
    topology = Topology(_TOPOLOGY, "team", "t", (broker, *parts), streams=_once(streams))
    executors = tuple(_executor(random.choice(names), random) for _ in range(random.randint(3, MOST_EXECUTORS)))
    ratio = random.choice((ENFORCED.placement.max_executors_per_node_ratio, 1.0))
    policy = replace(ENFORCED, placement=replace(ENFORCED.placement, max_executors_per_node_ratio=ratio))
    return _situation(Snapshot(NOW, nodes, executors, topologies=(topology,)), policy)


def changed(situation: Situation, random: Random) -> Situation:
    """One node, executor, rate or limit differs."""
    found = random.choice(_CHANGES)(situation.snapshot, random)
    return _situation(found, situation.policy)


def cost_ratio(situation: Situation) -> float:
    """What the placement costs by the least that it can; 0 where the set is not placed, or the optimum not proved."""
    homes = placed(situation)
    if len(homes) < len(situation.snapshot.executors):
        return 0.0
    instance = as_instance(situation)
    ours = instance.cost(homes)
    floor = _LEAST_SHARE * _all_apart(instance)
    if ours <= floor:
        return 1.0
    least = least_cost(instance, seconds=_SOLVER_SECONDS)
    return 0.0 if least is None else max(ours, floor) / max(least, floor)


def left_out(situation: Situation) -> float:
    """Executors without a node though all of them fit; how full the pool gets, below 0, where all have one.

    So a search for more of them goes on to fuller pools where nothing is left out.
    """
    snapshot = situation.snapshot
    missing = len(snapshot.executors) - len(placed(situation))
    asked = sum(executor.requests.cpu_cores for executor in snapshot.executors)
    full = asked / max(1e-9, sum(node.free.cpu_cores for node in snapshot.nodes))
    if not missing:
        return min(0.0, full - 1.0)
    most = most_placed(snapshot, situation.policy, seconds=_SOLVER_SECONDS)
    return float(missing) if most == len(snapshot.executors) else -1.0


def placed(situation: Situation) -> dict[str, str]:
    """Node by executor uid, as a pass decides."""
    return {each.uid: each.node for each in situation.plan().placements if each.node is not None}


def as_instance(situation: Situation) -> Instance:
    """What a component exchanges with itself becomes a stream of its own, as the exact solver wants it."""
    snapshot = situation.snapshot
    topology = snapshot.topologies[0]
    own = tuple(
        Stream(each.name, each.name, bytes_per_second=each.exchange_bytes_per_second)
        for each in topology.components
        if each.exchange_bytes_per_second
    )
    declared = replace(topology, streams=(*topology.streams, *own))
    return Instance("adversary", replace(snapshot, topologies=(declared,)), situation.policy, None)


def _all_apart(instance: Instance) -> float:
    rates = sum(stream.bytes_per_second or 0.0 for stream in instance.snapshot.topologies[0].streams)
    return rates * instance.policy.levels.ordered[0].distance


# Parts of a case, and what can be changed in one.


def _node(random: Random) -> Node:
    cores = random.choice(_CORES)
    place = (f"zone-{random.randrange(3)}", f"rack-{random.randrange(2)}", "")
    return Node("", place, Resources(cores, random.choice((2, 4)) * cores * _GIB, 110))


def _executor(component: str, random: Random) -> Executor:
    return Executor(
        namespace="team",
        name="",
        uid="",
        application=component,
        executor_id="",
        resource_profile="0",
        topology=_TOPOLOGY,
        component=component,
        phase=Phase.GATED,
        created_at=NOW - 10.0,
        requests=random.choice(_REQUESTS),
        last_gate_since=NOW - 5.0,
        graceful=True,
        labeled=True,
    )


def _rate_or_none(random: Random) -> float:
    return random.choice((0.0, *_RATES))


def _stream(names: Sequence[str], random: Random) -> Stream:
    source = random.choice((_BROKER, *names))
    target = random.choice([name for name in names if name != source] or [_BROKER])
    return Stream(source, target, bytes_per_second=random.choice(_RATES))


def _once(streams: Sequence[Stream]) -> tuple[Stream, ...]:
    return tuple({(each.source, each.target): each for each in streams}.values())


def _situation(snapshot: Snapshot, policy: Policy) -> Situation:
    """With names that follow from the order, so that a copy of a node or an executor has its own."""
    nodes = tuple(
        replace(node, name=f"n{index}", location=(*node.location[:-1], f"n{index}"))
        for index, node in enumerate(snapshot.nodes)
    )
    executors = tuple(
        replace(each, name=f"e{index:02d}", uid=f"e{index:02d}", executor_id=str(index))
        for index, each in enumerate(snapshot.executors)
    )
    return Situation(policy, Memory(), replace(snapshot, nodes=nodes, executors=executors))


def _another_node(snapshot: Snapshot, random: Random) -> Snapshot:
    if len(snapshot.nodes) >= _MOST_NODES:
        return _other_size(snapshot, random)
    return replace(snapshot, nodes=(*snapshot.nodes, random.choice((random.choice(snapshot.nodes), _node(random)))))


def _without_a_node(snapshot: Snapshot, random: Random) -> Snapshot:
    gone = random.randrange(len(snapshot.nodes))
    kept = tuple(node for index, node in enumerate(snapshot.nodes) if index != gone)
    return replace(snapshot, nodes=kept) if len(kept) > 1 else snapshot


def _other_size(snapshot: Snapshot, random: Random) -> Snapshot:
    index, other = random.randrange(len(snapshot.nodes)), _node(random)
    return _with_node(snapshot, index, replace(snapshot.nodes[index], allocatable=other.allocatable))


def _other_place(snapshot: Snapshot, random: Random) -> Snapshot:
    index, other = random.randrange(len(snapshot.nodes)), _node(random)
    return _with_node(snapshot, index, replace(snapshot.nodes[index], location=other.location))


def _with_node(snapshot: Snapshot, index: int, node: Node) -> Snapshot:
    return replace(snapshot, nodes=(*snapshot.nodes[:index], node, *snapshot.nodes[index + 1 :]))


def _another_executor(snapshot: Snapshot, random: Random) -> Snapshot:
    if len(snapshot.executors) >= MOST_EXECUTORS:
        return _other_executor(snapshot, random)
    return replace(snapshot, executors=(*snapshot.executors, random.choice(snapshot.executors)))


def _without_an_executor(snapshot: Snapshot, random: Random) -> Snapshot:
    gone = random.randrange(len(snapshot.executors))
    kept = tuple(each for index, each in enumerate(snapshot.executors) if index != gone)
    return replace(snapshot, executors=kept) if len(kept) > 1 else snapshot


def _other_executor(snapshot: Snapshot, random: Random) -> Snapshot:
    index = random.randrange(len(snapshot.executors))
    names = [each.name for each in snapshot.topologies[0].components if not each.external]
    other = _executor(random.choice(names), random)
    executors = (*snapshot.executors[:index], other, *snapshot.executors[index + 1 :])
    return replace(snapshot, executors=executors)


def _other_stream(snapshot: Snapshot, random: Random) -> Snapshot:
    topology = snapshot.topologies[0]
    names = [each.name for each in topology.components if not each.external]
    kept = list(topology.streams)
    if len(kept) > 1 and random.random() < 0.5:
        kept.pop(random.randrange(len(kept)))
    else:
        kept.append(_stream(names, random))
    return replace(snapshot, topologies=(replace(topology, streams=_once(kept)),))


def _other_exchange(snapshot: Snapshot, random: Random) -> Snapshot:
    topology = snapshot.topologies[0]
    index = random.randrange(1, len(topology.components))
    other = replace(topology.components[index], exchange_bytes_per_second=_rate_or_none(random))
    components = (*topology.components[:index], other, *topology.components[index + 1 :])
    return replace(snapshot, topologies=(replace(topology, components=components),))


_CHANGES: tuple[Callable[[Snapshot, Random], Snapshot], ...] = (
    _another_node,
    _without_a_node,
    _other_size,
    _other_place,
    _another_executor,
    _without_an_executor,
    _other_executor,
    _other_stream,
    _other_exchange,
)
