"""Storm's recorded topologies and clusters in our terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ballast.model.topology import Grouping
from ballast.placement.storm.component_graph import ComponentGraph, GraphComponent, GraphStream

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
