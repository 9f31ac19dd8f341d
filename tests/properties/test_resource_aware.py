"""Strategy ResourceAware against Storm's order of all nodes, worked out again for every executor."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ballast.model import Memory, Node, PlacementPolicy, Policy, Resources
from ballast.placement.placing import place
from ballast.placement.resource_aware import Availability, Layout, NodeRule
from tests.builders import GIB, a_node, a_snapshot, an_executor, gated
from tests.reference.storm.node_order import sorted_nodes

POLICY = Policy("p", placement=PlacementPolicy(strategy="ResourceAware", max_executors_per_node_ratio=1.0))


@st.composite
def pools(draw: st.DrawFn) -> list[Node]:
    """Nodes whose CPU lasts less long than their memory."""
    return [
        a_node(
            f"n{number}",
            zone=draw(st.sampled_from(["za", "zb"])),
            rack=draw(st.sampled_from(["r1", "r2"])),
            requested=Resources(draw(st.integers(0, 8)) / 2, draw(st.integers(0, 8)) * GIB, 1),
        )
        for number in range(draw(st.integers(1, 8)))
    ]


@given(pools(), st.integers(1, 20), st.lists(st.integers(0, 7), max_size=3))
def test_each_executor_goes_to_the_first_node_in_order_that_has_room(
    pool: list[Node], waiting: int, running: list[int]
) -> None:
    homes = [at for at in running if at < len(pool)]
    layout = Layout([tuple(str(place) for place in node.location) for node in pool])
    free = np.array([[node.free.cpu_cores, node.free.memory_bytes] for node in pool])
    room = Availability(free, np.bincount(homes, minlength=len(pool)), np.array([False, False]))
    expected: list[str | None] = []
    for _ in range(waiting):
        order = sorted_nodes(layout, room, requested=np.array([True, True]), rule=NodeRule.COMMON)
        node = next((at for at in order if free[at, 0] >= 1.0), None)
        expected.append(None if node is None else pool[node].name)
        if node is not None:
            free[node] -= 1.0, GIB
            room.placed[node] += 1
    gated_ones = [gated(f"e-{number:02}") for number in range(waiting)]
    there = [an_executor(f"r-{number}", node=pool[at].name) for number, at in enumerate(homes)]
    found = place(a_snapshot(*pool, executors=(*gated_ones, *there)), POLICY, Memory(), gated=gated_ones)
    assert [placement.node for placement in found.placements] == expected
