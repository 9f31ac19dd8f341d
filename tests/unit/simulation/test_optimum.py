from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ballast.simulation.run_metrics import fewest_moves, fewest_moves_of
from ballast.simulation.trace import Stretch
from tests.unit.simulation.traces import stretch

LEVEL = 15.0


@pytest.mark.parametrize(
    ("loads", "moves"),
    [
        ([[1] * 9, [1]], 4),  # 90 and 10: 60/50 … after three it is 60/40, twenty apart
        ([[1] * 5, [1] * 5], 0),
        ([[1] * 5, [1] * 4], 0),
        ([[5, 1, 1, 1], [1]], 1),  # the largest alone is enough
        ([[1] * 8, [1] * 8, []], 5),
        ([[8], []], 1),  # nothing levels these two; the bound says at least one
    ],
)
def test_the_fewest_moves_are_those_of_the_largest_executors(loads: list[list[float]], moves: int) -> None:
    assert fewest_moves_of(stretch(loads), level_points=LEVEL) == pytest.approx(moves, abs=1)
    assert fewest_moves_of(stretch(loads), level_points=LEVEL) <= moves


def test_a_larger_machine_needs_more_to_reach_the_same_score() -> None:
    small = fewest_moves_of(stretch([[1] * 8, []], capacity=10.0), level_points=LEVEL)
    large = fewest_moves_of(stretch([[1] * 8, []], capacity=[10.0, 40.0]), level_points=LEVEL)
    assert large > small


def test_a_node_that_is_gone_asks_for_no_moves() -> None:
    gone = replace(stretch([[1] * 5, []]), up=np.array([True, False]))
    assert fewest_moves_of(gone, level_points=LEVEL) == 0


def test_a_run_needs_as_many_as_its_worst_stretch() -> None:
    worst, best = stretch([[1] * 9, [1]]), stretch([[1], [1]])
    assert fewest_moves([best, worst, best], level_points=LEVEL) == fewest_moves([worst], level_points=LEVEL) > 0
    assert fewest_moves([], level_points=LEVEL) == 0


def possible(found: Stretch) -> int | None:
    """The fewest moves by trying everything."""
    nodes, executors = len(found.capacity), len(found.loads)
    best: int | None = None
    for homes in product(range(nodes), repeat=executors):
        held = np.bincount(homes, weights=found.loads, minlength=nodes)
        scores = 100.0 * (held + found.others) / found.capacity
        if scores.max() - scores.min() <= LEVEL:
            moved = int((np.array(homes) != found.homes).sum())
            best = moved if best is None else min(best, moved)
    return best


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(1, 6), max_size=3), min_size=2, max_size=3).filter(lambda x: sum(map(len, x)) > 0))
def test_no_way_of_moving_takes_fewer_than_the_bound(loads: list[list[float]]) -> None:
    found = stretch(loads, capacity=20.0)
    best = possible(found)
    if best is not None:
        assert fewest_moves_of(found, level_points=LEVEL) <= best
