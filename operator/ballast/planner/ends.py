"""How far an executor is from what it talks to, end by end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ballast.model import Anchor, Executor, Levels, Location, Phase, Scope, Snapshot, Topology


class EndKind(StrEnum):
    COMPONENT = "Component"
    EXTERNAL = "External"
    DRIVER = "Driver"


@dataclass(frozen=True, slots=True)
class End:
    """One component, external workload or driver that an executor exchanges data with."""

    name: str
    kind: EndKind
    distance: float
    """Mean over what is there, in the policy's own unit."""
    scopes: tuple[tuple[Scope, float], ...]
    """Share of it within each scope and no nearer one, near to far; the shares sum to 1."""


def ends(executor: Executor, snapshot: Snapshot, levels: Levels) -> tuple[End, ...]:
    """Its own component first, then streams in their order, then the driver; empty while it is on no known node."""
    places = {node.name: node.location for node in snapshot.nodes}
    here = places.get(executor.node or "")
    if here is None:
        return ()
    topology = next((t for t in snapshot.topologies if t.key == executor.topology), None)
    peers = _peers(executor, snapshot, places)
    found = [_component(name, peers[name], here, levels) for name in _partners(executor, topology) if name in peers]
    found += list(_external(executor, topology, here, levels))
    if topology is not None and topology.driver is not None:
        found.append(_fixed("driver", EndKind.DRIVER, [topology.driver], here, levels))
    return tuple(found)


def _partners(executor: Executor, topology: Topology | None) -> list[str]:
    """Components that it exchanges with, its own first."""
    names = [executor.component]
    for stream in topology.streams if topology else ():
        if executor.component in (stream.source, stream.target):
            names += [stream.source, stream.target]
    return list(dict.fromkeys(names))


def _peers(executor: Executor, snapshot: Snapshot, places: Mapping[str, Location]) -> dict[str, Counter[Location]]:
    """The other executors of its topology: how many of each component are at each location."""
    found: dict[str, Counter[Location]] = {}
    for other in snapshot.executors:
        bound = other.node in places and other.phase in (Phase.RUNNING, Phase.PENDING)
        if bound and other.topology == executor.topology and other.uid != executor.uid:
            found.setdefault(other.component, Counter())[places[other.node or ""]] += 1
    return found


def _component(name: str, peers: Counter[Location], here: Location, levels: Levels) -> End:
    total = peers.total()
    return _end(name, EndKind.COMPONENT, ((there, n / total) for there, n in peers.items()), here, levels)


def _external(executor: Executor, topology: Topology | None, here: Location, levels: Levels) -> Iterator[End]:
    for name in _partners(executor, topology)[1:]:
        component = topology.component(name) if topology else None
        if component is not None and component.anchors:
            yield _fixed(name, EndKind.EXTERNAL, component.anchors, here, levels)


def _fixed(name: str, kind: EndKind, anchors: Iterable[Anchor], here: Location, levels: Levels) -> End:
    return _end(name, kind, ((anchor.location, anchor.share) for anchor in anchors), here, levels)


def _end(name: str, kind: EndKind, places: Iterable[tuple[Location, float]], here: Location, levels: Levels) -> End:
    shares: dict[Scope, float] = {}
    distance = 0.0
    for there, share in places:
        scope = levels.scope(here, there)
        shares[scope] = shares.get(scope, 0.0) + share
        distance += share * levels.distance(here, there)
    near_to_far = [(scope, shares[scope]) for scope in Scope if scope in shares]
    return End(name, kind, distance, tuple(near_to_far))
