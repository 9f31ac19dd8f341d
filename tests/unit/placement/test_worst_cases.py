"""Cases in which a placement cost far more than the optimum: found by the benchmark adversary, and mended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ballast.model import Component, Memory, Policy, Resources, Snapshot, Stream
from ballast.placement.placing import place
from tests.builders import GIB, a_node, a_topology, gated
from tests.vectors.storm_instance import Instance

Nodes = Sequence[tuple[int, int, float, int]]
"""Zone, rack within it, cores, GiB of memory."""
Executors = Mapping[str, Sequence[tuple[float, int]]]
"""CPU and GiB of memory, by component."""
CASES: dict[str, tuple[Nodes, Executors, dict[str, float], tuple[str, str], float]] = {
    "no zone holds the set, and it is best to begin with the component that exchanges most": (
        [
            (0, 0, 4, 8),
            (0, 0, 3, 6),
            (1, 1, 4, 16),
            (1, 0, 4, 16),
            (2, 1, 3, 6),
            (2, 0, 8, 32),
            (1, 0, 2, 8),
            (1, 1, 4, 16),
        ],
        {
            "a": [(2, 1), (2, 1), (2, 1), (1, 2), (1, 2), (1.5, 2), (0.5, 2), (1, 1)],
            "b": [(1, 2), (0.5, 2), (1.5, 4), (0.5, 4)],
        },
        {"a": 1e6, "b": 100e6},
        ("b", "a"),
        56_125_000.0,
    ),
    "the part with little traffic must not take the rack of the part with much": (
        [(2, 0, 4, 8), (0, 0, 3, 12), (0, 1, 6, 12)],
        {
            "a": [(1.5, 2), (2, 2)],
            "b": [(1, 2), (1, 2), (1, 1), (0.5, 2), (1, 4), (2, 1)],
            "c": [(1, 2), (0.5, 2), (1.5, 1)],
        },
        {"a": 100e6, "b": 10e6, "c": 3e6},
        ("c", "b"),
        229_777_778.0,
    ),
    "parts that exchange nothing with each other want the same large node": (
        [(2, 0, 2, 4), (2, 1, 8, 32), (2, 1, 3, 6), (2, 1, 3, 12), (1, 1, 8, 32), (1, 1, 4, 8)],
        {
            "a": [(1.5, 2), (1.5, 4)],
            "b": [(2, 2), (0.5, 4), (1.5, 1), (2, 2)],
            "c": [(0.5, 2), (1, 4), (1, 2), (2, 2), (1, 1), (2, 1)],
        },
        {"a": 100e6, "b": 10e6, "c": 10e6},
        ("b", "a"),
        62_166_667.0,
    ),
    "twelve executors of eight sizes nearly fill the pool": (
        [(0, 0, 3, 6), (0, 0, 3, 6), (1, 1, 4, 16), (2, 1, 3, 6), (2, 0, 8, 32), (1, 0, 2, 8)],
        {
            "a": [(2, 1), (1, 2), (1.5, 2), (1, 2), (2, 1), (0.5, 2), (1, 1), (2, 1)],
            "b": [(1, 2), (0.5, 2), (0.5, 2), (1, 4)],
        },
        {"a": 1e6, "b": 3e6},
        ("b", "a"),
        17_562_500.0,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_placement_costs_little_more_than_the_optimum(name: str) -> None:
    machines, sizes, exchange, (source, target), optimum = CASES[name]
    nodes = tuple(
        a_node(f"n{index}", zone=f"z{zone}", rack=f"r{rack}", allocatable=Resources(cores, memory * GIB, 110))
        for index, (zone, rack, cores, memory) in enumerate(machines)
    )
    executors = tuple(
        gated(f"{component}-{index}", component=component, requests=Resources(cpu, memory * GIB, 1))
        for component, listed in sizes.items()
        for index, (cpu, memory) in enumerate(listed)
    )
    components = [Component(each, exchange_bytes_per_second=rate) for each, rate in exchange.items()]
    stream = Stream(source, target, bytes_per_second=3e6 if source == "c" else 1e6)
    topology = a_topology(*components, streams=(stream,))
    snapshot = Snapshot(0.0, nodes, executors, topologies=(topology,))
    found = place(snapshot, Policy("p"), Memory(), gated=executors).placements
    own = tuple(Stream(each, each, bytes_per_second=rate) for each, rate in exchange.items())
    declared = a_topology(*components, streams=(stream, *own))
    instance = Instance("case", Snapshot(0.0, nodes, executors, topologies=(declared,)), Policy("p"), None)
    homes = {placement.uid: placement.node for placement in found if placement.node is not None}
    assert len(homes) == len(executors)
    assert instance.cost(homes) <= 1.1 * optimum
