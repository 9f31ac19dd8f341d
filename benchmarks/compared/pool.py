"""Nodes in zones and racks, filled unevenly by pods that are no executors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random

from benchmarks.load.pods import JSON, POOL, foreign
from tests.testbed.nodes import NodeSpec

NODE_CORES = 16.0
EXECUTOR_CORES = 1.5
LEAST_FILLED, MOST_FILLED = 0.4, 0.7
PODS_PER_NODE = 2
"""Of the background; their sizes differ."""


@dataclass(frozen=True, slots=True)
class Shape:
    zones: int
    racks: int
    """In each zone."""
    nodes: int
    """In each rack."""

    @property
    def size(self) -> int:
        return self.zones * self.racks * self.nodes


SHAPES: Mapping[int, Shape] = {shape.size: shape for shape in (Shape(3, 4, 8), Shape(5, 10, 20))}


@dataclass(frozen=True)
class FilledPool:
    """Without slots: what is worked out once is kept."""

    shape: Shape
    seed: int

    @cached_property
    def nodes(self) -> dict[str, NodeSpec]:
        shape = self.shape
        found = (
            NodeSpec(
                f"node-{zone}-{rack:02d}-{number:02d}",
                zone=f"z{zone}",
                rack=f"z{zone}-r{rack:02d}",
                cpu=f"{NODE_CORES:g}",
                memory="64Gi",
                pods="110",
                labels=POOL,
            )
            for zone in range(shape.zones)
            for rack in range(shape.racks)
            for number in range(shape.nodes)
        )
        return {node.name: node for node in found}

    @cached_property
    def used_cores(self) -> dict[str, float]:
        """By node: some racks are fuller than others, and some nodes of a rack are."""
        random = Random(f"background {self.seed}")
        racks = {rack: random.random() for rack in sorted({node.rack for node in self.nodes.values()})}
        span = MOST_FILLED - LEAST_FILLED
        shares = {name: (racks[node.rack] + random.random()) / 2 for name, node in self.nodes.items()}
        return {name: NODE_CORES * (LEAST_FILLED + span * share) for name, share in shares.items()}

    @property
    def holds(self) -> dict[str, int]:
        """By node: executors next to the background."""
        return {name: int((NODE_CORES - used) / EXECUTOR_CORES) for name, used in self.used_cores.items()}

    @property
    def largest_rack(self) -> int:
        """Executors that fit into the rack that holds most of them."""
        return max(self._held(lambda node: node.rack).values())

    @property
    def largest_zone(self) -> int:
        return max(self._held(lambda node: node.zone).values())

    def background(self, namespace: str) -> Iterator[JSON]:
        """Pods that are bound from the start."""
        random = Random(f"pods {self.seed}")
        for index, (name, cores) in enumerate(self.used_cores.items()):
            first = random.uniform(0.3, 0.7)
            for number, share in enumerate((first, 1.0 - first)):
                pod = foreign(index * PODS_PER_NODE + number, namespace=namespace, node_name=name)
                requests = {"cpu": f"{int(1000 * cores * share)}m", "memory": f"{int(4096 * cores * share)}Mi"}
                pod["spec"]["containers"][0]["resources"] = {"requests": requests}
                yield pod

    def random_zone(self, application: str) -> str:
        return Random(f"zone {self.seed} {application}").choice(self.zones)

    def driver_node(self, application: str) -> str:
        """Where the application's driver is, whichever peer places its executors: one of the ten emptiest nodes."""
        emptiest = sorted(self.used_cores, key=lambda name: self.used_cores[name])[:10]
        return Random(f"driver {self.seed} {application}").choice(emptiest)

    @property
    def zones(self) -> list[str]:
        return sorted({node.zone for node in self.nodes.values()})

    def emptiest_zone(self, taken: Counter[str]) -> str:
        """`taken`: executors by node."""
        free: Counter[str] = Counter()
        for name, node in self.nodes.items():
            free[node.zone] += self.holds[name] - taken[name]
        return max(self.zones, key=lambda zone: free[zone])

    def _held(self, place: Callable[[NodeSpec], str]) -> Counter[str]:
        held: Counter[str] = Counter()
        for name, count in self.holds.items():
            held[place(self.nodes[name])] += count
        return held
