from __future__ import annotations

from math import inf, isnan, nan
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.model import Component, PlacementPolicy, Separation
from ballast.model.arrays import IntArray
from ballast.placement.strategy import ROUNDING, NodeValues, draw, one_by_one
from tests.builders import a_node, a_topology, an_executor, gated
from tests.unit.placement.situations import the_view

FIGURES = st.lists(st.sampled_from([0.0, 0.1, 0.3, 1.0, inf]), min_size=1, max_size=12)
CHANGES = st.lists(st.tuples(st.integers(0, 11), st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, inf])), max_size=20)

FREELY = PlacementPolicy(max_executors_per_node_ratio=1.0)
NODES = tuple(a_node(f"n{number}", cores=2.0) for number in range(3))


def test_one_of_the_possible_ones_is_drawn() -> None:
    assert {draw(np.array([3, 8]), Random(seed)) for seed in range(20)} == {3, 8}


def test_the_same_randomness_draws_the_same() -> None:
    positions = np.arange(50)
    assert draw(positions, Random(3)) == draw(positions, Random(3))


@given(FIGURES, CHANGES)
def test_the_lowest_are_those_of_the_figures_as_they_are_now(
    start: list[float], changes: list[tuple[int, float]]
) -> None:
    figures = NodeValues(np.array(start))
    nodes = np.arange(0, len(start), 2)
    for node, figure in changes:
        figures.of(nodes)
        figures.lowest()
        figures.set(node % len(start), figure)
        now = figures.of(nodes).tolist()
        assert now == figures.all[nodes].tolist()
        assert figures.lowest() == [position for position, each in enumerate(now) if each == min(now)]


KNOWN = st.lists(st.one_of(st.just(nan), st.floats(0.0, 2.0)), min_size=1, max_size=12)


@given(KNOWN, st.lists(st.tuples(st.integers(0, 11), st.floats(0.0, 1.0)), max_size=20))
def test_both_means_follow_the_known_figures(start: list[float], changes: list[tuple[int, float]]) -> None:
    figures = NodeValues(np.array(start))
    nodes = np.arange(len(start))
    for node, more in changes:
        figures.of(nodes)
        figures.rough_mean()
        figures.set(node % len(start), figures.all[node % len(start)] + more)
        known = [each for each in figures.all.tolist() if not isnan(each)]
        assert figures.mean() == pytest.approx(sum(known) / len(known) if known else 0.0, abs=1e-12)
        assert figures.rough_mean() == pytest.approx(figures.mean(), abs=ROUNDING / 2)


def test_other_nodes_are_picked_out_again() -> None:
    figures = NodeValues(np.array([3.0, 1.0, 2.0]))
    assert figures.of(np.array([0, 2])).tolist() == [3.0, 2.0]
    assert figures.lowest() == [1]
    figures.set(1, 0.5)
    assert figures.of(np.array([1, 2])).tolist() == [0.5, 2.0]
    assert (figures.lowest(), figures.mean(), figures.rough_mean()) == ([0], 1.25, 1.25)


def last(able: IntArray, _row: int) -> int:
    return int(able[-1])


def test_the_strategy_chooses_among_those_that_can_still_take_one() -> None:
    view = the_view(*(gated(f"e-{n}") for n in range(7)), nodes=NODES, policy=FREELY)
    offered: list[list[int]] = []

    def choose(able: IntArray, row: int) -> int:
        offered.append(able.tolist())
        return last(able, row)

    assert one_by_one(view, [0] * 7, choose) == [[2, 2, 1, 1, 0, 0]]
    assert offered == [[0, 1, 2], [0, 1, 2], [0, 1], [0, 1], [0], [0]]


def test_favored_nodes_are_offered_alone_while_they_have_room() -> None:
    policy = PlacementPolicy(max_executors_per_node_ratio=1.0, favored_nodes=("n1", "gone"))
    view = the_view(*(gated(f"e-{n}") for n in range(3)), nodes=NODES, policy=policy)
    assert one_by_one(view, [0] * 3, last) == [[1, 1, 2]]


def test_the_order_of_turns_is_kept_where_nobody_must_be_apart() -> None:
    waiting = [gated(f"{name}-{n}", component=name) for name in ("a", "b") for n in range(2)]
    view = the_view(*waiting, nodes=NODES, policy=FREELY, topologies=(a_topology(Component("a"), Component("b")),))
    rows: list[int] = []

    def choose(able: IntArray, row: int) -> int:
        rows.append(row)
        return last(able, row)

    one_by_one(view, [1, 1, 0, 0], choose)
    assert rows == [1, 1, 0, 0]


def test_who_must_be_apart_takes_turns_and_who_has_no_place_yet_goes_first() -> None:
    running = an_executor("a-9", component="a", node="n0")
    waiting = [gated(f"{name}-{n}", component=name) for name in ("a", "b") for n in range(2)]
    topology = a_topology(Component("a"), Component("b"), separate=(Separation(("a", "b"), "Node"),))
    view = the_view(running, *waiting, nodes=NODES[:2], policy=FREELY, topologies=(topology,))
    assert one_by_one(view, [0, 0, 1, 1], last) == [[0, 0], [1, 1]]
