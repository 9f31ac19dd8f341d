"""In which order the executors of a crew are placed."""

from __future__ import annotations

from collections.abc import Mapping

from ballast.model import ExecutorOrder
from ballast.placement.crew import Crew
from ballast.placement.storm.component_graph import ComponentGraph, GraphComponent, GraphStream
from ballast.placement.storm.executor_order import by_connection_count, by_proximity


def sequence(crew: Crew, counts: Mapping[int, int], order: ExecutorOrder) -> list[int]:
    """Indices of the crew's groups, one entry per executor to place; `counts` says how many of each."""
    waiting: list[list[int]] = [[] for _ in crew.components]
    for group, count in sorted(counts.items()):
        waiting[crew.groups[group].component] += [group] * count
    graph = ComponentGraph(
        components=tuple(
            GraphComponent(name, tuple(queue), int(total))
            for name, queue, total in zip(crew.components, waiting, crew.totals, strict=True)
        ),
        streams=tuple(
            GraphStream(stream.source, stream.target, stream.grouping)
            for stream in crew.topology.streams
            if stream.source in crew.components and stream.target in crew.components
        ),
    )
    return by_connection_count(graph) if order is ExecutorOrder.CONNECTION_COUNT else by_proximity(graph)
