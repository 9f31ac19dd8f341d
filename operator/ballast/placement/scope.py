"""How far a component may spread: bang-bang control over capacity, after Storm's control of a grouping's scope.

A component's home is the node that holds most of it. Its load at a scope is its executors over the number that the
home's node, rack, zone or the whole pool could hold. Above the higher bound it may spread one scope wider, below the
lower bound at the next narrower scope it draws together again; one step a pass.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ballast.model import (
    Executor,
    Levels,
    Location,
    Memory,
    Node,
    Phase,
    PlacementPolicy,
    Policy,
    Resources,
    Scope,
    Snapshot,
)

Scopes = tuple[tuple[str, str, str], ...]
"""Topology, component, scope; sorted, as kept in Memory."""

_LIVE = (Phase.GATED, Phase.PENDING, Phase.RUNNING)


def next_scopes(snapshot: Snapshot, policy: Policy, memory: Memory) -> Scopes:
    """The scope of every component that has an executor on a node of the pool, one step on from what is remembered."""
    capacities = _Capacities(snapshot.nodes, policy.levels)
    before = {(topology, component): Scope(scope) for topology, component, scope in memory.scopes}
    crews: dict[tuple[str, str], list[Executor]] = defaultdict(list)
    for executor in snapshot.executors:
        if executor.phase in _LIVE:
            crews[executor.topology, executor.component].append(executor)
    result: list[tuple[str, str, str]] = []
    for key, crew in sorted(crews.items()):
        loads = capacities.loads(crew)
        if loads:
            result.append((*key, stepped(before.get(key), loads, policy.placement).value))
    return tuple(result)


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
class _Room:
    """How many executors of one template fit beside what is there: by node, and by place of each level."""

    by_node: Mapping[str, int]
    by_place: Mapping[Location, int]
    everywhere: int


class _Capacities:
    """Room by template, computed once for each."""

    def __init__(self, nodes: Sequence[Node], levels: Levels) -> None:
        self._nodes = nodes
        self._places = {node.name: node.location for node in nodes}
        self._scopes = _place_scopes(levels)
        self._rooms: dict[Resources, _Room] = {}

    def loads(self, crew: Sequence[Executor]) -> dict[Scope, float]:
        """By scope, near to far; empty when no executor is on a node of the pool."""
        homes = Counter(e.node for e in crew if e.node in self._places)
        if not homes:
            return {}
        home = min(homes, key=lambda node: (-homes[node], node or ""))
        location = self._places[home or ""]
        room = self._room(max((e.requests for e in crew), key=lambda r: (r.cpu_cores, r.memory_bytes)))
        capacities = {Scope.NODE: homes[home] + room.by_node[home or ""]}
        for scope, depth in self._scopes:
            if depth <= len(location) and location[depth - 1] is not None:
                place = location[:depth]
                here = sum(count for node, count in homes.items() if self._places[node or ""][:depth] == place)
                capacities[scope] = here + room.by_place[place]
        capacities[Scope.CLUSTER] = homes.total() + room.everywhere
        return {scope: len(crew) / max(1, capacity) for scope, capacity in capacities.items()}

    def _room(self, requests: Resources) -> _Room:
        if requests not in self._rooms:
            counts = {node.name: _fitting(requests, node) if node.open else 0 for node in self._nodes}
            places: Counter[Location] = Counter()
            for node in self._nodes:
                for _, depth in self._scopes:
                    places[node.location[:depth]] += counts[node.name]
            self._rooms[requests] = _Room(counts, places, sum(counts.values()))
        return self._rooms[requests]


def _place_scopes(levels: Levels) -> tuple[tuple[Scope, int], ...]:
    """Scopes between node and cluster, near to far, with how many levels of a location name such a place."""
    depth = len(levels.ordered)
    racks = ((Scope.RACK, depth - 1),) if depth > 2 else ()
    return (*racks, (Scope.ZONE, 1)) if depth > 1 else ()


def _fitting(requests: Resources, node: Node) -> int:
    free = node.free
    extended = dict(free.extended)
    pairs = [
        (requests.cpu_cores, free.cpu_cores),
        (requests.memory_bytes, free.memory_bytes),
        (requests.pods, free.pods),
    ]
    pairs += [(amount, extended.get(name, 0.0)) for name, amount in requests.extended]
    counts = [np.floor(offered / asked + 1e-9) for asked, offered in pairs if asked > 0]
    return max(0, int(min(counts, default=0)))
