from __future__ import annotations

import numpy as np
import pytest

from ballast.simulation.run_metrics import gap, imbalance, run_metrics, seconds_to_balance
from ballast.simulation.trace import Outcome
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
