"""Whole sets: the resource-aware strategy and round robin."""

from __future__ import annotations

import numpy as np

from ballast.placement.executor_order import ComponentGraph, GraphComponent, GraphStream
from ballast.placement.resource_aware import Availability, Layout, NodeRule
from tests.reference.storm.process_packing import Demand, ProcessRules, Schedule, Site
from tests.reference.storm.resource_aware import Search, in_one_go, resource_aware, with_steps_back
from tests.reference.storm.round_robin import round_robin


def site(*free: float, processes: int = 4, favored: tuple[int, ...] = ()) -> Site:
    """Nodes in one rack with so much CPU each."""
    room = Availability(np.array(free, dtype=float)[:, None], np.zeros(len(free), dtype=np.int64), np.array([False]))
    layout = Layout([("rack", f"node{at}") for at in range(len(free))])
    return Site(layout, room, np.full(len(free), processes), favored)


def demands(**amounts: float) -> dict[str, Demand]:
    """Executors by name, each its own component by its first letter."""
    return {name: Demand(name[0], np.array([float(amount)]), amount) for name, amount in amounts.items()}


def graph(asked: dict[str, Demand], *streams: tuple[str, str]) -> ComponentGraph[str]:
    components = sorted({demand.component for demand in asked.values()})
    parts = []
    for component in components:
        waiting = tuple(name for name in asked if name[0] == component)
        parts.append(GraphComponent(component, waiting, len(waiting)))
    return ComponentGraph(tuple(parts), tuple(GraphStream(*stream) for stream in streams))


def on_nodes(schedule: Schedule[str]) -> dict[str, int]:
    return {executor: process.node for process in schedule.processes for executor in process.executors}


def test_a_set_is_kept_together() -> None:
    asked = demands(a1=1, a2=1, b1=1, b2=1)
    placed = on_nodes(resource_aware(graph(asked, ("a", "b")), asked, site(4, 5, 4)))
    assert placed == dict.fromkeys(asked, 1)


def test_a_process_is_filled_up_to_its_heap() -> None:
    asked = demands(a1=1, a2=1, a3=1)
    schedule = resource_aware(graph(asked), asked, site(9), rules=ProcessRules(heap=2))
    assert [process.executors for process in schedule.processes] == [("a1", "a2"), ("a3",)]


def test_one_component_to_a_process() -> None:
    asked = demands(a1=1, b1=1, a2=1)
    schedule = resource_aware(graph(asked, ("a", "b")), asked, site(9), rules=ProcessRules(one_component=True))
    assert sorted(process.executors for process in schedule.processes) == [("a1", "a2"), ("b1",)]


def test_one_executor_to_a_process() -> None:
    asked = demands(a1=1, a2=1, a3=1)
    schedule = resource_aware(graph(asked), asked, site(9, processes=2), rules=ProcessRules(one_executor=True))
    assert len(schedule.processes) == 2
    assert schedule.missing == ("a3",)


def test_favored_nodes_are_filled_first() -> None:
    asked = demands(a1=1, a2=1)
    assert set(on_nodes(resource_aware(graph(asked), asked, site(9, 2, favored=(1,)))).values()) == {1}


def test_what_fits_nowhere_is_missing_and_the_rest_is_placed() -> None:
    asked = demands(a1=1, b1=7)
    schedule = resource_aware(graph(asked), asked, site(2, 3))
    assert schedule.missing == ("b1",)
    assert "a1" in on_nodes(schedule)


def test_small_ones_placed_first_dont_shut_out_a_large_one() -> None:
    asked = demands(a1=2, a2=2, b1=3, c1=3)
    assert resource_aware(graph(asked, ("a", "b")), asked, site(5, 5)).missing == ()


def test_a_search_takes_steps_back_where_first_choices_end_nowhere() -> None:
    asked = demands(a1=2, b1=2, c1=3, d1=3)
    search = Search(site(5, 5.5), asked, ProcessRules(), NodeRule.COMMON, most_states=200)
    order = sorted(asked)
    assert in_one_go(order, search).missing == ("d1",)
    found = with_steps_back(order, search)
    assert found is not None
    assert found.missing == ()


def test_a_search_gives_up_at_its_bound_and_when_there_is_no_way() -> None:
    asked = demands(a1=2, b1=2, c1=3, d1=3)
    few = Search(site(5, 5.5), asked, ProcessRules(), NodeRule.COMMON, most_states=4)
    assert with_steps_back(sorted(asked), few) is None
    none = Search(site(1), asked, ProcessRules(), NodeRule.COMMON, most_states=100)
    assert with_steps_back(sorted(asked), none) is None


def test_round_robin_spreads_each_component() -> None:
    asked = demands(a1=1, a2=1, a3=1)
    placed = on_nodes(round_robin(graph(asked), asked, site(9, 8, 7)))
    assert placed == {"a1": 0, "a2": 1, "a3": 2}


def test_round_robin_goes_on_from_the_first_node_again() -> None:
    asked = demands(a1=1, a2=1, a3=4)
    placed = on_nodes(round_robin(graph(asked), asked, site(9, 2)))
    assert placed == {"a1": 0, "a2": 1, "a3": 0}


def test_round_robin_packs_what_cant_be_spread() -> None:
    asked = demands(a1=1, a2=1, b1=8)
    assert round_robin(graph(asked), asked, site(8, 2)).missing == ()
