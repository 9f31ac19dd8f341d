"""What holds of Storm's orders whatever the topology and the cluster."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ballast.enums import Grouping
from ballast.placement.executor_order import (
    ComponentGraph,
    GraphComponent,
    GraphStream,
    by_connection_count,
    by_proximity,
    topological_order,
)
from ballast.placement.resource_aware import Availability, Layout, NodeRule, able_in_order
from tests.reference.storm.node_order import node_order, sorted_nodes

NAMES = "abcde"


@st.composite
def graphs(draw: st.DrawFn) -> ComponentGraph[str]:
    sizes = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5), min_size=1))
    known = st.sampled_from(sorted(sizes))
    streams = draw(st.lists(st.builds(GraphStream, known, known, st.sampled_from(Grouping)), max_size=8))
    parts = [GraphComponent(name, tuple(f"{name}{at}" for at in range(size)), size) for name, size in sizes.items()]
    return ComponentGraph(tuple(parts), tuple(streams), tuple(draw(st.lists(st.just("z"), max_size=1))))


def waiting(graph: ComponentGraph[str]) -> list[str]:
    return [*(executor for part in graph.components for executor in part.waiting), *graph.others]


@given(graphs())
def test_every_executor_comes_exactly_once(graph: ComponentGraph[str]) -> None:
    assert sorted(by_proximity(graph)) == sorted(waiting(graph))
    assert sorted(by_connection_count(graph)) == sorted(waiting(graph))


@given(graphs())
def test_executors_of_one_component_keep_their_order(graph: ComponentGraph[str]) -> None:
    for order in (by_proximity(graph), by_connection_count(graph)):
        for part in graph.components:
            assert [executor for executor in order if executor in part.waiting] == list(part.waiting)


@given(graphs())
def test_without_a_cycle_senders_come_before_receivers(graph: ComponentGraph[str]) -> None:
    forward = ComponentGraph(graph.components, tuple(s for s in graph.streams if s.source < s.target))
    order = topological_order(forward)
    assert all(order.index(stream.source) < order.index(stream.target) for stream in forward.streams)


@st.composite
def sites(draw: st.DrawFn) -> tuple[Layout, Availability]:
    paths = [
        (f"r{draw(st.integers(0, 2))}", f"h{host}", f"h{host}n{at}")
        for host in range(draw(st.integers(1, 4)))
        for at in range(draw(st.integers(1, 2)))
    ]
    # A host belongs to one rack.
    racks = {host: rack for rack, host, _ in reversed(paths)}
    layout = Layout([(racks[host], host, node) for _, host, node in paths])
    amounts = st.lists(st.integers(0, 8).map(float), min_size=2, max_size=2)
    free = np.array([draw(amounts) for _ in paths])
    placed = np.array([draw(st.integers(0, 2)) for _ in paths], dtype=np.int64)
    return layout, Availability(free, placed, np.array([False, True]))


@given(sites(), st.sampled_from(NodeRule), st.none() | st.lists(st.booleans(), min_size=2, max_size=2))
def test_every_node_comes_once_and_racks_and_hosts_stay_together(
    site: tuple[Layout, Availability], rule: NodeRule, requested: list[bool] | None
) -> None:
    layout, room = site
    flags = None if requested is None else np.array(requested)
    order = node_order(layout, room, requested=flags, rule=rule)
    assert sorted(order) == list(range(len(room.placed)))
    for members in layout.members:
        items = [int(members.of_row[node]) for node in order]
        changes = sum(one != other for one, other in pairwise(items))
        assert changes == len(set(items)) - 1


@given(sites(), st.sampled_from(NodeRule), st.lists(st.booleans(), min_size=2, max_size=2), st.data())
def test_the_able_nodes_come_in_the_order_of_all(
    site: tuple[Layout, Availability], rule: NodeRule, requested: list[bool], data: st.DataObject
) -> None:
    layout, room = site
    count, flags = len(room.placed), np.array(requested)
    able = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    order = sorted_nodes(layout, room, requested=flags, rule=rule)
    found = able_in_order(layout, room, able, requested=flags, rule=rule)
    assert list(found) == [node for node in order if able[node]]
