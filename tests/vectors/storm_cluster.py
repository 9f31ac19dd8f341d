"""Storm's recorded topologies and clusters in our terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ballast.enums import Grouping
from ballast.model.arrays import FloatArray
from ballast.placement.executor_order import ComponentGraph, GraphComponent, GraphStream
from ballast.placement.resource_aware import Availability, Layout

GROUPINGS = {"shuffle": Grouping.SHUFFLE, "local_or_shuffle": Grouping.LOCAL_OR_SHUFFLE}
"""Every other grouping of Storm needs all of its senders close, as FIELDS does."""

Given = Mapping[str, Any]


def executors_in_order(given: Given, component: str) -> list[int]:
    order: list[int] = given["iteration_order"]["executors"][component]
    return order


def component_graph(
    given: Given, unassigned: Iterable[int], children: Mapping[str, list[str]] | None = None
) -> ComponentGraph[int]:
    """The topology, its components and executors in Storm's iteration order.

    `children` is the order in which Storm went through the receivers of a component, where that was recorded.
    """
    waiting = set(unassigned)
    components = {each["id"]: each for each in given["topology"]["components"]}
    names = given["iteration_order"]["components"]
    parts = tuple(
        GraphComponent(
            name=name,
            waiting=tuple(each for each in executors_in_order(given, name) if each in waiting),
            size=len(components[name]["executors"]),
        )
        for name in names
    )
    ackers = [each for each in given["topology"]["acker_executors"] if each in waiting]
    ranks = {source: {name: at for at, name in enumerate(order)} for source, order in (children or {}).items()}
    streams = sorted(streams_of(components.values()), key=lambda each: ranks.get(each.source, {}).get(each.target, 0))
    return ComponentGraph(parts, tuple(streams), tuple(sorted(ackers)))


def streams_of(components: Iterable[Given]) -> list[GraphStream]:
    return [
        GraphStream(each["from"], component["id"], GROUPINGS.get(each["grouping"], Grouping.FIELDS))
        for component in components
        for each in component["inputs"]
    ]


RESOURCES = ("memory_mb", "cpu_pcore_percent", "gpu.count")
RARE = np.array([False, False, True])


@dataclass(frozen=True, slots=True)
class Demand:
    component: str
    amounts: FloatArray
    """By RESOURCES."""


def demands(given: Given) -> dict[int, Demand]:
    """What each executor asks for; ackers are their own component."""
    topology = given["topology"]
    parts = [(each["id"], each["request"], each["executors"]) for each in topology["components"]]
    if topology["acker_executors"]:
        parts.append(("__acker", topology["acker_request"], topology["acker_executors"]))
    return {executor: _demand(name, request) for name, request, executors in parts for executor in executors}


def _demand(component: str, request: Mapping[str, float]) -> Demand:
    memory = request["on_heap_mb"] + request["off_heap_mb"]
    amounts = np.array([memory, request["cpu_pcore_percent"], request.get("gpu.count", 0.0)])
    return Demand(component, amounts)


def layout(given: Given) -> Layout:
    return Layout([(node["rack"], node["host"], node["id"]) for node in given["nodes"]])


def room(given: Given) -> Availability:
    """What is free before anything is placed, and where executors of the topology run already."""
    at = {node["id"]: position for position, node in enumerate(given["nodes"])}
    free = np.array([[node.get(name, 0.0) for name in RESOURCES] for node in given["nodes"]])
    placed = np.zeros(len(at), dtype=np.int64)
    for slot in given["occupied"]:
        free[at[slot["node"]]] -= [slot.get(name, 0.0) for name in RESOURCES]
    asked = demands(given)
    for worker in given["already_assigned"]:
        placed[at[worker["node"]]] += len(worker["executors"])
        for executor in worker["executors"]:
            free[at[worker["node"]]] -= asked[executor].amounts
    return Availability(free=free.clip(min=0.0), placed=placed, rare=RARE)


def positions_on(given: Given, hosts: Iterable[str]) -> list[int]:
    """Nodes of the hosts, host by host."""
    return [at for host in hosts for at, node in enumerate(given["nodes"]) if node["host"] == host]
