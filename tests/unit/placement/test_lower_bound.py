"""What no layout of a set can cost less than, against all layouts that there are."""

from __future__ import annotations

from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.model import Executor, PlacementPolicy, Resources
from ballast.model.arrays import IntArray
from ballast.placement import proximity
from ballast.placement.lower_bound import least_cost
from ballast.placement.placement_view import PlacementView
from ballast.placement.problem import Layout
from ballast.placement.proximity import Effort, problem, search
from tests.builders import GIB, a_node, an_executor, gated
from tests.unit.placement.situations import the_view

COUNT = 4
NAMES = ("a1", "a2", "a3", "b1", "b2")
FREELY = PlacementPolicy(max_executors_per_node_ratio=1.0)
EVENLY = PlacementPolicy(max_executors_per_node_ratio=0.5, max_executors_per_zone_ratio=0.75)


def waiting(count: int = COUNT, size: float = 1.0) -> list[Executor]:
    return [gated(f"new-{size:g}-{k}", requests=Resources(0.1, size * GIB, 1)) for k in range(count)]


def a_view(*executors: Executor, sizes: tuple[int, ...] = (2, 2, 2, 2, 2), **changes: Any) -> PlacementView:
    """Two zones, the first one with two racks; `sizes`: memory of each node in GiB, of which an executor takes one."""
    nodes = tuple(
        a_node(name, zone=name[0], rack=f"{name[0]}-{name in ('a1', 'a2')}", allocatable=Resources(8, each * GIB, 110))
        for name, each in zip(NAMES, sizes, strict=True)
    )
    return the_view(*executors, **{"nodes": nodes, "policy": FREELY, "tier": 2, **changes})


def cheapest(view: PlacementView) -> float:
    """Of all layouts with no executor missing; infinite if there is none."""
    whole = problem(view, np.flatnonzero(view.capacity[0]))
    capacity: IntArray = view.capacity[0, whole.nodes]
    costs = [inf]
    for counts in product(*(range(int(most) + 1) for most in capacity)):
        if sum(counts) == int(view.counts[0]):
            layout = Layout(whole)
            for node, count in enumerate(counts):
                layout.add(0, node, count=count)
            if (layout.zone_left >= 0).all():
                costs.append(layout.cost())
    return min(costs)


@given(
    sizes=st.tuples(*[st.integers(0, 4)] * len(NAMES)),
    running=st.lists(st.sampled_from(NAMES), max_size=3),
    scores=st.tuples(*[st.sampled_from([10.0, 30.0, 90.0])] * len(NAMES)),
    policy=st.sampled_from([FREELY, EVENLY]),
)
def test_no_layout_costs_less(
    sizes: tuple[int, ...], running: list[str], scores: tuple[float, ...], policy: PlacementPolicy
) -> None:
    old = [an_executor(f"old-{k}", node=node, requests=Resources(0.0, 0.0, 0)) for k, node in enumerate(running)]
    known = dict(zip(NAMES, scores, strict=True))
    view = a_view(*waiting(), *old, sizes=sizes, scores=known, policy=policy)
    if view.capacity.any():
        assert least_cost(view) <= cheapest(view) + 1e-9


def test_of_nodes_that_are_alike_some_layout_costs_no_more() -> None:
    view = a_view(*waiting())
    assert least_cost(view) == pytest.approx(cheapest(view))


@pytest.mark.parametrize(
    "executors", [waiting(12), [*waiting(2), *waiting(2, size=0.5)]], ids=["more than fit", "two sizes"]
)
def test_nothing_is_known_of_sets_that_do_not_fit_or_differ(executors: list[Executor]) -> None:
    assert least_cost(a_view(*executors)) == -inf


def test_a_layout_that_costs_no_more_is_not_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten sets at once took a starved operator longer than the gate timeout."""
    refined: list[Layout] = []

    def note(layout: Layout, *_: object) -> Layout:
        refined.append(layout)
        return layout

    monkeypatch.setattr(proximity, "refine", note)
    for scores, times in ({}, 0), ({"a1": 90.0, "b1": 90.0}, 1):
        search(a_view(*waiting(), scores=scores), [0] * COUNT, Effort())
        assert len(refined) == times
