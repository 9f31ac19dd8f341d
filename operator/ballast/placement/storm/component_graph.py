"""What talks to what, as far as the order of placing needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ballast.model.topology import Grouping

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
