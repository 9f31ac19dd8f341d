"""Which nodes can take one more, as executors take their places: the same as the search's layouts say."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from ballast.model import Component, ComponentLimit, PlacementPolicy, Resources, Separation
from ballast.placement.placement_view import PlacementView
from ballast.placement.problem import Layout
from ballast.placement.proximity import problem
from ballast.placement.strategy import Openings
from tests.builders import GIB, a_node, a_topology, an_executor, gated
from tests.unit.placement.situations import the_view

NODES = tuple(
    a_node(f"{zone}{rack}{n}", zone=zone, rack=rack, cores=2.0 + n) for zone in "ab" for rack in "rs" for n in range(2)
)
APART = [Component("ingest"), Component("report"), Component("standby")]


def view(**changes: Any) -> PlacementView:
    """Three components, one of them with two templates, and one that runs already."""
    waiting = [gated(f"{name}-{n}", component=name) for name in ("ingest", "report", "standby") for n in range(6)]
    large = [gated(f"large-{n}", requests=Resources(2.0, GIB, 1)) for n in range(3)]
    running = an_executor("old", node="ar0", component="report")
    policy = PlacementPolicy(max_executors_per_node_ratio=1.0)
    return the_view(*waiting, *large, running, **{"nodes": NODES, "policy": policy, **changes})


def separated(by: str) -> dict[str, Any]:
    separate = (Separation(("ingest", "standby"), by), Separation(("report", "standby"), "Node"))
    return {"topologies": (a_topology(*APART, separate=separate),)}


VIEWS = {
    "room": {},
    "node limits": {"policy": PlacementPolicy(limits=(ComponentLimit("report", 1),))},
    "zone limits": {"policy": PlacementPolicy(max_executors_per_node_ratio=1.0, max_executors_per_zone_ratio=0.5)},
    "apart by node": separated("Node"),
    "apart by rack": separated("Rack"),
    "apart by zone": separated("Zone"),
    "hot nodes": {"scores": {"ar1": 70.0, "bs1": 80.0, "br1": 99.0}},
}


def open_in(layout: Layout, row: int) -> list[int]:
    return sorted(layout.problem.nodes[np.flatnonzero(layout.open(row))].tolist())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("changes", VIEWS.values(), ids=VIEWS)
def test_after_each_executor_the_open_nodes_are_those_of_a_layout_with_the_same(
    changes: dict[str, Any], seed: int
) -> None:
    found, random = view(**changes), Random(seed)
    openings, layout = Openings(found), Layout(problem(found, np.arange(len(NODES))))
    turns = [row for row, count in enumerate(found.counts.tolist()) for _ in range(count)]
    random.shuffle(turns)
    for row in turns:
        for each in range(len(found.groups)):
            assert openings.able(each).tolist() == open_in(layout, each)
        if len(openings.able(row)):
            node = random.choice(openings.able(row).tolist())
            openings.take(row, node)
            layout.add(row, layout.problem.nodes.tolist().index(node))
