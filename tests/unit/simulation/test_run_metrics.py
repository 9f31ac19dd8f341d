from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.simulation.run_metrics import (
    fewest_moves,
    fewest_moves_of,
    gap,
    imbalance,
    run_metrics,
    seconds_to_balance,
)
from ballast.simulation.trace import Outcome, Stretch
from tests.examples import examples
from tests.unit.simulation.traces import move, stretch, trace

APART, LEVEL = [80.0, 20.0], [50.0, 50.0]


def test_the_time_to_balance_is_that_of_the_longest_imbalance() -> None:
    assert seconds_to_balance(trace([APART] * 4 + [LEVEL] * 10)) == 240.0
    assert seconds_to_balance(trace([LEVEL] * 20)) == 0.0
    twice = [APART] * 2 + [LEVEL] * 10 + [APART] * 5 + [LEVEL] * 10
    assert seconds_to_balance(trace(twice)) == 300.0


def test_a_moment_of_balance_does_not_end_an_imbalance() -> None:
    assert seconds_to_balance(trace([APART] * 4 + [LEVEL] + [APART] * 4 + [LEVEL] * 10)) == 540.0


def test_a_pool_that_is_out_of_balance_at_the_end_never_got_there() -> None:
    assert seconds_to_balance(trace([LEVEL] * 10 + [APART] * 10)) is None


def test_a_gap_is_between_a_node_that_can_give_and_one_that_can_take() -> None:
    rows = [[90.0, 40.0, 10.0]]
    without_executors = trace(rows, executors=np.array([[0, 3, 3]]))
    closed = trace(rows, open=np.array([[True, True, False]]))
    assert gap(trace(rows)).tolist() == [80.0]
    assert gap(without_executors).tolist() == [30.0]
    assert gap(closed).tolist() == [50.0]
    assert gap(trace([[90.0, np.nan, np.nan]])).tolist() == [0.0]


def test_gaps_are_of_usage_averaged_over_the_window() -> None:
    flicker = trace([APART, LEVEL] * 5, window_seconds=120.0)
    assert gap(flicker)[1:].tolist() == pytest.approx([30.0] * 9)


def test_imbalance_is_the_deviation_over_nodes_that_are_there_times_hours() -> None:
    assert imbalance(trace([[80.0, 20.0, np.nan]])).tolist() == [30.0]
    assert run_metrics(trace([APART] * 60)).imbalance_point_hours == pytest.approx(30.0)


def test_a_placement_is_wrong_when_its_destination_ends_far_above_the_mean() -> None:
    seen = trace([APART] * 2 + [[20.0, 80.0]] * 5, moves=(move(0, 1, 60.0, arrived=120.0),))
    found = run_metrics(seen)
    assert (found.wrong_placements, found.over_unloadings) == (1, 1)
    fine = run_metrics(trace([APART] * 2 + [LEVEL] * 5, moves=(move(0, 1, 60.0, arrived=120.0),)))
    assert (fine.wrong_placements, fine.over_unloadings) == (0, 0)


def test_a_large_machine_counts_for_more_in_the_mean() -> None:
    after = [[80.0, 50.0, 35.0]] * 5
    moves = (move(1, 2, 60.0, arrived=60.0),)
    alike, one_large = np.ones(3), np.array([8.0, 1.0, 1.0])
    assert run_metrics(trace(after, capacity=alike, moves=moves, level_points=10.0)).over_unloadings == 0
    assert run_metrics(trace(after, capacity=one_large, moves=moves, level_points=10.0)).over_unloadings == 1


def test_going_back_within_an_hour_is_a_reversal() -> None:
    there, back = move(0, 1, 60.0), move(1, 0, 600.0)
    assert run_metrics(trace([LEVEL] * 20, moves=(there, back))).reversals == 1
    assert run_metrics(trace([LEVEL] * 20, moves=(there, move(1, 0, 4000.0)))).reversals == 0
    assert run_metrics(trace([LEVEL] * 20, moves=(there, move(0, 1, 600.0)))).reversals == 0


