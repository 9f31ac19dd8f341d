"""Making a layout cheaper, change by change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from random import Random

import numpy as np
import pytest

from ballast.placement.problem import Layout, Problem
from ballast.placement.refinement import Budget, best_node_change, best_shift, best_swap, descend, refine
from tests.unit.placement.problems import a_problem, distances, filled, kept_apart, valid

SEEDS = range(20)
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
    descend(layout, Budget(PLENTY), full=full)
    better_and_valid(layout, before)
    assert layout.missing.tolist() == before.missing.tolist()
    assert largest_saving(layout, full=full) < WORTH


@pytest.mark.parametrize("seed", SEEDS)
def test_without_steps_nothing_is_changed(seed: int) -> None:
    layout = filled(a_problem(seed), seed)
    before = layout.placed.tolist()
    descend(layout, Budget(0))
    assert layout.placed.tolist() == before
    assert refine(layout, 0, Random(1)).placed.tolist() == before


def test_a_budget_is_spent_step_by_step() -> None:
    budget = Budget(3)
    assert [budget.spend(), budget.spend(2), budget.spend(), budget.left] == [True, True, False, -1]


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
