from __future__ import annotations

import numpy as np
import pytest

from ballast.model import Executor, Phase
from ballast.simulation.engine import Roster, simulate
from ballast.simulation.meter import Reading
from ballast.simulation.run_metrics import run_metrics
from ballast.simulation.trace import Cause, Outcome, Trace
from tests.unit.simulation.small_world import SMALL_AND_LARGE, cluster, policy, scenario


def same(one: Trace, other: Trace) -> bool:
    arrays = ("times", "scores", "usage", "executors", "open", "locality", "gated", "refusals")
    return (
        one.moves == other.moves
        and one.placements == other.placements
        and all(np.array_equal(getattr(one, name), getattr(other, name), equal_nan=name != "open") for name in arrays)
    )


NOISY = {
    "nodes": [
        {
            "name": "node",
            "count": 4,
            "cores": 10,
            "neighbor": {"cores": 2, "vary": [{"kind": "Noise", "deviation": 0.5}]},
        }
    ],
    "applications": [
        {"name": "job", "copies": 5, "executors": 4, "load": {"cores": 1, "vary": [{"kind": "HeavyTail", "alpha": 2}]}}
    ],
    "metrics": {"loss": 0.05, "delay": "30s"},
    "moving": {"stuck": 0.2, "lost": 0.2},
}


def test_the_same_scenario_and_seed_give_the_same_trace() -> None:
    first = simulate(scenario(**NOISY), policy())
    assert first.placements
    assert same(first, simulate(scenario(**NOISY), policy()))


def test_another_seed_gives_another_trace() -> None:
    assert not same(simulate(scenario(**NOISY), policy()), simulate(scenario(**NOISY), policy(), seed=2))


def test_a_gap_is_closed_by_moves_that_end_as_predicted() -> None:
    trace = simulate(scenario(), policy())
    assert {move.outcome for move in trace.moves} == {Outcome.HELPED}
    assert len(trace.moves) == 3
    assert trace.usage[-1].tolist() == [50.0, 50.0]
    assert sorted((m.hot_after, m.cold_after) for m in trace.moves) == [(50.0, 50.0), (60.0, 40.0), (70.0, 30.0)]
    assert run_metrics(trace).moves_beyond_optimum <= 1


def test_nothing_moves_in_mode_off_or_recommend() -> None:
    for mode in ("Disabled", "Recommend"):
        trace = simulate(scenario(), policy(mode=mode))
        assert trace.moves == ()
        assert trace.usage[-1].tolist() == [80.0, 20.0]


def test_executors_of_a_new_application_wait_for_the_planner_and_go_where_it_says() -> None:
    world = scenario(
        applications=[{"name": "job", "executors": 6, "load": {"cores": 1}, "requests": {"cpu": 1}, "starts": "5m"}]
    )
    trace = simulate(world, policy())
    assert {(p.at, p.cause) for p in trace.placements} == {(300.0, Cause.START)}
    assert [p.node for p in trace.placements] == [p.wanted for p in trace.placements]
    assert trace.executors[-1].sum() == 6


def test_the_executors_of_a_dead_node_are_placed_elsewhere() -> None:
    trace = simulate(scenario(events=[{"at": "5m", "fail": ["node-1"]}]), policy(mode="Disabled"))
    lost = [p for p in trace.placements if p.cause is Cause.LOST]
    assert [p.node for p in lost] == ["node-0", "node-0"]
    assert trace.executors[-1].tolist() == [10, 0]
    assert np.isnan(trace.usage[-1, 1])


def test_a_replacement_that_is_lost_is_placed_again_and_the_move_has_failed() -> None:
    trace = simulate(scenario(moving={"lost": 1.0}), policy(pauseAfterFailures=100))
    assert {move.outcome for move in trace.moves} <= {Outcome.NEVER_ARRIVED, Outcome.UNDER_WAY}
    assert {p.cause for p in trace.placements} == {Cause.ASTRAY}
    assert trace.executors[-1].sum() >= 9


def test_an_executor_that_is_stuck_stays_where_it_is() -> None:
    trace = simulate(scenario(moving={"stuck": 1.0}), policy())
    assert {move.outcome for move in trace.moves} <= {Outcome.NEVER_LEFT, Outcome.UNDER_WAY}
    assert trace.usage[-1].tolist() == [80.0, 20.0]


def test_without_metrics_nothing_is_moved() -> None:
    trace = simulate(scenario(events=[{"at": "0s", "blackout": True, "lasts": "30m"}]), policy())
    assert trace.moves == ()
    assert "NoMetrics" in trace.reasons


EPOCH = 1000.0


def reading(cores: list[float], *, available: bool = True) -> Reading:
    nodes = np.array([0.5, 0.5])
    return Reading(available, nodes, np.zeros(2), np.array(cores), np.array([1.0, 2.0]), nodes)


def test_executors_are_seen_with_what_is_measured_of_them() -> None:
    pool = cluster(
        [SMALL_AND_LARGE[0], {**SMALL_AND_LARGE[1], "speed": 2.0}],
        executors=2,
        runsOn={"large": 1, "small": 1},
        recordsPerCore=10,
        bytesPerCore=100,
        taskSeconds=3,
        state="1k",
    )
    first, second = Roster(pool, epoch=EPOCH).executors(reading([0.5, np.nan]))
    assert (first.node, first.phase, first.running_since) == ("large", Phase.RUNNING, EPOCH - 3600.0)
    assert first.usage is not None
    assert (first.usage.cpu_cores, first.usage.records_per_second, first.usage.bytes_per_second) == (0.5, 5.0, 50.0)
    assert (first.usage.task_seconds, first.usage.task_bytes, first.usage.state_bytes) == (3.0, None, 1000.0)
    assert second.usage is None
    (_, busy) = Roster(pool, epoch=EPOCH).executors(reading([0.5, 0.5]))
    assert busy.usage is not None
    assert busy.usage.records_per_second == 10.0, "a core of a machine of twice the speed does twice the work"
    assert busy.usage.task_seconds == pytest.approx(3.0), "at half the capacity that it would need"


def test_without_metrics_nothing_is_known() -> None:
    pool = cluster(SMALL_AND_LARGE, executors=1, runsOn=["large"])
    (only,) = Roster(pool, epoch=EPOCH).executors(reading([0.5], available=False))
    assert only.usage is None


def test_what_changes_is_seen_and_the_rest_is_as_it_was() -> None:
    pool = cluster(SMALL_AND_LARGE, executors=2, runsOn=["large"])
    roster = Roster(pool, epoch=EPOCH)
    before = list(roster.executors(reading([0.5, 0.5])))
    pool.order_to_leave(0, 10.0)
    leaving, same = roster.executors(reading([0.5, 0.5]))
    assert (leaving.phase, leaving.uid) == (Phase.LEAVING, before[0].uid)
    assert same == before[1]
    pool.advance(15.0)
    assert [e.uid for e in roster.executors(reading([np.nan, 0.5]))] == [same.uid]
    pool.advance(20.0)
    renewed: Executor = next(roster.executors(reading([np.nan, 0.5])))
    assert (renewed.phase, renewed.uid, renewed.last_gate_since) == (Phase.GATED, "0.1", EPOCH + 20.0)
