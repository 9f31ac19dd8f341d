"""How far a component may spread: bang-bang control over capacity, after Storm's control of a grouping's scope.

A component's home is the node that holds most of it. Its load at a scope is its executors over the number that the
home's node, rack, zone or the whole pool could hold, room and spread limits taken together. It begins at the nearest
scope that holds it as it is. Above the higher bound it may spread one scope wider, below the lower bound at the next
narrower scope it draws together again; one step a pass.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ballast.model import Executor, Levels, Memory, Node, Phase, PlacementPolicy, Policy, Resources, Scope, Snapshot
from ballast.model.arrays import BoolArray, IntArray
from ballast.placement.limit import most_per_node
from ballast.placement.node_locations import NodeLocations, node_locations
from ballast.placement.room import Room, kinds
from ballast.placement.workload import TopologyWorkload

Scopes = tuple[tuple[str, str, str], ...]
"""Topology, component, scope; sorted, as kept in Memory."""

_LIVE = (Phase.GATED, Phase.PENDING, Phase.RUNNING)


def next_scopes(snapshot: Snapshot, policy: Policy, memory: Memory) -> Scopes:
    """The scope of every component that has an executor on a node of the pool, one step on from what is remembered."""
    before = {(topology, component): scope for topology, component, scope in _known(memory.scopes)}
    workloads: dict[tuple[str, str], list[Executor]] = defaultdict(list)
    for executor in snapshot.executors:
        if executor.phase in _LIVE:
            workloads[executor.topology, executor.component].append(executor)
    capacities = _Capacities(snapshot.nodes, policy, (e.requests for workload in workloads.values() for e in workload))
    result: list[tuple[str, str, str]] = []
    for key, workload in sorted(workloads.items()):
        loads = capacities.loads(key[1], workload)
        if loads:
            current = before.get(key) or capacities.spanned(workload)
            result.append((*key, stepped(current, loads, policy.placement).value))
    return tuple(result)


def by_topology(scopes: Scopes) -> dict[str, dict[str, Scope]]:
    """Scopes by component, by topology."""
    known: dict[str, dict[str, Scope]] = {}
    for topology, component, scope in _known(scopes):
        known.setdefault(topology, {})[component] = scope
    return known


def _known(scopes: Scopes) -> Iterator[tuple[str, str, Scope]]:
    """Without words of another version: these components begin near again."""
    for topology, component, scope in scopes:
        if scope in _WIDTHS:
            yield topology, component, Scope(scope)


def region(workload: TopologyWorkload, locations: NodeLocations, scopes: Mapping[str, Scope]) -> BoolArray | None:
    """(components, nodes): where each component of a workload may be sent; None when that is everywhere.

    Within its scope, seen from its home. A component that is nowhere yet may go anywhere. `scopes`: by component.
    """
    depths = dict(_depths(locations.levels))
    result = np.ones(workload.present.shape, dtype=np.bool_)
    for row, component in enumerate(workload.components):
        depth = depths.get(scopes.get(component, Scope.CLUSTER))
        if depth is not None and workload.present[row].any():
            codes = locations.codes[depth - 1]
            result[row] = codes == codes[int(np.argmax(workload.present[row]))]
    return None if result.all() else result


def stepped(current: Scope | None, loads: Mapping[Scope, float], policy: PlacementPolicy) -> Scope:
    """One step of control; `loads` by scope from near to far, 1 = full. Comparisons are strict."""
    scopes = list(loads)
    position = _first_at_least(current, scopes)
    if loads[scopes[position]] > policy.scope_higher_bound_ratio:
        return scopes[min(position + 1, len(scopes) - 1)]
    if position > 0 and loads[scopes[position - 1]] < policy.scope_lower_bound_ratio:
        return scopes[position - 1]
    return scopes[position]


_WIDTHS = list(Scope)


def _first_at_least(current: Scope | None, scopes: Sequence[Scope]) -> int:
    """Position of the scope, or of the next wider one where the pool does not have it; the narrowest to begin with."""
    if current is None:
        return 0
    wanted = _WIDTHS.index(current)
    return next((n for n, scope in enumerate(scopes) if _WIDTHS.index(scope) >= wanted), len(scopes) - 1)


@dataclass(frozen=True, slots=True)
class _Fitting:
    """How many executors of one template fit next to what is there."""

    by_node: IntArray
    by_place: tuple[IntArray, ...]
    """Sums by place, for each depth; the whole pool is depth 0."""
    largest: tuple[IntArray, ...]
    """The most that one node of the place holds."""


class _Capacities:
    """How many executors of a component a place could hold, those that are there included."""

    def __init__(self, nodes: Sequence[Node], policy: Policy, requests: Iterable[Resources]) -> None:
        self._policy = policy.placement
        self._locations = node_locations(nodes, policy.levels)
        self._open = np.array([node.open for node in self._locations.nodes], dtype=np.bool_)
        self._space = Room(self._locations, kinds(requests))
        self._depths = _depths(policy.levels)
        self._codes = [np.zeros(len(self._locations.nodes), dtype=np.int64), *self._locations.codes]
        self._known: dict[Resources, _Fitting] = {}

    def loads(self, component: str, workload: Sequence[Executor]) -> dict[Scope, float]:
        """By scope, near to far; empty when no executor is on a node of the pool."""
        index = self._locations.index
        homes = Counter(index[e.node] for e in workload if e.node in index)
        if not homes:
            return {}
        home = min(homes, key=lambda position: (-homes[position], position))
        fitting = self._fitting(max((e.requests for e in workload), key=_size))
        result: dict[Scope, float] = {}
        for scope, depth in (*self._depths, (Scope.CLUSTER, 0)):
            if scope in (Scope.NODE, Scope.CLUSTER) or self._locations.labels[depth - 1, home] >= 0:
                capacity = self._capacity(component, homes, home, depth=depth, fitting=fitting)
                result[scope] = len(workload) / max(1, capacity)
        return result

    def spanned(self, workload: Sequence[Executor]) -> Scope:
        """The nearest scope that holds all of the workload that is on nodes of the pool."""
        homes = [self._locations.index[e.node] for e in workload if e.node in self._locations.index]
        for scope, depth in self._depths:
            codes, labels = self._locations.codes[depth - 1][homes], self._locations.labels[depth - 1][homes]
            if (codes == codes[0]).all() and (scope is Scope.NODE or labels[0] >= 0):
                return scope
        return Scope.CLUSTER

    def _capacity(self, component: str, homes: Counter[int], home: int, *, depth: int, fitting: _Fitting) -> int:
        codes = self._codes[depth]
        place = int(codes[home])
        here = {position: count for position, count in homes.items() if codes[position] == place}
        there = sum(here.values())
        total = int(fitting.by_place[depth][place]) + there
        if most_per_node(self._policy, component, total) >= fitting.largest[depth][place] + max(here.values()):
            return total
        holds = fitting.by_node.copy()
        holds[list(here)] += list(here.values())
        return max(there, self._within_limits(component, holds[codes == place]))

    def _within_limits(self, component: str, holds: IntArray) -> int:
        """The most that nodes can hold of it when one may only hold its share of them all."""
        total, before = int(holds.sum()), -1
        while total != before:
            most, before = most_per_node(self._policy, component, total), total
            total = int(np.minimum(holds, most).sum())
        return total

    def _fitting(self, requests: Resources) -> _Fitting:
        if requests not in self._known:
            counts = np.where(self._open, self._space.capacity(self._space.vector(requests)), 0)
            sums, largest = [], []
            for codes in self._codes:
                sums.append(np.bincount(codes, weights=counts).astype(np.int64))
                largest.append(np.zeros(len(sums[-1]), dtype=np.int64))
                np.maximum.at(largest[-1], codes, counts)
            self._known[requests] = _Fitting(counts, tuple(sums), tuple(largest))
        return self._known[requests]


def _size(requests: Resources) -> tuple[float, float, float, tuple[tuple[str, float], ...]]:
    """What templates are compared by; of equally large ones the order of lists must not decide."""
    return requests.cpu_cores, requests.memory_bytes, requests.pods, requests.extended


def _depths(levels: Levels) -> tuple[tuple[Scope, int], ...]:
    """Scopes below the whole pool, near to far, with how many levels of a location name such a place."""
    depth = max(1, len(levels.ordered))
    racks = ((Scope.RACK, depth - 1),) if depth > 2 else ()
    zones = ((Scope.ZONE, 1),) if depth > 1 else ()
    return ((Scope.NODE, depth), *racks, *zones)
