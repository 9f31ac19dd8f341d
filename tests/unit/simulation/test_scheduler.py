from __future__ import annotations

from ballast.model import DEFAULT_LEVELS
from ballast.simulation.cluster import Cluster, State
from ballast.simulation.scheduler import Scheduler
from tests.unit.simulation.small_world import SMALL_AND_LARGE, cluster


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
