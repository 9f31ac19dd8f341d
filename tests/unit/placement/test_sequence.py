"""In which order a crew's executors are placed."""

from __future__ import annotations

from ballast.model import Component, ExecutorOrder, Memory, Stream
from ballast.placement.crew import Crew, crews
from ballast.placement.grid import grid
from ballast.placement.limit import zone_allowance
from ballast.placement.part import parts
from ballast.placement.sequence import sequence
from tests.builders import a_node, a_policy, a_snapshot, a_topology, gated


def a_crew(*streams: tuple[str, str], **counts: int) -> Crew:
    topology = a_topology(*(Component(name) for name in counts), streams=tuple(Stream(*ends) for ends in streams))
    executors = [gated(f"{name}-{n}", component=name) for name, count in counts.items() for n in range(count)]
    snapshot = a_snapshot(a_node("n1"), executors=tuple(executors), topologies=(topology,))
    places = grid(snapshot.nodes, a_policy().levels)
    (crew,) = crews(snapshot, places, Memory(), gated=executors, bound={}, sticky=True, loads={})
    return crew


def named(crew: Crew, order: ExecutorOrder) -> list[str]:
    counts = {index: len(group.executors) for index, group in enumerate(crew.groups)}
    return [crew.components[crew.groups[index].component] for index in sequence(crew, counts, order)]


def test_by_proximity_receivers_follow_their_senders() -> None:
    crew = a_crew(("source", "middle"), ("middle", "zink"), source=1, middle=2, zink=2)
    assert named(crew, ExecutorOrder.PROXIMITY_NEEDS)[:2] == ["source", "middle"]


def test_by_connections_the_best_connected_comes_first() -> None:
    crew = a_crew(("a", "hub"), ("b", "hub"), ("c", "hub"), a=1, b=1, c=1, hub=2)
    assert named(crew, ExecutorOrder.CONNECTION_COUNT)[0] == "hub"


def test_every_executor_comes_once_in_either_order() -> None:
    crew = a_crew(("a", "b"), ("b", "a"), a=3, b=2)
    for order in ExecutorOrder:
        assert sorted(named(crew, order)) == ["a", "a", "a", "b", "b"]


def test_parts_that_exchange_nothing_are_parted_the_largest_first() -> None:
    crew = a_crew(("a", "b"), a=1, b=1, alone=5)
    assert [[crew.components[crew.groups[g].component] for g in part] for part in parts(crew)] == [
        ["alone"],
        ["a", "b"],
    ]


def test_an_allowance_is_a_whole_number_within_the_ratio_and_at_least_one() -> None:
    assert [zone_allowance(total, 0.25) for total in (1, 4, 7, 8, 12)] == [1, 1, 1, 2, 3]
    assert zone_allowance(3, 1.0) == 3
    assert zone_allowance(10, 0.3) == 3
