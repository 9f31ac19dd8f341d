"""Which nodes are open to one more, told step by step as by looking at everything anew."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ballast.model import Component, ComponentLimit, Node, PlacementPolicy, Resources, Separation
from ballast.placement.openings import Openings
from ballast.placement.outlook import Outlook
from ballast.placement.problem import Layout
from ballast.placement.search import problem
from tests.builders import GIB, a_node, a_topology, an_executor, gated
from tests.unit.placement.situations import the_outlook

COMPONENTS = ("ingest", "sessions", "sink")


@st.composite
def outlooks(draw: st.DrawFn) -> Outlook:
    nodes: tuple[Node, ...] = tuple(
        a_node(
            f"n{number}",
            zone=draw(st.sampled_from(["za", "zb"])),
            rack=draw(st.sampled_from(["r1", "r2"])),
            cores=draw(st.sampled_from([1.0, 2.0, 4.0])),
        )
        for number in range(draw(st.integers(1, 7)))
    )
    running = [
        an_executor(f"r-{number}", component=draw(st.sampled_from(COMPONENTS)), node=draw(st.sampled_from(nodes)).name)
        for number in range(draw(st.integers(0, 4)))
    ]
    waiting = [
        gated(
            f"e-{number}",
            component=draw(st.sampled_from(COMPONENTS)),
            requests=Resources(draw(st.sampled_from([0.5, 1.0])), GIB, 1),
        )
        for number in range(draw(st.integers(1, 10)))
    ]
    by = draw(st.sampled_from(["Node", "Rack", "Zone"]))
    separate = draw(st.sampled_from([(), (Separation(("ingest", "sink"), by),)]))
    policy = PlacementPolicy(
        max_executors_per_node_ratio=draw(st.sampled_from([0.25, 0.5, 1.0])),
        max_executors_per_zone_ratio=draw(st.sampled_from([0.5, 1.0])),
        limits=draw(st.sampled_from([(), (ComponentLimit("sessions", 1),)])),
    )
    topology = a_topology(*(Component(name) for name in COMPONENTS), separate=separate)
    return the_outlook(*running, *waiting, nodes=nodes, policy=policy, topologies=(topology,))


@settings(deadline=None)
@given(outlooks(), st.data())
def test_what_is_open_is_what_a_layout_finds_open(view: Outlook, data: st.DataObject) -> None:
    openings, layout = Openings(view), Layout(problem(view, np.arange(len(view.pool.grid.nodes))))
    column = {int(node): position for position, node in enumerate(layout.problem.nodes)}
    for _ in range(data.draw(st.integers(0, 8))):
        for row in range(len(view.groups)):
            found = sorted(int(layout.problem.nodes[position]) for position in np.flatnonzero(layout.open(row)))
            assert openings.able(row).tolist() == found
        rows = [row for row in range(len(view.groups)) if len(openings.able(row))]
        if not rows:
            return
        row = data.draw(st.sampled_from(rows))
        node = int(data.draw(st.sampled_from(openings.able(row).tolist())))
        openings.take(row, node)
        layout.add(row, column[node])
