"""Making a layout cheaper, change by change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, product
from random import Random

import numpy as np
import pytest

from ballast.model.arrays import IntArray
from ballast.placement.problem import Layout, Problem
from ballast.placement.refinement import (
    NO_CHANGE,
    Budget,
    Change,
    best_node_change,
    best_shift,
    best_swap,
    descend,
    refine,
)
from tests.unit.placement.problems import a_problem, cost, distances, filled, kept_apart, shifted, valid

SEEDS = range(24)
PROBLEMS = [pytest.param(a_problem(seed), seed, id=f"free-{seed}") for seed in SEEDS]
PROBLEMS += [pytest.param(kept_apart(seed), seed, id=f"apart-{seed}") for seed in SEEDS]
PLENTY = 1_000_000
WORTH = 1e-4
"""More than what the search takes for nothing."""


def largest_saving(layout: Layout, *, full: bool) -> float:
    """What one more change would save."""
    apart = distances(layout.problem.places)
    savings = [best_shift(layout, group, apart).saving for group in range(3)]
    pairs = [(one, other) for one in range(3) for other in range(one)]
    for counts in ((1, 1), (2, 1), (1, 2)) if full else ((1, 1),):
        savings += [best_swap(layout, pair, apart, counts).saving for pair in pairs]
    if full:
        savings += [best_node_change(layout, apart, exchange=exchange).saving for exchange in (False, True)]
    return max(savings)


def better_and_valid(layout: Layout, before: Layout) -> None:
    assert layout.missing.sum() <= before.missing.sum()
    if layout.missing.sum() == before.missing.sum():
        assert layout.cost() <= before.cost() + 1e-9
    assert valid(layout.problem, layout.placed)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_a_descent_ends_where_no_change_saves_anything(problem: Problem, seed: int, *, full: bool) -> None:
    layout = filled(problem, seed)
    before = layout.copy()
    descend(layout, Budget(PLENTY, nodes=len(layout.problem.nodes)), full=full)
    better_and_valid(layout, before)
    assert layout.missing.tolist() == before.missing.tolist()
    assert largest_saving(layout, full=full) < WORTH


@pytest.mark.parametrize("seed", SEEDS)
def test_without_steps_nothing_is_changed(seed: int) -> None:
    layout = filled(a_problem(seed), seed)
    before = layout.placed.tolist()
    descend(layout, Budget(0, nodes=6))
    assert layout.placed.tolist() == before
    assert refine(layout, 0, Random(1)).placed.tolist() == before


def test_a_budget_is_spent_step_by_step() -> None:
    budget = Budget(3, nodes=6)
    assert [budget.spend(), budget.spend(2), budget.spend(), budget.left] == [True, True, False, -1]


def test_steps_among_very_many_nodes_count_several_times() -> None:
    """3 000 executors on 2 500 nodes took nine seconds, because each step compared millions of pairs."""
    few, many = Budget(100, nodes=200), Budget(100, nodes=2000)
    few.spend()
    many.spend()
    assert (few.left, many.left) == (99, 79)


@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_a_refined_layout_is_no_worse(problem: Problem, seed: int) -> None:
    layout = filled(problem, seed)
    before = layout.copy()
    found = refine(layout, 300, Random(seed))
    better_and_valid(found, before)
    assert (found.missing >= 0).all()
    assert largest_saving(found, full=False) < WORTH


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_draws_refine_alike(seed: int) -> None:
    problem = a_problem(seed)
    one, other = (refine(filled(problem, seed), 200, Random(5)) for _ in range(2))
    assert one.placed.tolist() == other.placed.tolist()


def every_layout(problem: Problem) -> Iterator[Layout]:
    """All complete ones."""
    choices = [combinations_with_replacement(range(6), int(count)) for count in problem.counts]
    for nodes in product(*choices):
        layout = Layout(problem)
        if all(_put(layout, group, node) for group, chosen in enumerate(nodes) for node in chosen):
            yield layout


def _put(layout: Layout, group: int, node: int) -> bool:
    possible = bool(layout.open(group)[node])
    if possible:
        layout.add(group, node)
    return possible


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_small_problems_are_solved(seed: int) -> None:
    problem = a_problem(
        seed,
        counts=np.array([2, 1, 2]),
        weights=np.array([[2.0, 1.0], [1.0, 3.0]]),
        room=np.full((6, 2), 4.0),
        node_limit=np.full((2, 6), 2),
        zone_limit=np.full((2, 2), 3),
    )
    layout = filled(problem, seed)
    found = refine(layout, 600, Random(1))
    complete = [layout.cost() for layout in every_layout(problem)]
    assert found.missing.sum() == 0
    assert found.cost() == pytest.approx(min(complete))


def test_room_may_be_made_for_one_that_is_missing() -> None:
    """The small ones sit where the large one alone could go."""
    problem = a_problem(
        0,
        component=np.array([0, 0, 1]),
        counts=np.array([2, 1, 0]),
        demand=np.array([[1.0, 0.0], [4.0, 0.0], [1.0, 0.0]]),
        allowed=np.ones((3, 6), dtype=np.bool_),
        room=np.array([[4.0, 0.0], [2.0, 0.0], [2.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),
        node_limit=np.full((2, 6), 9),
        zone_limit=np.full((2, 2), 9),
    )
    layout = Layout(problem)
    layout.add(0, 0, count=2)
    assert refine(layout, 500, Random(3)).missing.sum() == 0


def test_where_nothing_was_placed_nothing_is_tried() -> None:
    empty = Layout(a_problem(1))
    assert refine(empty, 100, Random(1)) is empty


Steps = tuple[tuple[int, int, int, int], ...]

MORE_SEEDS = range(80)
"""Swaps of several executors seldom save anything."""
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
