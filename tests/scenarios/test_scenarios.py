"""Every scenario that comes with Ballast, with what is known about it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ballast.api.duration import Duration
from ballast.simulation.engine import simulate
from ballast.simulation.policies import from_name
from ballast.simulation.run_metrics import RunMetrics, gap, run_metrics
from ballast.simulation.scenario import Scenario
from ballast.simulation.trace import Cause, Trace

FOLDER = Path(__file__).parents[2] / "examples" / "scenarios"
MINUTE = 60.0


def run(name: str, policy: str) -> Trace:
    world = Scenario.read(FOLDER / f"{name}.yaml")
    return simulate(world, from_name(policy, world))


def outcome(name: str, policy: str) -> tuple[Trace, RunMetrics]:
    trace = run(name, policy)
    return trace, run_metrics(trace)


def known() -> set[str]:
    text = Path(__file__).read_text(encoding="utf-8")
    return {path.stem for path in FOLDER.glob("*.yaml") if f'"{path.stem}"' in text}


def test_every_scenario_has_its_test() -> None:
    assert known() == {path.stem for path in FOLDER.glob("*.yaml")}


def test_avg_shedder_levels_90_to_10_in_one_round_and_then_rests() -> None:
    for policy in ("AvgShedder", "AvgShedder/Traffic"):
        trace, found = outcome("pip364-history-trap", policy)
        assert (found.rounds, found.over_unloadings, found.reversals) == (1, 0, 0)
        assert trace.usage[-1].tolist() == [50.0, 50.0]


def test_a_score_that_remembers_asks_for_more_when_90_to_10_is_level_already() -> None:
    """The trap: the strategy goes on suggesting. The arbiter refuses, since it would make the other node the hotter."""
    trace, found = outcome("pip364-history-trap", "ThresholdShedder")
    level = trace.times[(gap(trace) < 6.0)][0]
    column = trace.reasons.index("Overshoot")
    assert trace.refusals[trace.times >= level, column].sum() >= 5
    assert found.rounds >= 2
    assert (found.over_unloadings, found.reversals) == (0, 0)


def test_the_two_hot_ones_of_six_nodes_unload_to_cold_ones_and_never_to_each_other() -> None:
    for policy in ("AvgShedder", "AvgShedder/Traffic", "ThresholdShedder"):
        trace, found = outcome("pip364-six-brokers", policy)
        hot = {"broker-4", "broker-5"}
        assert {move.source for move in trace.moves} == hot
        assert not {move.target for move in trace.moves} & hot
        assert found.wrong_placements == 0
        assert found.seconds_to_balance is not None


def test_the_nearly_idle_one_of_five_nodes_is_filled_first() -> None:
    for policy in ("AvgShedder", "AvgShedder/Traffic", "ThresholdShedder"):
        trace, found = outcome("pip364-five-brokers", policy)
        assert trace.moves[0].target == "broker-0"
        assert found.wrong_placements == 0
        assert found.seconds_to_balance is not None
        assert found.seconds_to_balance <= 10 * MINUTE
        assert found.moves_beyond_optimum <= 4


def test_two_waves_level_the_five_nodes_with_hardly_a_move_too_many() -> None:
    _, found = outcome("pip364-five-brokers", "AvgShedder")
    assert (found.rounds, found.over_unloadings) == (2, 0)
    assert found.moves_beyond_optimum <= 1


def test_avg_shedder_balances_the_measured_cluster_in_one_round_after_eight_hits() -> None:
    for policy in ("AvgShedder", "AvgShedder/Traffic"):
        trace, found = outcome("pip364-cluster", policy)
        assert found.rounds == 1
        assert {move.decided_at for move in trace.moves} == {7 * MINUTE}
        assert found.seconds_to_balance == pytest.approx(8 * MINUTE)
        assert {(move.source, move.target) for move in trace.moves} == {("broker-4", "broker-0")}


def test_threshold_shedder_needs_more_rounds_for_the_measured_cluster() -> None:
    _, found = outcome("pip364-cluster", "ThresholdShedder")
    assert found.rounds >= 2


def test_new_nodes_are_filled_within_minutes() -> None:
    for policy in ("AvgShedder", "AvgShedder/Traffic"):
        trace, found = outcome("pip364-scale-up", policy)
        assert trace.moves[0].decided_at == 11 * MINUTE, "two hits of a gap above 40 points"
        assert found.seconds_to_balance is not None
        assert found.seconds_to_balance <= 5 * MINUTE
        assert found.wrong_placements == 0


def test_usage_is_leveled_where_traffic_is_level_already() -> None:
    _, ours = outcome("pip364-heterogeneous", "AvgShedder")
    assert ours.seconds_to_balance is not None
    assert ours.seconds_to_balance <= 5 * MINUTE
    for policy in ("AvgShedder/Traffic", "UniformLoadShedder"):
        trace, found = outcome("pip364-heterogeneous", policy)
        assert trace.moves == ()
        assert found.seconds_to_balance is None


def test_nothing_is_sent_to_a_node_that_someone_else_keeps_hot() -> None:
    for policy in ("AvgShedder", "AvgShedder/Traffic", "ThresholdShedder", "UniformLoadShedder"):
        trace = run("pip364-foreign-load", policy)
        assert "shared" not in {move.target for move in trace.moves}


def test_a_node_that_is_hot_by_others_keeps_nobody_from_leveling_with_the_coldest() -> None:
    trace, found = outcome("pip364-foreign-load", "AvgShedder")
    assert found.seconds_to_balance == pytest.approx(2 * MINUTE)
    assert trace.usage[-1].tolist() == [30.0, 30.0, 70.0]


@pytest.mark.soak
def test_a_day_of_noise_moves_nothing_by_usage_and_much_by_traffic() -> None:
    _, ours = outcome("noisy-day", "AvgShedder")
    assert ours.moves == 0
    world = Scenario.read(FOLDER / "noisy-day.yaml")
    some_hours = world.spec.model_copy(update={"duration": Duration.parse("6h")})
    world = world.model_copy(update={"spec": some_hours})
    pulsar = run_metrics(simulate(world, from_name("AvgShedder/Traffic", world)))
    assert pulsar.moves_beyond_optimum > 5


def test_the_executors_of_a_dead_node_run_elsewhere_and_the_node_is_filled_when_it_is_back() -> None:
    trace, found = outcome("node-failure", "AvgShedder")
    lost = [placed for placed in trace.placements if placed.cause is Cause.LOST]
    assert len(lost) == 12
    assert max(placed.at for placed in lost) <= 21.5 * MINUTE
    back_at = 40 * MINUTE
    assert {move.target for move in trace.moves if move.decided_at >= back_at} == {"node-2"}
    assert all(move.hot_score >= 90.0 for move in trace.moves if move.decided_at < back_at), "of a saturated node only"
    assert found.seconds_to_balance is not None
    assert found.moves_beyond_optimum <= 2, "the last one closes a gap of 12 points that has persisted"


def test_no_executor_is_lost_in_a_rolling_restart() -> None:
    trace, found = outcome("rolling-restart", "AvgShedder")
    assert trace.executors[-1].sum() == 72
    assert np.isfinite(trace.usage[-1]).all()
    assert found.peak_score <= 80.0
    drained = [move for move in trace.moves if move.taint]
    assert len(drained) == 60, "ten at once leave each node within its notice of half a minute"
    assert all(move.arrived_at is not None for move in drained)
    leveled = [move.target for move in trace.moves if not move.taint]
    assert leveled[0] == "node-5", "the last one to come back is the empty one"
    assert found.reversals == 0


def test_the_nodes_of_a_flash_crowd_are_relieved() -> None:
    unmoved = run_metrics(run("flash-crowd", "None"))
    trace, found = outcome("flash-crowd", "AvgShedder")
    assert trace.moves
    assert trace.moves[0].decided_at > 20 * MINUTE
    assert found.imbalance_point_hours < 0.7 * unmoved.imbalance_point_hours
