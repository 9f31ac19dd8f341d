"""What talks to what: components, the streams between them, and the fixed ends outside."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ballast.model.executor import Workload
from ballast.model.location import Location


class Grouping(StrEnum):
    SHUFFLE = "Shuffle"
    LOCAL_OR_SHUFFLE = "LocalOrShuffle"
    FIELDS = "Fields"
    ALL = "All"
    GLOBAL = "Global"
    LOAD_AWARE = "LoadAware"


@dataclass(frozen=True, slots=True)
class Anchor:
    """One fixed end of an external component or of a driver: a place and its share of that end's traffic."""

    location: Location
    share: float
    """0…1; the shares of one component sum to 1."""
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Component:
    name: str
    workload: Workload | None = None
    expected: int | None = None
    """Expected number of executors; a hint for placing the set at once."""
    exchange_bytes_per_second: float | None = None
    """All-to-all traffic among its own executors; None = not declared (counts as one unit of traffic)."""
    anchors: tuple[Anchor, ...] = ()
    """Where an external component is; empty for one that Ballast places."""
    external: bool = False


@dataclass(frozen=True, slots=True)
class Stream:
    source: str
    target: str
    grouping: Grouping = Grouping.SHUFFLE
    bytes_per_second: float | None = None
    """None = not known; then it weighs like the mean of the known ones, or 1 if none is known."""


@dataclass(frozen=True, slots=True)
class Separation:
    """Components that must not share a place."""

    components: tuple[str, ...]
    by: str = "Node"
    """Node, Rack or Zone."""


@dataclass(frozen=True, slots=True)
class Topology:
    key: str
    """`namespace/name`; for an implicit topology `namespace/application`."""
    namespace: str
    name: str
    components: tuple[Component, ...]
    streams: tuple[Stream, ...] = ()
    separate: tuple[Separation, ...] = ()
    implicit: bool = False
    driver: Anchor | None = None
    failed_executors: int = 0
    """Failures that count towards Spark's own limit."""

    def component(self, name: str) -> Component | None:
        return next((c for c in self.components if c.name == name), None)
