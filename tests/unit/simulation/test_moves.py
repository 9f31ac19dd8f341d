"""How moves end when something comes between: three leave the hot node after a minute, and arrive after two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ballast.model import DEFAULT_LEVELS
from ballast.simulation.cluster import Cluster, State
from ballast.simulation.engine import simulate
from ballast.simulation.moves import Scheduler
from ballast.simulation.trace import Cause, MoveRecord, Outcome, Trace
from tests.unit.simulation.small_world import SMALL_AND_LARGE, cluster, policy, scenario


def run(shedding: dict[str, Any] | None = None, **spec: Any) -> Trace:
    return simulate(scenario(**spec), policy(shedding))


def bundle(**changes: Any) -> dict[str, Any]:
    return {"name": "bundle", "copies": 10, "load": {"cores": 1.0}, "runsOn": {"node-0": 8, "node-1": 2}, **changes}


def fails(node: str, at: str) -> dict[str, Any]:
    return {"events": [{"at": at, "fail": [node]}]}


BLACKOUT = {"events": [{"at": "100s", "blackout": True, "lasts": "20m"}]}


@pytest.mark.parametrize(
    ("spec", "arrived", "outcome"),
    [
        pytest.param({}, True, Outcome.HELPED, id="nothing"),
        pytest.param({"applications": [bundle(stops="65s")]}, False, Outcome.NOT_JUDGED, id="the application stops"),
        pytest.param(fails("node-1", "80s"), False, Outcome.NEVER_ARRIVED, id="the node has died before it is sent"),
        pytest.param(fails("node-1", "100s"), False, Outcome.NEVER_ARRIVED, id="the node dies before it runs"),
        pytest.param(fails("node-1", "130s"), True, Outcome.NOT_JUDGED, id="the node dies before it is judged"),
        pytest.param(
            {"moving": {"replace": "20m"}}, False, Outcome.NEVER_ARRIVED, id="Spark asks for no other in time"
        ),
        pytest.param({"moving": {"start": "20m"}}, False, Outcome.NEVER_ARRIVED, id="it does not start in time"),
        pytest.param(BLACKOUT, True, Outcome.NOT_JUDGED, id="there are no metrics to judge it by"),
    ],
)
def test_a_move_ends_as_what_came_between_has_it(spec: dict[str, Any], outcome: Outcome, *, arrived: bool) -> None:
    first = run(**spec).moves[0]
    assert (first.source, first.target, first.decided_at) == ("node-0", "node-1", 60.0)
    assert (first.outcome, first.arrived_at is not None) == (outcome, arrived)
    assert first.ended_at is not None


def test_a_move_has_not_helped_when_the_gap_is_wider_than_before() -> None:
    """One move makes 70 and 40 of 80 and 30; then a neighbor makes 100 of the 70."""
    surge = {"kind": "Surge", "at": "2m", "factor": 4, "rise": "0s", "lasts": "20m"}
    hot = {"name": "node-0", "cores": 10, "neighbor": {"cores": 1, "vary": [surge]}}
    world = scenario(
        nodes=[hot, {"name": "node-1", "cores": 10}],
        applications=[bundle(runsOn={"node-0": 7, "node-1": 3})],
    )
    first = simulate(world, policy(maxConcurrent=1)).moves[0]
    assert (first.outcome, first.measured_hot_after, first.measured_cold_after) == (Outcome.DID_NOT_HELP, 100.0, 40.0)


def test_a_replacement_that_finds_no_place_at_its_destination_is_placed_again() -> None:
    trace = run(**fails("node-1", "80s"))
    assert {placed.cause for placed in trace.placements} == {Cause.ASTRAY, Cause.LOST}
    assert trace.executors[-1].tolist() == [10, 0]


def gains(measured_hot: float | None, measured_cold: float | None) -> tuple[float, float | None]:
    move = MoveRecord(
        executor="team/e-1",
        slot=0,
        application="job",
        source="hot",
        target="cold",
        decided_at=0.0,
        hot_score=90.0,
        cold_score=30.0,
        hot_after=70.0,
        cold_after=45.0,
        load_cores=1.0,
        locality_delta_ratio=0.0,
        outcome=Outcome.HELPED,
        measured_hot_after=measured_hot,
        measured_cold_after=measured_cold,
    )
    return move.gain, move.measured_gain


def test_a_gain_is_by_how_much_the_gap_narrows_and_measured_where_both_were() -> None:
    assert gains(80.0, 40.0) == (35.0, 20.0)
    assert gains(None, 40.0) == gains(80.0, None) == (35.0, None)


class TestPlacing:
    def test_one_too_large_for_any_node_waits_in_vain(self) -> None:
        job = {"name": "job", "executors": 2, "load": {"cores": 1}, "requests": {"cpu": 20}, "starts": "1m"}
        trace = run(applications=[job])
        assert trace.placements == ()
        assert trace.executors[-1].tolist() == [0, 0]
        assert "PoolFull" in trace.reasons

    def test_one_that_waits_is_bound_where_room_comes_up_later(self) -> None:
        job = {"name": "job", "executors": 2, "load": {"cores": 1}, "requests": {"cpu": 20}, "starts": "1m"}
        trace = run(applications=[job], nodes=[{"name": "a", "cores": 10}, {"name": "b", "cores": 40, "joins": "10m"}])
        assert {placed.node for placed in trace.placements} == {"b"}
        assert min(placed.waited_seconds for placed in trace.placements) >= 540.0

    def test_what_talks_to_something_fixed_goes_to_its_zone(self) -> None:
        job = {"name": "job", "topology": "clicks", "executors": 2, "load": {"cores": 1}, "starts": "1m"}
        trace = run(
            nodes=[{"name": "node", "count": 4, "cores": 10, "zones": ["a", "b"]}],
            applications=[job],
            externals=[{"name": "kafka", "topology": "clicks", "zones": {"b": 1}}],
            streams=[{"from": "kafka", "to": "job", "bytesPerSecond": "10Mi"}],
        )
        assert {placed.node for placed in trace.placements} <= {"node-1", "node-3"}
        assert len(trace.placements) == 2


class TestNodes:
    def test_one_that_leaves_takes_nothing_new_and_is_gone_after_its_notice(self) -> None:
        trace = run(events=[{"at": "10m", "leave": ["node-1"], "notice": "5m"}], applications=[])
        column = trace.open[:, 1]
        assert column[trace.times < 600].all()
        assert not column[trace.times > 660].any()
        assert np.isfinite(trace.usage[(trace.times > 660) & (trace.times < 900), 1]).all()
        assert np.isnan(trace.usage[trace.times > 960, 1]).all()

    def test_nodes_restart_one_after_the_other_and_come_back(self) -> None:
        event = {"at": "5m", "restart": ["node"], "notice": "0s", "lasts": "2m", "every": "10m"}
        trace = run(events=[event], applications=[])
        away = [trace.times[np.isnan(trace.usage[:, node])] for node in (0, 1)]
        assert (away[0].min(), away[1].min()) == (300.0, 900.0)
        assert np.isfinite(trace.usage[-1]).all()


def scheduler(pool: Cluster) -> Scheduler:
    return Scheduler(pool, pool.fleet.locations(DEFAULT_LEVELS), 0.0)


def test_without_a_wish_the_node_wins_that_has_the_larger_share_left() -> None:
    pool = cluster(SMALL_AND_LARGE)
    binder = scheduler(pool)
    assert [binder.bind(slot) for slot in range(4)] == [0, 0, 0, 1]


def test_a_preferred_node_wins_as_long_as_it_has_room() -> None:
    pool = cluster(SMALL_AND_LARGE)
    binder = scheduler(pool)
    assert [binder.bind(slot, preferred=1) for slot in range(3)] == [1, 1, 0]


def test_a_required_zone_is_kept_even_if_that_means_to_wait() -> None:
    pool = cluster(SMALL_AND_LARGE)
    binder = scheduler(pool)
    assert [binder.bind(slot, within=("b",)) for slot in range(3)] == [1, 1, None]
    assert pool.state.tolist()[:3] == [State.PENDING] * 3
    assert pool.unschedulable_since[2] == 0.0


def test_a_node_that_will_be_gone_gets_nothing() -> None:
    pool = cluster(SMALL_AND_LARGE)
    pool.warned[0] = True
    assert scheduler(pool).bind(0) == 1
    assert not scheduler(pool).fits(1, 0)


def test_what_runs_already_takes_room() -> None:
    pool = cluster(SMALL_AND_LARGE, executors=3, runsOn={"small": 2})
    assert scheduler(pool).bind(2, preferred=1) == 0
