"""What a layout says about itself while executors come and go."""

from __future__ import annotations

import numpy as np
import pytest

from ballast.placement.problem import Filling, Layout, Problem, construct, construct_by_zone, hardest_first, left_over
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


ROOMY = {
    "allowed": np.ones((3, 6), dtype=np.bool_),
    "room": np.full((6, 2), 100.0),
    "node_limit": np.full((2, 6), 100),
    "zone_limit": np.full((2, 2), 100),
}


def added_cost(layout: Layout, group: int, node: int) -> float:
    placed = layout.placed.copy()
    placed[group, node] += 1
    return cost(layout.problem, placed) - cost(layout.problem, layout.placed)


@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_the_best_node_is_an_open_one_that_adds_least(problem: Problem, seed: int) -> None:
    layout = filled(problem, seed)
    for group in range(3):
        costs = [added_cost(layout, group, node) for node in np.flatnonzero(layout.open(group)).tolist()]
        node = Filling(layout).best(group)
        assert (node is None) == (not costs)
        if node is not None:
            assert layout.open(group)[node]
            assert added_cost(layout, group, node) == pytest.approx(min(costs), abs=1e-4)


def level_ground(**changes: object) -> Problem:
    """Nothing but preference and room makes a difference."""
    return a_problem(0, **{**ROOMY, "weights": np.zeros((2, 2)), "pull": np.zeros((2, 6)), **changes})


def test_between_equals_the_preferred_one_is_taken() -> None:
    problem = level_ground(preference=np.array([0.1, 0.2, 0.9, 0.3, 0.4, 0.5]))
    assert Filling(Layout(problem)).best(0) == 2


def test_then_the_one_with_the_most_room_left() -> None:
    room = np.full((6, 2), 50.0)
    room[4] = 60.0
    assert Filling(Layout(level_ground(preference=np.zeros(6), room=room))).best(0) == 4


def test_the_tightest_one_is_that_with_the_least_room_left_whatever_it_costs() -> None:
    room = np.full((6, 2), 50.0)
    room[3] = (8.0, 50.0)
    problem = a_problem(0, **{**ROOMY, "room": room, "pull": np.array([[0, 0, 0, 99.0, 0, 0]] * 2)})
    assert Filling(Layout(problem), tightest=True).best(0) == 3
    assert Filling(Layout(problem)).best(0) != 3


def test_what_is_left_over_is_counted_in_shares_of_the_largest_room_of_what_is_asked_for() -> None:
    room = np.array([[10.0, 4.0], [5.0, 8.0], [10.0, 8.0], [2.0, 2.0], [10.0, 8.0], [10.0, 8.0]])
    demand = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 0.0]])
    layout = Layout(level_ground(room=room, demand=demand))
    assert left_over(layout)[:2] == pytest.approx([10 / 10 + 4 / 8, 5 / 10 + 8 / 8])
    layout.add(0, 1)
    assert left_over(layout, slice(1, 2)) == pytest.approx([4 / 10 + 6 / 8])
    only_first = Layout(level_ground(room=room, demand=np.array([[1.0, 0.0]] * 3)))
    assert left_over(only_first)[:1] == pytest.approx([10 / 10])


@pytest.mark.parametrize("tightest", [False, True])
@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_what_is_missing_in_the_end_has_nowhere_to_go(problem: Problem, seed: int, *, tightest: bool) -> None:
    layout = Layout(problem)
    construct(layout, hardest_first(problem), tightest=tightest)
    assert valid(problem, layout.placed)
    assert (layout.missing >= 0).all()
    assert not any(layout.open(group).any() for group in np.flatnonzero(layout.missing).tolist())


@pytest.mark.parametrize("seed", SEEDS)
def test_each_goes_where_it_adds_least_when_its_turn_comes(seed: int) -> None:
    problem = a_problem(seed, weights=np.array([[0.0, 2.0], [2.0, 0.0]]))
    layout, turns = Layout(problem), [0, 2, 1, 0, 2]
    construct(layout, turns)
    expected = Layout(problem)
    for group in turns:
        node = Filling(expected).best(group)
        if node is not None:
            expected.add(group, node)
    assert layout.placed.tolist() == expected.placed.tolist()


def test_those_that_talk_to_their_own_kind_fill_a_node_before_the_next() -> None:
    problem = a_problem(
        0, **{**ROOMY, "weights": np.eye(2), "pull": np.zeros((2, 6)), "node_limit": np.full((2, 6), 3)}
    )
    layout = Layout(problem)
    construct(layout, [0] * 7)
    assert sorted(layout.placed[0].tolist(), reverse=True)[:3] == [3, 3, 1]


def test_zone_by_zone_the_roomiest_is_filled_before_the_next() -> None:
    room = np.array([[3.0, 9.0]] * 3 + [[2.0, 9.0]] * 2 + [[7.0, 9.0]])
    problem = a_problem(
        0,
        **{**ROOMY, "room": room, "demand": np.ones((3, 2)), "counts": np.array([12, 0, 0]), "pull": np.zeros((2, 6))},
    )
    layout = Layout(problem)
    construct_by_zone(layout, [0] * 12)
    zones = np.bincount(problem.places[0], weights=layout.placed[0])
    assert zones.tolist() == [1, 11]
    assert valid(problem, layout.placed)


def test_only_so_many_are_placed_as_have_a_turn() -> None:
    layout = Layout(a_problem(0, **{**ROOMY, "counts": np.array([4, 4, 4])}))
    construct(layout, [0, 0, 2])
    assert layout.missing.tolist() == [2, 4, 3]


def test_the_scale_is_the_largest_difference_that_a_node_can_make() -> None:
    weights, pull = np.array([[1.0, 4.0], [4.0, 0.5]]), np.array([[1.0] * 5 + [8.0], [3.0] * 6])
    assert a_problem(0, weights=weights, pull=pull).scale == 40.0
    assert a_problem(0, weights=weights * 0.0, pull=pull).scale == 7.0
    assert a_problem(0, weights=weights * 0.0, pull=pull * 0.0).scale == 1.0


def test_what_takes_the_largest_share_of_what_it_may_use_comes_first() -> None:
    demand = np.array([[1.0, 0.0], [0.0, 30.0], [2.0, 1.0]])
    everywhere = level_ground(demand=demand, counts=np.array([1, 2, 1]))
    assert hardest_first(everywhere) == [1, 1, 2, 0]
    one_node = np.ones((3, 6), dtype=np.bool_)
    one_node[0, 1:] = False
    assert hardest_first(level_ground(demand=demand, counts=np.array([1, 2, 1]), allowed=one_node)) == [1, 1, 0, 2]
    assert hardest_first(level_ground(demand=demand * 0.0, counts=np.array([1, 2, 1]))) == [0, 1, 1, 2]
