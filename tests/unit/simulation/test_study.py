from __future__ import annotations

import numpy as np
import pytest

from ballast.simulation.engine import simulate
from ballast.simulation.run_metrics import gap, imbalance, run_metrics
from ballast.simulation.study import INSTANTS, Case, Document, Result, Series, Study, left_out_told, moves_anything
from tests.unit.simulation.small_world import policy, scenario
from tests.unit.simulation.traces import trace


def test_a_result_has_the_run_s_figures_and_moves() -> None:
    run = simulate(scenario(), policy(), seed=3)
    result = Result.of(Case("policy", "small", 3), run, ("zones are not known",))
    assert result.metrics == run_metrics(run)
    assert result.moves == run.moves != ()
    assert result.unknown == ("zones are not known",)


def test_a_short_run_is_kept_pass_by_pass() -> None:
    run = simulate(scenario(), policy())
    kept = Series.of(run)
    np.testing.assert_array_equal(kept.times, run.times)
    np.testing.assert_allclose(kept.imbalance, imbalance(run))
    np.testing.assert_allclose(kept.scores, run.scores)
    np.testing.assert_allclose(kept.gap, gap(run))


def test_a_long_run_is_kept_as_means_over_passes_that_follow_each_other() -> None:
    usage = np.random.default_rng(1).uniform(0.0, 100.0, (1000, 3))
    kept = Series.of(trace(usage.tolist()))
    assert len(kept.times) == len(kept.imbalance) == len(kept.scores) == INSTANTS
    np.testing.assert_allclose(kept.scores[0], usage[:4].mean(axis=0))
    np.testing.assert_allclose(kept.times[:2], [0.0, 4 * 60.0])


def test_the_last_gap_is_that_of_the_last_pass() -> None:
    usage = [[50.0, 50.0]] * 999 + [[90.0, 10.0]]
    assert Series.of(trace(usage)).gap[-1] == 80.0


def test_unknown_scores_count_for_nothing_and_stay_unknown_where_there_is_no_other() -> None:
    usage = [[50.0, 50.0]] * 480
    scores = np.array([[10.0, np.nan], [np.nan, np.nan]] * 240)
    kept = Series.of(trace(usage, scores=scores))
    np.testing.assert_array_equal(kept.scores[:, 0], 10.0)
    assert np.isnan(kept.scores[:, 1]).all()


@pytest.mark.parametrize(
    ("spec", "moves"),
    [
        ({}, True),
        ({"moves": {"mode": "Recommend"}}, True),
        ({"moves": {"mode": "Disabled"}}, False),
        ({"shedding": {"strategy": "None"}}, False),
        ({"shedding": {"strategy": "AvgShedder"}}, True),
    ],
)
def test_what_may_move_is_told_from_what_does_not(spec: dict[str, object], moves: bool) -> None:
    assert moves_anything({"spec": spec}) is moves


def test_the_baseline_is_the_first_policy_that_moves_nothing() -> None:
    off: Document = {"spec": {"moves": {"mode": "Disabled"}}}
    on: Document = {"spec": {}}
    assert Study((), {"a": on, "b": off, "c": off}).baseline == "b"
    assert Study((), {"a": on}).baseline is None


def test_what_is_not_known_is_said_once_however_many_runs_say_it() -> None:
    run = trace([[50.0, 50.0]])
    said = [("zones are not known", "3 of 10 steps have no metrics"), ("7 of 10 steps have no metrics",), ()]
    results = (Result.of(Case("policy", str(day), 1), run, unknown) for day, unknown in enumerate(said))
    assert Study(tuple(results), {"policy": {"spec": {}}}).unknown == (
        "zones are not known",
        "3 of 10 steps have no metrics (and with 1 other figures in other runs)",
    )


def test_windows_that_are_left_out_for_one_reason_are_told_of_together() -> None:
    reasons = {
        "pool 2026-11-01": "there are 2 of 24 hours",
        "pool 2026-11-02": "there are 3 of 24 hours",
        "b": "no nodes",
    }
    assert left_out_told(reasons) == (
        "pool 2026-11-01: there are 2 of 24 hours (and so 1 more window)",
        "b: no nodes",
    )
