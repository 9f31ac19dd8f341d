"""The best layout that is found for a set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ballast.model import Anchor, Component, Executor, PlacementPolicy, Resources, Stream, Topology
from ballast.placement import proximity
from ballast.placement.parts import parts
from ballast.placement.placement_view import PlacementView
from ballast.placement.problem import Layout
from ballast.placement.proximity import Effort, Proximity, no_dearer_than_storms, problem, search
from ballast.placement.refinement import Budget, descend
from tests.builders import GIB, a_node, a_topology, an_executor, gated
from tests.unit.placement.situations import situation, the_view

HURRY = Effort(steps=0, thorough=False, orders=False)
FREELY = PlacementPolicy(max_executors_per_node_ratio=1.0)
NODES = tuple(a_node(f"{zone}{n}", zone=zone, cores=2.0) for zone in "ab" for n in "12")


def a_view(*executors: Executor, **changes: Any) -> PlacementView:
    return the_view(*executors, **{"nodes": NODES, "policy": FREELY, **changes})


def some(count: int, component: str = "ingest", cores: float = 1.0) -> list[Executor]:
    requests = Resources(cores, GIB, 1)
    return [gated(f"{component}-{cores:g}-{number}", component=component, requests=requests) for number in range(count)]


def found(view: PlacementView, effort: Effort) -> Layout:
    turns = [group for group, count in enumerate(view.counts) for _ in range(int(count))]
    layout = search(view, turns, effort)
    assert layout is not None
    return layout


def homes(view: PlacementView, layout: Layout) -> dict[str, int]:
    names = [view.pool.locations.nodes[node].name for node in layout.problem.nodes]
    return {name: int(count) for name, count in sorted(zip(names, layout.placed.sum(axis=0), strict=True)) if count}


def test_where_no_node_takes_any_of_them_nothing_is_found() -> None:
    assert search(a_view(*some(1, cores=3.0)), [0], Effort()) is None


@pytest.mark.parametrize("effort", [HURRY, Effort(steps=0), Effort()], ids=["hurry", "thorough", "searching"])
def test_a_set_is_placed_as_near_together_as_it_fits(effort: Effort) -> None:
    view = a_view(*some(4))
    layout = found(view, effort)
    assert layout.missing.tolist() == [0]
    assert set(homes(view, layout)) in ({"a1", "a2"}, {"b1", "b2"})


@pytest.mark.parametrize("effort", [HURRY, Effort(steps=0), Effort()], ids=["hurry", "thorough", "searching"])
def test_one_that_fits_no_single_zone_uses_both(effort: Effort) -> None:
    layout = found(a_view(*some(6)), effort)
    assert (layout.missing.tolist(), int(layout.placed.sum())) == ([0], 6)


def test_those_that_do_not_fit_are_missing() -> None:
    assert found(a_view(*some(11)), Effort(steps=20)).missing.tolist() == [3]


TWO_ENDS = a_topology(
    *(Component(f"kafka-{zone}", external=True, anchors=(Anchor((zone, None, None), 1.0),)) for zone in "ab"),
    Component("ingest", exchange_bytes_per_second=0.0),
    Component("report", exchange_bytes_per_second=0.0),
    streams=(Stream("kafka-a", "ingest", bytes_per_second=5.0), Stream("kafka-b", "report", bytes_per_second=5.0)),
)


@pytest.mark.parametrize("effort", [HURRY, Effort(steps=0), Effort()], ids=["hurry", "thorough", "searching"])
def test_a_set_is_split_where_its_components_are_drawn_apart(effort: Effort) -> None:
    layout = found(a_view(*some(2), *some(2, "report"), topologies=(TWO_ENDS,)), effort)
    assert layout.cost() - float((layout.problem.pull.min(axis=1) * 2).sum()) == pytest.approx(0.0, abs=0.01)


def test_what_fits_only_in_another_order_is_packed_all_the_same() -> None:
    """Two cores and one core, in nodes of two and one: the small one must not take the large one's place."""
    nodes = (a_node("n1", cores=2.0), a_node("n2", cores=1.0))
    view = a_view(*some(1), *some(1, cores=2.0), nodes=nodes)
    for turns in ([0, 1], [1, 0]):
        layout = search(view, turns, Effort(steps=0))
        assert layout is not None
        assert layout.missing.sum() == 0


