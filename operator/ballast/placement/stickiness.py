"""Executors return to where they were, and a change in their number moves as few as possible.

The idea is Samza's host affinity. Its groupers give each process the floor share and deal out the rest, which moves
executors that could have stayed; here a share is the floor or one more, and those who hold one more keep it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Apart:
    """Components that must not share a place, such as a standby and what it stands by for."""

    components: frozenset[str]
    places: Mapping[str, str]
    """Of each node, the place that counts: itself, its rack or its zone. A node that is absent has none."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Where each executor goes, and those for whom there is no node."""

    nodes: Mapping[str, str]
    missing: tuple[str, ...] = ()

    def moved(self, was_on: Mapping[str, str]) -> tuple[str, ...]:
        """Executors that were somewhere and don't stay there."""
        return tuple(name for name in was_on if name in self.nodes and self.nodes[name] != was_on[name])


def open_slots(before: Mapping[str, int], running: Mapping[str, int]) -> dict[str, int]:
    """Slots to return to: by node, how many of a component's executors ran there and no longer do."""
    gaps = {node: count - running.get(node, 0) for node, count in before.items()}
    return {node: gap for node, gap in gaps.items() if gap > 0}


def even_shares(count: int, held: Mapping[str, int]) -> dict[str, int]:
    """How many of `count` executors each node takes, even to within one, so that the fewest have to move.

    `held` names every node, with as many as it has now. One more than the floor share goes to those that have more
    already, else to those that have most, then by name.
    """
    if not held:
        return {}
    share, extra = divmod(count, len(held))
    fullest = set(sorted(held, key=lambda node: (-held[node], node))[:extra])
    return {node: share + (node in fullest) for node in held}


def settled(
    components: Mapping[str, str],
    was_on: Mapping[str, str],
    limits: Mapping[str, int],
    *,
    apart: Sequence[Apart] = (),
    others: Iterable[tuple[str, str]] = (),
) -> Settled:
    """Puts each executor (`components` names the component of each) back where it was, the others anywhere.

    `limits` is how many each node takes; a node without one takes nobody. `others` are components and nodes of
    executors that stay where they are and only count for `apart`. Nobody returns into a place that is denied to it:
    who is earlier by name stays then. Those who can't return, and those that were nowhere, go to the emptiest node
    that admits them, components with the least choice first; one that must be apart from another keeps to the places
    that it has, as long as there is room.
    """
    floor = _Floor(limits, apart, others)
    homeless = []
    for executor in sorted(components):
        home = was_on.get(executor)
        if home is not None and floor.admits(components[executor], home):
            floor.seat(executor, components[executor], home)
        else:
            homeless.append(executor)
    choice = {component: len(floor.choices(component)) for component in set(components.values())}
    missing = []
    for executor in sorted(homeless, key=lambda each: (choice[components[each]], each)):
        nodes = floor.choices(components[executor])
        if nodes:
            floor.seat(executor, components[executor], floor.best(components[executor], nodes))
        else:
            missing.append(executor)
    return Settled(floor.seated, tuple(sorted(missing)))


class _Floor:
    """Who sits where so far."""

    def __init__(self, limits: Mapping[str, int], apart: Sequence[Apart], others: Iterable[tuple[str, str]]) -> None:
        self.seated: dict[str, str] = {}
        self._limits = limits
        self._apart = apart
        self._taken = Counter[str]()
        self._present: dict[tuple[int, str], set[str]] = {}
        for component, node in others:
            self._claim(component, node)

    def admits(self, component: str, node: str) -> bool:
        if self._taken[node] >= self._limits.get(node, 0):
            return False
        return all(self._present.get(place, set()) <= {component} for place in self._places(component, node))

    def choices(self, component: str) -> list[str]:
        return [node for node in self._limits if self.admits(component, node)]

    def best(self, component: str, nodes: Sequence[str]) -> str:
        def burden(node: str) -> tuple[int, int, str]:
            new_places = sum(place not in self._present for place in self._places(component, node))
            return new_places, self._taken[node] - self._limits[node], node

        return min(nodes, key=burden)

    def seat(self, executor: str, component: str, node: str) -> None:
        self.seated[executor] = node
        self._taken[node] += 1
        self._claim(component, node)

    def _claim(self, component: str, node: str) -> None:
        for place in self._places(component, node):
            self._present.setdefault(place, set()).add(component)

    def _places(self, component: str, node: str) -> Iterator[tuple[int, str]]:
        """Of each rule that concerns the component, the place that the node is in."""
        for number, rule in enumerate(self._apart):
            if component in rule.components and node in rule.places:
                yield number, rule.places[node]
