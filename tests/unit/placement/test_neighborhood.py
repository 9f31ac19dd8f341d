"""The best change of each kind, against every change of that kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest

from ballast.model.arrays import IntArray
from ballast.placement.problem import Layout, Problem
from ballast.placement.refinement import NO_CHANGE, Change, best_node_change, best_shift, best_swap
from tests.unit.placement.problems import a_problem, cost, distances, filled, kept_apart, shifted, valid

Steps = tuple[tuple[int, int, int, int], ...]

SEEDS = range(24)
MORE_SEEDS = range(80)
"""Swaps of several executors seldom save anything."""
PROBLEMS = [pytest.param(a_problem(seed), seed, id=f"free-{seed}") for seed in SEEDS]
PROBLEMS += [pytest.param(kept_apart(seed), seed, id=f"apart-{seed}") for seed in SEEDS]
PAIRS = [(0, 1), (1, 0), (0, 2), (2, 1), (0, 0)]
COUNTS = [(1, 1), (2, 1), (1, 2), (2, 2)]


def saving(layout: Layout, placed: IntArray) -> float:
    return cost(layout.problem, layout.placed) - cost(layout.problem, placed)


def best_of(layout: Layout, changes: Iterator[Steps]) -> float:
    """What the best of the valid ones saves; 0 when there is none."""
    found = (shifted(layout.placed, *steps) for steps in changes)
    return max((saving(layout, placed) for placed in found if valid(layout.problem, placed)), default=0.0)


def keeps_its_word(layout: Layout, change: Change) -> None:
    """Applied, it saves what it said and breaks no limit."""
    after, before = layout.copy(), layout.cost()
    change.apply(after)
    assert before - after.cost() == pytest.approx(change.saving, abs=1e-9)
    assert after.placed.tolist() == shifted(layout.placed, *change.steps).tolist()
    assert after.missing.tolist() == layout.missing.tolist()
    assert valid(layout.problem, after.placed)


def shifts(layout: Layout, group: int) -> Iterator[Steps]:
    """One, or as many as there are and fit, to a node that has room for them before they leave the other."""
    for source in range(6):
        movable = int(layout.placed[group, source])
        for target, capacity in enumerate(layout.capacity(group).tolist()):
            most = min(movable, capacity)
            if most:
                yield ((group, source, target, 1),)
                yield ((group, source, target, most),)


@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_no_shift_saves_more_than_the_best(problem: Problem, seed: int) -> None:
    layout = filled(problem, seed)
    for group in range(3):
        found = best_shift(layout, group, distances(problem.places))
        keeps_its_word(layout, found)
        assert found.saving == pytest.approx(best_of(layout, shifts(layout, group)), abs=1e-9)


def swaps(layout: Layout, groups: tuple[int, int], counts: tuple[int, int]) -> Iterator[Steps]:
    movable = layout.placed
    for here in np.flatnonzero(movable[groups[0]] >= counts[0]).tolist():
        for there in np.flatnonzero(movable[groups[1]] >= counts[1]).tolist():
            if here != there:
                yield ((groups[0], here, there, counts[0]), (groups[1], there, here, counts[1]))


@pytest.mark.parametrize("make", [a_problem, kept_apart])
def test_swaps_keep_their_word(make: Callable[[int], Problem]) -> None:
    better = 0
    for seed, groups, counts in product(SEEDS, PAIRS[:-1], COUNTS):
        layout = filled(make(seed), seed)
        found = best_swap(layout, groups, distances(layout.problem.places), counts)
        if found.saving > 0:
            keeps_its_word(layout, found)
            better += 1
    assert better


@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_no_swap_of_two_components_saves_more_than_the_best(seed: int) -> None:
    layout = filled(a_problem(seed), seed)
    for groups in ((0, 2), (2, 1)):
        for counts in COUNTS:
            found = best_swap(layout, groups, distances(layout.problem.places), counts)
            best = best_of(layout, swaps(layout, groups, counts))
            assert max(0.0, found.saving) == pytest.approx(max(0.0, best), abs=1e-9)


@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_no_swap_within_a_component_saves_more_than_the_best(seed: int) -> None:
    layout = filled(a_problem(seed), seed)
    for count in (1, 2):
        found = best_swap(layout, (0, 1), distances(layout.problem.places), (count, count))
        best = best_of(layout, swaps(layout, (0, 1), (count, count)))
        assert max(0.0, found.saving) == pytest.approx(max(0.0, best), abs=1e-9)


def node_changes(layout: Layout, *, exchange: bool) -> Iterator[Steps]:
    movable = layout.placed
    occupied = movable.any(axis=0)
    for here in np.flatnonzero(occupied).tolist():
        for there in np.flatnonzero(occupied if exchange else ~occupied).tolist():
            going = [(group, here, there, int(movable[group, here])) for group in range(3)]
            coming = [(group, there, here, int(movable[group, there])) for group in range(3)]
            yield tuple(step for step in (*going, *coming) if step[3] and here != there)


@pytest.mark.parametrize("exchange", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_change_of_whole_nodes_saves_more_than_the_best(seed: int, *, exchange: bool) -> None:
    layout = filled(a_problem(seed), seed)
    found = best_node_change(layout, distances(layout.problem.places), exchange=exchange)
    best = best_of(layout, node_changes(layout, exchange=exchange))
    assert max(0.0, found.saving) == pytest.approx(max(0.0, best), abs=1e-9)
    if found.saving > 0:
        keeps_its_word(layout, found)


@pytest.mark.parametrize("exchange", [False, True])
def test_nodes_are_left_alone_where_components_must_keep_apart(*, exchange: bool) -> None:
    layout = filled(kept_apart(2), 2)
    assert layout.placed.any()
    assert best_node_change(layout, distances(layout.problem.places), exchange=exchange) is NO_CHANGE


def test_where_nothing_can_move_there_is_no_change() -> None:
    problem = a_problem(1)
    apart, layout = distances(problem.places), Layout(problem)
    assert best_shift(layout, 0, apart) is NO_CHANGE
    assert best_swap(layout, (0, 2), apart) is NO_CHANGE
    assert best_node_change(layout, apart, exchange=True) is NO_CHANGE
    assert best_node_change(layout, apart, exchange=False) is NO_CHANGE


def test_no_change_changes_nothing() -> None:
    layout = filled(a_problem(1), 1)
    keeps_its_word(layout, NO_CHANGE)
