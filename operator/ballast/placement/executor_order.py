"""In which order executors are placed, so that those which talk to each other come one after the other."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ballast.enums import Grouping
from ballast.model import ExecutorOrder
from ballast.placement.workload import TopologyWorkload

# What talks to what, as far as the order of placing needs it.

Id = TypeVar("Id")

EVEN = frozenset({Grouping.SHUFFLE, Grouping.LOCAL_OR_SHUFFLE, Grouping.LOAD_AWARE})
"""Groupings under which one sender needs its share of the receivers only, not all of them."""


@dataclass(frozen=True, slots=True)
class GraphComponent(Generic[Id]):
    """A component, the executors of it that are to be placed (in the order of taking them), and how many it has."""

    name: str
    waiting: tuple[Id, ...]
    size: int
    """All executors, the placed ones included."""


@dataclass(frozen=True, slots=True)
class GraphStream:
    source: str
    target: str
    grouping: Grouping = Grouping.SHUFFLE


@dataclass(frozen=True, slots=True)
class ComponentGraph(Generic[Id]):
    """Components and streams; the order in which either are given breaks ties. Streams name known components."""

    components: tuple[GraphComponent[Id], ...]
    streams: tuple[GraphStream, ...] = ()
    others: tuple[Id, ...] = ()
    """Executors of no component (such as Storm's ackers), which follow at the end as they are."""

    def children(self, name: str) -> list[str]:
        """Components that `name` sends to, each once, in the order of the streams."""
        return list(dict.fromkeys(s.target for s in self.streams if s.source == name))

    def neighbors(self, name: str) -> set[str]:
        """Components that `name` sends to or receives from; itself, if it sends to itself."""
        parents = {s.source for s in self.streams if s.target == name}
        return parents.union(self.children(name))

    def evenly_fed(self, source: str) -> set[str]:
        """Components that `source` feeds by at least one even grouping."""
        return {s.target for s in self.streams if s.source == source and s.grouping in EVEN}


def size_by_name(components: Sequence[GraphComponent[Id]]) -> dict[str, int]:
    return {component.name: component.size for component in components}


def by_proximity(graph: ComponentGraph[Id]) -> list[Id]:
    """Downstream along the streams: an executor, then its share of each component it feeds, and theirs in turn.

    Source: Storm's `ExecSorterByProximity`. Children that need all senders come before those fed evenly; the former
    in the order of the streams, the latter by name.
    """
    walk = _DownstreamWalk(graph)
    for name in topological_order(graph):
        for _ in range(len(walk.waiting[name])):
            walk.take(name)
    return [*walk.taken, *graph.others]


def by_connection_count(graph: ComponentGraph[Id]) -> list[Id]:
    """Best connected components first; an executor of one, then one of each neighbor, until all of them are drained.

    Source: Storm's `ExecSorterByConnectionCount`.
    """
    sizes = size_by_name(graph.components)
    neighbors = {name: sorted(graph.neighbors(name), key=lambda other: (sizes[other], other)) for name in sizes}
    connections = {name: size * sum(sizes[other] for other in neighbors[name]) for name, size in sizes.items()}
    waiting = {component.name: deque(component.waiting) for component in graph.components}
    order: list[Id] = []
    for name in sorted(sizes, key=lambda each: (-connections[each], each)):
        turns = [waiting[name], *(waiting[other] for other in neighbors[name])]
        while any(turns):
            order.extend(queue.popleft() for queue in turns if queue)
    return [*order, *graph.others]


def topological_order(graph: ComponentGraph[Id]) -> list[str]:
    """Senders before receivers, earlier given first; components of a cycle, and what hangs on it, at the end."""
    position = {component.name: at for at, component in enumerate(graph.components)}
    edges = {name: graph.children(name) for name in position}
    open_inputs = Counter(child for children in edges.values() for child in children)
    ready = [at for name, at in position.items() if not open_inputs[name]]
    order: list[str] = []
    while ready:
        name = graph.components[heapq.heappop(ready)].name
        order.append(name)
        for child in edges[name]:
            open_inputs[child] -= 1
            if not open_inputs[child]:
                heapq.heappush(ready, position[child])
    return list(dict.fromkeys([*order, *position]))


def sorted_children(graph: ComponentGraph[Id], name: str) -> list[str]:
    """What the walk visits after an executor of `name`, in this order."""
    even = graph.evenly_fed(name)
    children = graph.children(name)
    return [child for child in children if child not in even] + sorted(even)


class _DownstreamWalk(Generic[Id]):
    """Drains the components' queues depth-first; `taken` is the order so far."""

    def __init__(self, graph: ComponentGraph[Id]) -> None:
        names = [component.name for component in graph.components]
        self.waiting = {component.name: deque(component.waiting) for component in graph.components}
        self.taken: list[Id] = []
        self._children = {name: sorted_children(graph, name) for name in names}
        self._even = {name: graph.evenly_fed(name) for name in names}

    def take(self, name: str) -> None:
        """One executor of `name` with all that follows it. A stack, because a cycle nests as deep as there are
        executors.
        """
        stack = [self._visit(name)]
        while stack:
            child = next(stack[-1], None)
            if child is None:
                stack.pop()
            else:
                stack.append(self._visit(child))

    def _visit(self, name: str) -> Iterator[str]:
        """Takes one executor, then names each child as often as it is to be visited."""
        queue = self.waiting[name]
        senders = len(queue)
        if not senders:
            return
        self.taken.append(queue.popleft())
        for child in self._children[name]:
            receivers = len(self.waiting[child])
            if receivers:
                share = receivers // senders if child in self._even[name] else 1
                yield from (child for _ in range(max(1, share)))


# In which order the executors of a workload are placed.


def sequence(workload: TopologyWorkload, counts: Mapping[int, int], order: ExecutorOrder) -> list[int]:
    """Indices of the workload's groups, one entry per executor to place; `counts` says how many of each."""
    waiting: list[list[int]] = [[] for _ in workload.components]
    for group, count in sorted(counts.items()):
        waiting[workload.groups[group].component] += [group] * count
    graph = ComponentGraph(
        components=tuple(
            GraphComponent(name, tuple(queue), int(total))
            for name, queue, total in zip(workload.components, waiting, workload.totals, strict=True)
        ),
        streams=tuple(
            GraphStream(stream.source, stream.target, stream.grouping)
            for stream in workload.topology.streams
            if stream.source in workload.components and stream.target in workload.components
        ),
    )
    return by_connection_count(graph) if order is ExecutorOrder.CONNECTION_COUNT else by_proximity(graph)
