"""Large pools in which everything is gated at once and everything fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from ballast.model import (
    Component,
    Executor,
    Node,
    Phase,
    PlacementMode,
    PlacementPolicy,
    Policy,
    Resources,
    Separation,
    Snapshot,
    Stream,
    Topology,
)

NOW = 1_000_000.0
ENFORCED = Policy("large", placement=PlacementPolicy(mode=PlacementMode.ENFORCE))
_GIB = float(1 << 30)


def pool(nodes: int, *, cores: float, zones: int = 3) -> tuple[Node, ...]:
    """Empty nodes in racks of twenty; the racks are dealt out to the zones in turn."""
    return tuple(
        Node(
            f"node-{number:05d}",
            (f"zone-{number // 20 % zones}", f"rack-{number // 20}", f"node-{number:05d}"),
            Resources(cores, 4 * cores * _GIB, 250),
            labels={"kubernetes.io/hostname": f"node-{number:05d}"},
        )
        for number in range(nodes)
    )


def chain(nodes: tuple[Node, ...], *, components: int, executors: int, templates: int = 1) -> Snapshot:
    """One topology: each component of so many executors sends to the next; sizes by template differ a little."""
    names = [f"part-{number:03d}" for number in range(components)]
    topology = Topology(
        "team/t",
        "team",
        "t",
        tuple(Component(name) for name in names),
        streams=tuple(Stream(source, target) for source, target in pairwise(names)),
    )
    waiting = tuple(
        _gated(f"{name}-{number}", "t", name, cores=1.0 - 0.05 * (number % templates))
        for name in names
        for number in range(executors)
    )
    return Snapshot(NOW, nodes, waiting, topologies=(topology,))


def apart(nodes: tuple[Node, ...], *, topologies: int) -> Snapshot:
    """Topologies of five executors in two components that must not share a node."""
    named = [f"t{number:04d}" for number in range(topologies)]
    kept = tuple(
        Topology(
            f"team/{name}",
            "team",
            name,
            (Component("a"), Component("b")),
            streams=(Stream("a", "b"),),
            separate=(Separation(("a", "b"), "Node"),),
        )
        for name in named
    )
    waiting = tuple(_gated(f"{name}-{number}", name, "ab"[number % 2]) for name in named for number in range(5))
    return Snapshot(NOW, nodes, waiting, topologies=kept)


CASES: Mapping[str, Callable[[], Snapshot]] = {
    "one component of 10 000": lambda: chain(pool(1000, cores=16.0), components=1, executors=10_000),
    "20 components of 200, four cores": lambda: chain(pool(1500, cores=4.0), components=20, executors=200),
    "200 components of 50": lambda: chain(pool(1000, cores=16.0), components=200, executors=50),
    "200 components of ten templates": lambda: chain(
        pool(1000, cores=16.0), components=200, executors=50, templates=10
    ),
    "2 000 topologies that keep apart": lambda: apart(pool(1000, cores=16.0), topologies=2000),
}


def _gated(name: str, topology: str, component: str, *, cores: float = 1.0) -> Executor:
    return Executor(
        namespace="team",
        name=name,
        uid=name,
        application=f"{topology}-{component}",
        executor_id=name,
        resource_profile="0",
        topology=f"team/{topology}",
        component=component,
        phase=Phase.GATED,
        created_at=NOW - 10,
        requests=Resources(cores, _GIB, 1),
        last_gate_since=NOW - 5,
        graceful=True,
    )