def loaded(topology: Topology) -> PlacementView:
    running = (an_executor("old-0", node="a1"), an_executor("old-1", node="b2", component="report"))
    return a_view(*some(2), *some(2, "report"), *some(1, cores=2.0), *running, topologies=(topology,))


def test_more_effort_is_never_dearer() -> None:
    streams = (Stream("ingest", "report", bytes_per_second=7.0),)
    view = loaded(a_topology(Component("ingest", exchange_bytes_per_second=3.0), Component("report"), streams=streams))
    ranks = [
        (int(layout.missing.sum()), round(layout.cost(), 6))
        for layout in (found(view, effort) for effort in (HURRY, Effort(steps=0), Effort(steps=50), Effort(steps=500)))
    ]
    assert ranks == sorted(ranks, reverse=True)


def test_what_storm_would_do_is_done_where_that_costs_less() -> None:
    view = a_view(*some(2), *some(2, "report"))
    scattered = Layout(problem(view, np.arange(len(NODES))))
    for node, group in enumerate((0, 0, 1, 1)):
        scattered.add(group, 2 * (node % 2) + node // 2)
    kept = no_dearer_than_storms(view, [0, 0, 1, 1], scattered, Effort())
    assert not kept.missing.any()
    assert kept.cost() < scattered.cost()
    assert no_dearer_than_storms(view, [0, 0, 1, 1], kept, Effort()) is kept
    assert no_dearer_than_storms(view, [0, 0, 1, 1], scattered, HURRY) is scattered


def test_very_many_executors_of_others_shorten_no_search() -> None:
    """One user's gated executors must not use up the steps of the pass: sets of others would be farther apart."""
    topology = a_topology(*(Component(name) for name in "ab"))
    waiting = [gated(f"{name}-{n}", component=name) for name in "ab" for n in range(3)]
    _, workload = situation(*waiting, nodes=(a_node("n0", cores=8.0),), topologies=(topology,))
    together = [[0, 1]]
    for executors in ({"team": 6}, {"team": 6, "other": 10_000}):
        assert Proximity(executors, kinds={}, search_seconds=1.0).sets(workload) == together
    for executors in ({"team": 300}, {"team": 101, "other": 101}):
        assert Proximity(executors, kinds={}, search_seconds=1.0).sets(workload) != together


def test_many_small_sets_are_compared_and_improved_in_the_steps_of_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """One user's 25 sets of four sizes took a pass four times as long as its search time."""
    granted: list[int] = []

    def note(view: PlacementView, sequence: Sequence[int], effort: Effort) -> None:
        granted.append(effort.steps)

    monkeypatch.setattr(proximity, "together", note)
    view = a_view(*some(2, cores=0.5), *some(2, cores=0.6))
    for sets in (1, 30):
        Proximity({"team": 4 * sets}, kinds={}, search_seconds=0.05).seats(view, (0, 1, 0, 1))
    alone, of_many = granted
    assert 0 < 2 * 30 * of_many <= 900 == round(0.05 * 6000 * 3)
    assert of_many < alone


def test_no_layout_is_improved_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several orders often lead to one layout. A user may gate executors of ever new sizes, whose passes take long."""
    improved: list[bytes] = []

    def note(layout: Layout, budget: Budget, *, full: bool = True) -> None:
        improved.append(layout.problem.nodes.tobytes() + layout.placed.tobytes())
        descend(layout, budget, full=full)

    monkeypatch.setattr(proximity, "descend", note)
    found(a_view(*some(1), *some(1, cores=0.5), *some(1, "report"), *some(1, "report", cores=0.5)), Effort())
    assert len(improved) > 1
    assert len(improved) == len(set(improved))


def test_places_and_orders_are_compared_in_no_more_steps_than_a_set_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of one user's many small sets was compared in dozens of layouts, whatever its share of the pass's steps."""
    granted: list[int] = []

    def note(layout: Layout, budget: Budget, *, full: bool = True) -> None:
        before = budget.left
        descend(layout, budget, full=full)
        granted.append(before - max(0, budget.left))

    monkeypatch.setattr(proximity, "descend", note)
    view = a_view(*(executor for tenths in range(5, 9) for executor in some(1, cores=tenths / 10)))
    for steps in (30, 5_000):
        granted.clear()
        found(view, Effort(steps=steps))
        assert 0 < sum(granted) <= steps
    assert sum(granted) > 30, "the shorter search was not cut short, so this shows nothing"


def test_the_same_question_has_the_same_answer() -> None:
    view = loaded(a_topology(Component("ingest"), Component("report")))
    one, other = found(view, Effort(seed=3)), found(view, Effort(seed=3))
    assert one.placed.tolist() == other.placed.tolist()


def test_the_names_of_nodes_that_differ_otherwise_have_no_part_in_the_order() -> None:
    """The same pool under other names is the same problem."""
    pairs = [("n1", 2.0, "r1"), ("n2", 4.0, "r1"), ("n3", 3.0, "r2")]
    renamed = dict(zip(("n1", "n2", "n3"), ("z", "y", "x"), strict=True))
    views = [
        a_view(*some(2), nodes=tuple(a_node(names.get(n, n), cores=cores, rack=rack) for n, cores, rack in pairs))
        for names in ({}, renamed)
    ]
    rooms = [problem(view, np.arange(3)).room[:, 0].tolist() for view in views]
    assert rooms[0] == rooms[1]


def parts_of(*links: str, **counts: int) -> list[str]:
    """Components with streams such as `a>b`; each part as its components, twice where they have two templates."""
    waiting = [
        gated(f"{name}-{number}", component=name, requests=Resources(1.0 + number // 10, GIB, 1))
        for name, count in counts.items()
        for number in range(count)
    ]
    streams = tuple(Stream(link[0], link[-1]) for link in links)
    topology = a_topology(*(Component(name) for name in counts), streams=streams)
    _, workload = situation(*waiting, nodes=(a_node("n1"),), topologies=(topology,))
    return [
        "".join(workload.components[workload.groups[index].component] for index in part) for part in parts(workload)
    ]


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ((), ["d", "c", "b", "a"]),
        (("a>b",), ["d", "ab", "c"]),
        (("a>b", "b>c"), ["abc", "d"]),
        (("a>c", "b>c"), ["abc", "d"]),
        (("a>d", "b>c"), ["ad", "bc"]),
        (("a>b", "c>d", "b>c"), ["abcd"]),
        (("a>d", "c>d", "b>c"), ["abcd"]),
    ],
)
def test_what_exchanges_with_each_other_belongs_together_the_largest_demand_first(
    links: tuple[str, ...], expected: list[str]
) -> None:
    assert parts_of(*links, a=1, b=2, c=3, d=4) == expected


def test_the_part_with_most_traffic_comes_first_where_all_rates_are_known() -> None:
    waiting = [gated(f"a-{number}", component="a") for number in range(9)] + [gated("b-0", component="b")]
    rates = {"a": 1e6, "b": 100e6}
    loud = a_topology(*(Component(name, exchange_bytes_per_second=rate) for name, rate in rates.items()))
    _, workload = situation(*waiting, nodes=(a_node("n1"),), topologies=(loud,))
    assert parts(workload) == [[1], [0]]


def test_of_equal_demands_the_first_component_comes_first() -> None:
    assert parts_of(a=2, b=2, c=2) == ["a", "b", "c"]


def test_two_templates_of_a_component_belong_together() -> None:
    assert parts_of("a>b", a=12, b=1, c=1) == ["aab", "c"]


def test_what_exchanges_nothing_with_its_own_kind_is_a_part_all_the_same() -> None:
    waiting = [gated("a-0", component="a"), gated("b-0", component="b")]
    silent = a_topology(*(Component(name, exchange_bytes_per_second=0.0) for name in "ab"))
    _, workload = situation(*waiting, nodes=(a_node("n1"),), topologies=(silent,))
    assert parts(workload) == [[0], [1]]
