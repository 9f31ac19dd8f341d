from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from ballast.enums import Grouping
from ballast.model import Component, ExecutorOrder, Memory, Stream
from ballast.placement.executor_order import (
    ComponentGraph,
    GraphComponent,
    GraphStream,
    by_connection_count,
    by_proximity,
    sequence,
    topological_order,
)
from ballast.placement.node_locations import node_locations
from ballast.placement.workload import TopologyWorkload, workloads
from tests.builders import a_node, a_policy, a_snapshot, a_topology, gated

Order = Callable[[ComponentGraph[str]], list[str]]

EVEN, ALL_OF_THEM, LOCAL = Grouping.SHUFFLE, Grouping.FIELDS, Grouping.LOCAL_OR_SHUFFLE


def graph(
    sizes: dict[str, int], *streams: tuple[str, str, Grouping], others: tuple[str, ...] = ()
) -> ComponentGraph[str]:
    components = tuple(
        GraphComponent(name, tuple(f"{name}.{number}" for number in range(size)), size) for name, size in sizes.items()
    )
    return ComponentGraph(components, tuple(GraphStream(*stream) for stream in streams), others)


def names(order: list[str]) -> str:
    return " ".join(executor.split(".")[0] for executor in order)


CHAIN = graph({"s": 1, "a": 2, "b": 2, "c": 2}, ("s", "a", EVEN), ("a", "b", EVEN), ("b", "c", EVEN))
WIDE = graph({"s": 2, "b": 5}, ("s", "b", EVEN))
FIELDS = graph({"s": 2, "f": 4}, ("s", "f", ALL_OF_THEM))
FAN = graph({"s": 2, "f": 4, "g": 2, "h": 4}, ("s", "f", ALL_OF_THEM), ("s", "g", EVEN), ("s", "h", EVEN))
JOIN = graph(
    {"s": 2, "a": 4, "b": 2, "c": 2}, ("s", "a", EVEN), ("s", "b", EVEN), ("a", "c", EVEN), ("b", "c", ALL_OF_THEM)
)
CYCLE = graph({"s": 2, "a": 2, "b": 2, "c": 2}, ("s", "a", EVEN), ("a", "b", EVEN), ("b", "c", EVEN), ("c", "a", EVEN))
NEAR = graph({"s": 1, "l": 3}, ("s", "l", LOCAL))


@pytest.mark.parametrize(
    ("topology", "order"),
    [
        (CHAIN, "s a b c a b c"),
        (WIDE, "s b b s b b b"),
        (FIELDS, "s f s f f f"),
        (FAN, "s f g h h s f g h h f f"),
        (JOIN, "s a c a c b s a a b"),
        (CYCLE, "s a b c a b c s"),
        (NEAR, "s l l l"),
    ],
)
def test_by_proximity_follows_the_streams(topology: ComponentGraph[str], order: str) -> None:
    assert names(by_proximity(topology)) == order


@pytest.mark.parametrize(
    ("topology", "order"),
    [
        (CHAIN, "b a c b a c s"),
        (WIDE, "b s b s b b b"),
        (FIELDS, "f s f s f f"),
        (FAN, "s g f h s g f h f h f h"),
        (JOIN, "a c s a c s a a b b"),
        (CYCLE, "a b c s a b c s"),
        (NEAR, "l s l l"),
    ],
)
def test_by_connection_count_takes_the_best_connected_first(topology: ComponentGraph[str], order: str) -> None:
    assert names(by_connection_count(topology)) == order


@pytest.mark.parametrize("order", [by_proximity, by_connection_count])
def test_executors_of_no_component_come_last_as_they_are(order: Order) -> None:
    assert order(graph({"s": 1}, others=("y", "x"))) == ["s.0", "y", "x"]


@pytest.mark.parametrize("order", [by_proximity, by_connection_count])
def test_placed_executors_are_left_out_and_count_as_connections(order: Order) -> None:
    topology = ComponentGraph(
        (GraphComponent("s", ("s.1",), 2), GraphComponent("b", ("b.3",), 4)), (GraphStream("s", "b", EVEN),)
    )
    assert Counter(order(topology)) == Counter(["s.1", "b.3"])


def test_components_that_need_all_senders_keep_the_order_of_the_streams() -> None:
    topology = graph({"s": 1, "a": 1, "b": 1}, ("s", "b", ALL_OF_THEM), ("s", "a", ALL_OF_THEM))
    assert names(by_proximity(topology)) == "s b a"


def test_senders_come_before_receivers_and_cycles_at_the_end() -> None:
    assert topological_order(CYCLE) == ["s", "a", "b", "c"]
    assert topological_order(graph({"b": 1, "a": 1, "s": 1}, ("s", "b", EVEN))) == ["a", "s", "b"]


def test_a_component_that_feeds_itself_doesnt_nest_without_end() -> None:
    topology = graph({"a": 3000}, ("a", "a", EVEN))
    assert len(by_proximity(topology)) == 3000


def a_crew(*streams: tuple[str, str], **counts: int) -> TopologyWorkload:
    topology = a_topology(*(Component(name) for name in counts), streams=tuple(Stream(*ends) for ends in streams))
    executors = [gated(f"{name}-{n}", component=name) for name, count in counts.items() for n in range(count)]
    snapshot = a_snapshot(a_node("n1"), executors=tuple(executors), topologies=(topology,))
    places = node_locations(snapshot.nodes, a_policy().levels)
    (workload,) = workloads(snapshot, places, Memory(), gated=executors, bound={}, sticky=True, loads={})
    return workload


def named(workload: TopologyWorkload, order: ExecutorOrder) -> list[str]:
    counts = {index: len(group.executors) for index, group in enumerate(workload.groups)}
    return [workload.components[workload.groups[index].component] for index in sequence(workload, counts, order)]


def test_by_proximity_receivers_follow_their_senders() -> None:
    workload = a_crew(("source", "middle"), ("middle", "zink"), source=1, middle=2, zink=2)
    assert named(workload, ExecutorOrder.PROXIMITY_NEEDS)[:2] == ["source", "middle"]


def test_by_connections_the_best_connected_comes_first() -> None:
    workload = a_crew(("a", "hub"), ("b", "hub"), ("c", "hub"), a=1, b=1, c=1, hub=2)
    assert named(workload, ExecutorOrder.CONNECTION_COUNT)[0] == "hub"


def test_every_executor_comes_once_in_either_order() -> None:
    workload = a_crew(("a", "b"), ("b", "a"), a=3, b=2)
    for order in ExecutorOrder:
        assert sorted(named(workload, order)) == ["a", "a", "a", "b", "b"]
