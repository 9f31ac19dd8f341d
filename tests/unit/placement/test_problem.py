"""What a layout says about itself while executors come and go."""

from __future__ import annotations

import numpy as np
import pytest

from ballast.placement.problem import Layout, Problem
from ballast.placement.room import UNBOUNDED
from tests.unit.placement.problems import a_problem, cost, filled, kept_apart, valid

SEEDS = range(24)
PROBLEMS = [pytest.param(a_problem(seed), seed, id=f"free-{seed}") for seed in SEEDS]
PROBLEMS += [pytest.param(kept_apart(seed), seed, id=f"apart-{seed}") for seed in SEEDS]


def one_more(layout: Layout, group: int, node: int, count: int = 1) -> bool:
    placed = layout.placed.copy()
    placed[group, node] += count
    return valid(layout.problem, placed)


@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_it_costs_what_its_pairs_and_pulls_cost(problem: Problem, seed: int) -> None:
    layout = filled(problem, seed)
    assert layout.cost() == pytest.approx(cost(problem, layout.placed))


@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_open_nodes_are_those_that_take_one_more(problem: Problem, seed: int) -> None:
    layout = filled(problem, seed)
    for group in range(3):
        assert layout.open(group).tolist() == [one_more(layout, group, node) for node in range(6)]


@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_the_capacity_is_the_largest_number_that_fits(problem: Problem, seed: int) -> None:
    layout = filled(problem, seed)
    for group in range(3):
        for node, count in enumerate(layout.capacity(group).tolist()):
            assert count == 0 or one_more(layout, group, node, count)
            assert not one_more(layout, group, node, count + 1)


@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_an_open_node_tells_its_capacity_alone(problem: Problem, seed: int) -> None:
    layout = filled(problem, seed)
    for group in range(3):
        capacity = layout.capacity(group)
        open_ones = np.flatnonzero(layout.open(group)).tolist()
        assert [layout.more_at(group, node) for node in open_ones] == capacity[open_ones].tolist()


@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_what_is_taken_away_leaves_no_trace(problem: Problem, seed: int) -> None:
    layout, fresh = filled(problem, seed), Layout(problem)
    for group, node in np.argwhere(layout.placed):
        layout.add(int(group), int(node), count=-int(layout.placed[group, node]))
    assert layout.missing.tolist() == problem.counts.tolist()
    for name in ("placed", "room", "node_left", "zone_left", "present"):
        assert getattr(layout, name) == pytest.approx(getattr(fresh, name)), name
    assert layout.benefit == pytest.approx(fresh.benefit)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_benefit_of_a_node_is_what_it_saves_next_to_the_farthest(seed: int) -> None:
    layout = filled(a_problem(seed), seed)
    partners = layout.present.sum(axis=1)
    for group, component in enumerate(layout.problem.component):
        farthest = float(layout.problem.weights[component] @ partners) * layout.problem.farthest
        for node in range(6):
            after = layout.placed.copy()
            after[group, node] += 1
            added = cost(layout.problem, after) - cost(layout.problem, layout.placed)
            assert farthest - layout.benefit[component, node] == pytest.approx(added)


def test_a_copy_goes_its_own_way() -> None:
    layout = filled(a_problem(1), 1)
    before, other = layout.placed.copy(), layout.copy()
    group, node = (int(each) for each in np.argwhere(layout.placed)[0])
    other.add(group, node, count=-1)
    assert layout.placed.tolist() == before.tolist()
    assert layout.cost() == pytest.approx(cost(layout.problem, before))
    assert other.problem is layout.problem


def test_who_asks_for_nothing_fits_without_bound() -> None:
    plenty = np.full((2, 6), UNBOUNDED)
    problem = a_problem(
        1,
        demand=np.zeros((3, 2)),
        room=np.full((6, 2), -1.0),
        allowed=np.ones((3, 6), dtype=np.bool_),
        node_limit=plenty,
        zone_limit=plenty[:, :2],
    )
    assert Layout(problem).capacity(0).tolist() == [UNBOUNDED] * 6
    assert Layout(problem).open(0).all()