def test_moves_are_counted_once_they_left_and_by_round_and_outcome() -> None:
    moves = (
        move(0, 1, 60.0),
        move(0, 1, 60.0, outcome=Outcome.DID_NOT_HELP),
        move(0, 1, 120.0, outcome=Outcome.NEVER_LEFT, left_at=None, arrived_at=None),
    )
    found = run_metrics(trace([LEVEL] * 20, moves=moves))
    assert (found.moves, found.rounds, found.failed_moves) == (2, 1, 2)


def test_moves_beyond_the_optimum_are_those_that_were_not_needed() -> None:
    needed = stretch([[1] * 9, [1]])
    moves = tuple(move(0, 1, 60.0 * i) for i in range(1, 8))
    assert run_metrics(trace([LEVEL] * 20, moves=moves, stretches=(needed,))).moves_beyond_optimum == 3
    assert run_metrics(trace([LEVEL] * 20, stretches=(needed,))).moves_beyond_optimum == 0


def test_refusals_by_limits_are_summed() -> None:
    counts = np.array([[1, 2, 4, 8], [1, 0, 0, 0]])
    reasons = ("Budget", "Cooldown", "MaxConcurrent", "NoRoom")
    seen = trace([LEVEL] * 2, reasons=reasons, refusals=counts)
    assert seen.refused() == {"Budget": 2, "Cooldown": 2, "MaxConcurrent": 4, "NoRoom": 8}
    assert run_metrics(seen).limit_refusals == 8


def test_locality_is_a_mean_over_time_and_unknown_passes_count_for_nothing() -> None:
    seen = trace([LEVEL] * 4, locality=np.array([2.0, 4.0, np.nan, np.nan]))
    assert run_metrics(seen).locality_cost == pytest.approx(3.0)
    assert run_metrics(seen).peak_score == 50.0


LEVEL_POINTS = 15.0


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
    assert fewest_moves_of(stretch(loads), level_points=LEVEL_POINTS) == pytest.approx(moves, abs=1)
    assert fewest_moves_of(stretch(loads), level_points=LEVEL_POINTS) <= moves


def test_a_larger_machine_needs_more_to_reach_the_same_score() -> None:
    small = fewest_moves_of(stretch([[1] * 8, []], capacity=10.0), level_points=LEVEL_POINTS)
    large = fewest_moves_of(stretch([[1] * 8, []], capacity=[10.0, 40.0]), level_points=LEVEL_POINTS)
    assert large > small


def test_a_node_that_is_gone_asks_for_no_moves() -> None:
    gone = replace(stretch([[1] * 5, []]), up=np.array([True, False]))
    assert fewest_moves_of(gone, level_points=LEVEL_POINTS) == 0


def test_a_run_needs_as_many_as_its_worst_stretch() -> None:
    worst, best = stretch([[1] * 9, [1]]), stretch([[1], [1]])
    assert (
        fewest_moves([best, worst, best], level_points=LEVEL_POINTS)
        == fewest_moves([worst], level_points=LEVEL_POINTS)
        > 0
    )
    assert fewest_moves([], level_points=LEVEL_POINTS) == 0


def possible(found: Stretch) -> int | None:
    """The fewest moves by trying everything."""
    nodes, executors = len(found.capacity), len(found.loads)
    best: int | None = None
    for homes in product(range(nodes), repeat=executors):
        held = np.bincount(homes, weights=found.loads, minlength=nodes)
        scores = 100.0 * (held + found.others) / found.capacity
        if scores.max() - scores.min() <= LEVEL_POINTS:
            moved = int((np.array(homes) != found.homes).sum())
            best = moved if best is None else min(best, moved)
    return best


@examples(60)
@given(st.lists(st.lists(st.integers(1, 6), max_size=3), min_size=2, max_size=3).filter(lambda x: sum(map(len, x)) > 0))
def test_no_way_of_moving_takes_fewer_than_the_bound(loads: list[list[float]]) -> None:
    found = stretch(loads, capacity=20.0)
    best = possible(found)
    if best is not None:
        assert fewest_moves_of(found, level_points=LEVEL_POINTS) <= best
