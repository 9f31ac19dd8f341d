"""In which order a workload's executors are placed."""

from __future__ import annotations

from ballast.model import Component, ExecutorOrder, Memory, Stream
from ballast.placement.executor_order import sequence
from ballast.placement.limit import zone_allowance
from ballast.placement.node_locations import node_locations
from ballast.placement.proximity import parts
from ballast.placement.workload import TopologyWorkload, workloads
from tests.builders import a_node, a_policy, a_snapshot, a_topology, gated


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


def test_parts_that_exchange_nothing_are_parted_the_largest_first() -> None:
    workload = a_crew(("a", "b"), a=1, b=1, alone=5)
    assert [[workload.components[workload.groups[g].component] for g in part] for part in parts(workload)] == [
        ["alone"],
        ["a", "b"],
    ]


def test_an_allowance_is_a_whole_number_within_the_ratio_and_at_least_one() -> None:
    assert [zone_allowance(total, 0.25) for total in (1, 4, 7, 8, 12)] == [1, 1, 1, 2, 3]
    assert zone_allowance(3, 1.0) == 3
    assert zone_allowance(10, 0.3) == 3
