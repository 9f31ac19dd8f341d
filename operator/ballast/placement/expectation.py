"""How many executors of a component are still to come, and the room that others leave them.

Spark creates executors in batches, and the first are released at once. So their zone is chosen for all that are
expected, and for a while other sets choose zones as if those to come had their room already. No node is closed:
where no other zone holds a set, it is placed as if nothing were reserved.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ballast.model import Executor, Memory, Phase, Resources, Snapshot
from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.node_locations import NodeLocations
from ballast.placement.room import Room

RESERVED_SECONDS = 60.0
"""After its latest executor was created, a set has no room reserved any more: more may never come."""
GROWTH_SECONDS = 600.0
"""The same after its first one was: what dynamic allocation removes and creates again must not renew it for ever."""

ComponentKey = tuple[str, str]
"""Topology, component."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is known of a component that has executors."""

    to_come: int = 0
    """Executors that are expected, and are not there yet."""
    known: bool = True
    """False: nothing says whether more will come, or how many."""
    reserved: Resources = field(default_factory=Resources)
    """What those to come will request, while room is reserved for them."""

    @property
    def growing(self) -> bool:
        """Whether more executors will come, or may."""
        return self.to_come > 0 or not self.known


COMPLETE = Expectation()


def expectations(snapshot: Snapshot, memory: Memory) -> dict[ComponentKey, Expectation]:
    """What is expected of each component: its `executors` in the SparkTopology, otherwise what its executors say.

    Where neither is declared it may have any number, and at least as many as it had before.
    """
    declared = declared_sizes(snapshot)
    before = {(topology, component): sum(n for _, n in counts) for topology, component, counts in memory.placements}
    members: dict[ComponentKey, list[Executor]] = defaultdict(list)
    for executor in snapshot.executors:
        if executor.phase in (Phase.GATED, Phase.PENDING, Phase.RUNNING):
            members[executor.topology, executor.component].append(executor)
    return {
        key: _expectation(found, declared.get(key), before.get(key, 0), snapshot.taken_at)
        for key, found in members.items()
    }


def declared_sizes(snapshot: Snapshot) -> dict[ComponentKey, int]:
    """How many executors a component has once it is complete, where that is declared."""
    found: dict[ComponentKey, int] = {}
    for executor in snapshot.executors:
        if executor.expected is not None and executor.phase is not Phase.ENDED:
            key = (executor.topology, executor.component)
            found[key] = max(found.get(key, 0), executor.expected)
    for topology in snapshot.topologies:
        for component in topology.components:
            if component.expected is not None:
                found[topology.key, component.name] = component.expected
    return found


def _expectation(members: list[Executor], declared: int | None, before: int, now: float) -> Expectation:
    newest = max(members, key=lambda executor: (executor.created_at, executor.key))
    # An application that is started again may still have executors of its last run.
    created = [executor.created_at for executor in members if executor.application == newest.application]
    there = len(created)
    known = declared is not None
    to_come = max(0, (before if declared is None else declared) - there)
    # Of what may grow to any size, others expect that it doubles.
    count = to_come if known else max(to_come, there)
    lately = abs(now - newest.created_at) < RESERVED_SECONDS and now - min(created) < GROWTH_SECONDS
    return Expectation(to_come, known=known, reserved=newest.requests.times(count if lately else 0))


class ReservedRoom:
    """Amounts by zone that topologies have reserved in one pass; they change as the pass places executors."""

    def __init__(self, locations: NodeLocations, space: Room, expected: Mapping[ComponentKey, Expectation]) -> None:
        self._zones, self._size, self._space = locations.codes[0], locations.sizes[0], space
        self._locations = locations
        self._wanted: dict[str, list[tuple[str, FloatArray]]] = defaultdict(list)
        """By topology: components that reserve something, and how much."""
        for (topology, component), each in sorted(expected.items()):
            if each.reserved.pods:
                self._wanted[topology].append((component, space.vector(each.reserved)))
        self._by_topology: dict[str, FloatArray] = {}
        self._total = np.zeros((self._size, len(space.kinds)))

    def look(self, executors: Iterable[Executor], heading: Mapping[str, str]) -> None:
        """Reserve room where most executors of each component are. `heading`: node by uid of those on their way."""
        present: dict[str, dict[str, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
        for executor in executors if self._wanted else ():
            node = self._locations.index.get(executor.node or heading.get(executor.uid, ""))
            if node is not None and executor.topology in self._wanted:
                present[executor.topology][executor.component][int(self._zones[node])] += 1
        for topology, components in present.items():
            homes = {name: min(zones, key=lambda zone: (-zones[zone], zone)) for name, zones in components.items()}
            self._reserve(topology, homes)

    def placed(self, topology: str, components: Iterable[str], present: IntArray) -> None:
        """The same of one topology, where its executors are now. `present`: (components, nodes)."""
        if topology not in self._wanted:
            return
        homes: dict[str, int] = {}
        for name, row in zip(components, present, strict=True):
            if row.any():
                homes[name] = int(np.bincount(self._zones, weights=row, minlength=self._size).argmax())
        self._reserve(topology, homes)

    def _reserve(self, topology: str, homes: Mapping[str, int]) -> None:
        amounts = np.zeros_like(self._total)
        for component, wanted in self._wanted[topology]:
            if component in homes:
                amounts[homes[component]] += wanted
        self._total += amounts - self._by_topology.get(topology, 0.0)
        self._by_topology[topology] = amounts

    def by_others(self, topology: str) -> FloatArray | None:
        """(zones, kinds): what others have reserved; None if that is nothing."""
        others: FloatArray = self._total - self._by_topology.get(topology, 0.0)
        return others if (others > self._space.slack).any() else None
