"""Instances of placing one topology, whose cost can be counted; Storm's recorded clusters as such."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ballast.model import (
    Component,
    Executor,
    Level,
    Levels,
    Location,
    Memory,
    Node,
    Phase,
    PlacementPolicy,
    Policy,
    Resources,
    Snapshot,
    Stream,
    Topology,
)
from ballast.placement.placing import place
from ballast.placement.proximity import Effort
from tests.vectors.case import Case

TOPOLOGY = "storm/topology"
HOST_LEVELS = Levels((Level("rack", 3.0), Level("host", 1.0), Level("node", 0.0)))
"""A pair costs nothing within a host, 1 within a rack, 3 beyond."""
_MEGABYTE = float(1 << 20)


@dataclass(frozen=True, slots=True)
class Instance:
    name: str
    snapshot: Snapshot
    policy: Policy
    storm_cost: float | None
    """None where Storm's search found no schedule."""

    @property
    def executors(self) -> tuple[Executor, ...]:
        return self.snapshot.executors

    @property
    def waiting(self) -> tuple[Executor, ...]:
        return tuple(executor for executor in self.executors if executor.phase is Phase.GATED)

    def solved(self, effort: Effort | None = None, *, strategy: str = "Proximity") -> Mapping[str, str]:
        """Node by executor uid, of those placed."""
        policy = replace(self.policy, placement=replace(self.policy.placement, strategy=strategy))
        placements = place(self.snapshot, policy, Memory(), gated=self.waiting, effort=effort).placements
        return {p.uid: p.node for p in placements if p.node is not None}

    def cost(self, placed: Mapping[str, str]) -> float:
        """Σ rate × distance over the streams, each spread evenly over its pairs of executors.

        `placed`: node by executor uid, of those that do not run yet.
        """
        homes = {e.uid: e.node for e in self.executors if e.node is not None} | dict(placed)
        places = {node.name: node.location for node in self.snapshot.nodes}
        counts: dict[str, Counter[str]] = {}
        for executor in self.executors:
            counts.setdefault(executor.component, Counter())[homes[executor.uid]] += 1
        total = 0.0
        for stream in self.snapshot.topologies[0].streams:
            senders, receivers = counts.get(stream.source, Counter()), counts.get(stream.target, Counter())
            pairs = senders.total() * receivers.total()
            for here, k in senders.items():
                for there, m in receivers.items():
                    distance = self.policy.levels.distance(places[here], places[there])
                    total += (stream.bytes_per_second or 0.0) * k * m / pairs * distance
        for component, anchor, rate in self.pulls():
            for node, count in counts[component].items():
                total += rate * count * self.policy.levels.distance(places[node], anchor)
        return total

    def pulls(self) -> Iterator[tuple[str, Location, float]]:
        """Component, a fixed end that it exchanges with, and the rate of one of its executors."""
        sizes = Counter(executor.component for executor in self.executors)
        topology = self.snapshot.topologies[0]
        for stream in topology.streams:
            for inner, outer in ((stream.source, stream.target), (stream.target, stream.source)):
                fixed = topology.component(outer)
                if inner in sizes and outer not in sizes and fixed is not None:
                    rate = (stream.bytes_per_second or 0.0) / sizes[inner]
                    yield from ((inner, anchor.location, rate * anchor.share) for anchor in fixed.anchors)


def from_storm(case: Case) -> Instance:
    """A recorded schedule as an instance in which every pair of executors on an edge exchanges 1."""
    given = case.raw["given"]
    policy = Policy("storm", levels=HOST_LEVELS, placement=_unlimited())
    topology = _topology(given["topology"])
    running = {str(each): worker["node"] for worker in given["already_assigned"] for each in worker["executors"]}
    executors = tuple(
        replace(each, phase=Phase.RUNNING, node=running[each.uid]) if each.uid in running else each
        for each in _executors(given["topology"])
    )
    snapshot = Snapshot(0.0, _nodes(given, executors), executors, topologies=(topology,))
    pairs = case.raw["want"].get("communicating_pairs")
    cost = float(pairs["same_rack"] + 3 * pairs["other_rack"]) if pairs else None
    return Instance(case.id, snapshot, policy, cost)


def _unlimited() -> PlacementPolicy:
    return replace(PlacementPolicy(), max_executors_per_node_ratio=1.0, max_executors_per_zone_ratio=1.0)


def _topology(given: Mapping[str, object]) -> Topology:
    parts = list(given["components"])  # type: ignore[call-overload]
    sizes = {part["id"]: len(part["executors"]) for part in parts}
    edges = {(each["from"], part["id"]) for part in parts for each in part["inputs"] if each["from"] != part["id"]}
    names = [*sizes, "__acker"]
    return Topology(
        TOPOLOGY,
        "storm",
        "topology",
        tuple(Component(name, exchange_bytes_per_second=0.0) for name in names),
        streams=tuple(Stream(s, t, bytes_per_second=float(sizes[s] * sizes[t])) for s, t in sorted(edges)),
    )


def _nodes(given: Mapping[str, list[Mapping[str, float]]], executors: Iterable[Executor]) -> tuple[Node, ...]:
    taken: dict[object, Resources] = {}
    slots = [(slot["node"], _offer(slot)) for slot in given["occupied"]]
    for node, amounts in (*slots, *((each.node, each.requests) for each in executors if each.node is not None)):
        taken[node] = taken.get(node, Resources()).plus(amounts)
    return tuple(
        Node(
            str(node["id"]),
            (str(node["rack"]), str(node["host"]), str(node["id"])),
            _offer(node),
            requested=taken.get(node["id"], Resources()),
        )
        for node in given["nodes"]
    )


def _offer(amounts: Mapping[str, float]) -> Resources:
    gpus = amounts.get("gpu.count", 0.0)
    return Resources(
        amounts.get("cpu_pcore_percent", 0.0) / 100.0,
        amounts.get("memory_mb", 0.0) * _MEGABYTE,
        extended=(("gpu", gpus),) if gpus else (),
    )


def _executors(topology: Mapping[str, object]) -> tuple[Executor, ...]:
    parts = [(p["id"], p["request"], p["executors"]) for p in topology["components"]]  # type: ignore[attr-defined]
    if topology["acker_executors"]:
        parts.append(("__acker", topology["acker_request"], topology["acker_executors"]))
    return tuple(_executor(name, number, request) for name, request, numbers in parts for number in numbers)


def _executor(component: str, number: int, request: Mapping[str, float]) -> Executor:
    amounts = {**request, "memory_mb": request["on_heap_mb"] + request["off_heap_mb"]}
    return Executor(
        namespace="storm",
        name=f"executor-{number:05d}",
        uid=str(number),
        application="topology",
        executor_id=str(number),
        resource_profile="0",
        topology=TOPOLOGY,
        component=component,
        phase=Phase.GATED,
        created_at=0.0,
        requests=_offer(amounts),
    )
