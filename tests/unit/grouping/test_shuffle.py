from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from ballast.enums import Scope
from ballast.errors import InvalidField
from ballast.grouping.place import Place
from tests.reference.storm.queues import connection_load, queue_capacity, queue_load
from tests.reference.storm.shuffle import Bounds, Loads, RemoteLoad, Shuffle, spun

HERE = Place("n1", process=1, rack="r1")
PROCESS, NODE, RACK = HERE, Place("n1", process=2, rack="r1"), Place("n2", rack="r1")
ELSEWHERE = Place("n9", rack="r9")


def shuffle(*places: Place | None, source: Place = HERE, seed: int = 0) -> Shuffle:
    return Shuffle(source, range(len(places)), places, random=np.random.default_rng(seed))


def refreshed(shuffle: Shuffle, *loads: float) -> Shuffle:
    shuffle.refresh(Loads(local=dict(enumerate(loads))))
    return shuffle


def scopes(shuffle: Shuffle, rounds: Sequence[Sequence[float]]) -> list[Scope]:
    return [refreshed(shuffle, *loads).route.scope for loads in rounds]


def test_busy_targets_widen_the_scope_step_by_step_and_idle_ones_narrow_it() -> None:
    rounds = [(1, 1, 1), (1, 1, 1), (1, 1, 1), (0.2, 0.1, 0.1), (0.2, 0.1, 0.1), (0.2, 0.1, 0.1), (0.1, 0.1, 0.1)]
    assert scopes(shuffle(PROCESS, NODE, RACK), rounds) == [
        Scope.NODE,
        Scope.RACK,
        Scope.CLUSTER,
        Scope.RACK,
        Scope.NODE,
        Scope.NODE,  # the one in the process is at 0.2, which is not below it
        Scope.PROCESS,
    ]


def test_a_zone_is_a_scope_of_its_own_for_a_sender_that_has_one() -> None:
    here = Place("n1", process=1, rack="r1", zone="z1")
    places = [here, Place("n5", rack="r5", zone="z1"), Place("n9", rack="r9", zone="z9")]
    assert scopes(shuffle(*places, source=here), [(1, 1, 1)] * 4) == [
        Scope.NODE,
        Scope.RACK,
        Scope.ZONE,
        Scope.CLUSTER,
    ]


def test_without_zones_the_scope_after_the_rack_is_the_cluster() -> None:
    places = [HERE, Place("n5", rack="r5", zone="z1")]
    assert scopes(shuffle(*places), [(1, 1)] * 3) == [Scope.NODE, Scope.RACK, Scope.CLUSTER]


def test_the_bounds_are_those_that_were_given() -> None:
    bounds = Bounds(widen_above=0.5, narrow_below=0.4)
    given = Shuffle(HERE, [0, 1], [PROCESS, NODE], random=np.random.default_rng(0), bounds=bounds)
    assert scopes(given, [(0.5, 0.6), (0.6, 0.6), (0.39, 0.6)]) == [Scope.PROCESS, Scope.NODE, Scope.PROCESS]


def test_the_ring_and_the_weights_hold_whole_numbers() -> None:
    pair = shuffle(PROCESS, PROCESS)
    assert [str(each.dtype) for each in (pair.route.ring, pair.route.weights)] == ["int32", "int64"]
    assert str(pair.choose(3).dtype) == "int32"


def test_empty_scopes_are_skipped_at_once() -> None:
    assert shuffle(RACK, ELSEWHERE).route.scope == Scope.RACK
    assert shuffle(None).route.scope == Scope.CLUSTER


def test_a_scope_that_lost_its_targets_is_left() -> None:
    moving = shuffle(PROCESS, RACK)
    moving.targets_moved([ELSEWHERE, RACK])
    assert refreshed(moving, 0.5, 0.5).route.scope == Scope.RACK


def test_a_busy_target_loses_ten_a_refresh_and_gains_one() -> None:
    pair = shuffle(PROCESS, PROCESS)
    down = [refreshed(pair, 0.7, 0.0).route.weights[0] for _ in range(11)]
    assert down == [90, 80, 70, 60, 50, 40, 30, 20, 10, 0, 0]
    up = [tuple(refreshed(pair, 0.0, 0.7).route.weights) for _ in range(3)]
    assert up == [(1, 90), (2, 80), (3, 70)]


@pytest.mark.parametrize(("load", "weight"), [(0.15, 100), (0.1501, 90)])
def test_a_load_within_five_hundredths_of_the_least_is_no_busier(load: float, weight: int) -> None:
    assert refreshed(shuffle(PROCESS, PROCESS), 0.10, load).route.weights[1] == weight


def test_a_change_of_scope_forgets_the_weights() -> None:
    pair = shuffle(PROCESS, PROCESS, NODE)
    refreshed(pair, 0.7, 0.0, 0.0)
    refreshed(pair, 0.9, 0.9, 0.0)
    assert pair.route.scope == Scope.NODE
    assert pair.route.weights.tolist() == [90, 90, 100]


def test_shares_of_the_ring_follow_the_weights() -> None:
    pair = refreshed(shuffle(PROCESS, PROCESS), 0.7, 0.0)
    assert np.bincount(pair.choose(1000)) == pytest.approx([474, 526], abs=1)


def test_one_target_is_always_chosen() -> None:
    alone = shuffle(ELSEWHERE)
    assert [alone.choose_one() for _ in range(3)] == [0, 0, 0]
    assert alone.choose(3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("targets", [2, 200, 201, 1000])
def test_the_ring_has_five_slots_a_target_and_a_thousand_at_least(targets: int) -> None:
    assert shuffle(*[PROCESS] * targets).route.ring.size == max(1000, 5 * targets)


def test_without_any_load_everyone_stays_at_the_full_weight() -> None:
    pair = shuffle(PROCESS, PROCESS)
    pair.refresh(None)
    assert pair.route.weights.tolist() == [100, 100]


def test_no_target_at_all_is_an_error_that_says_what_to_give() -> None:
    with pytest.raises(InvalidField, match=r"^targets: .*give at least one: the tasks of the receiving component"):
        shuffle()


def test_the_ring_is_handed_out_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        shuffle(PROCESS, PROCESS).route.ring[0] = 1


def test_a_target_whose_load_is_no_number_loses_its_share_to_the_others() -> None:
    pair = shuffle(PROCESS, PROCESS)
    for _ in range(10):
        refreshed(pair, math.nan, 0.0)
    assert pair.route.weights.tolist() == [0, 100]
    assert set(pair.choose(1000)) == {1}


def test_where_nobody_in_scope_has_any_weight_all_targets_take_turns() -> None:
    ring = spun(np.array([0, 0, 50]), np.array([0, 1]), slots=1000, random=np.random.default_rng(0))
    assert np.bincount(ring).tolist() == [334, 333, 333]
    alone = spun(np.array([0]), np.array([0]), slots=1, random=np.random.default_rng(0))
    assert alone.tolist() == [0]


@pytest.mark.parametrize(("configured", "slots"), [(1, 1), (4, 4), (5, 8), (325, 512), (1024, 1024), (1025, 2048)])
def test_a_queue_has_the_next_power_of_two_in_slots(configured: int, slots: int) -> None:
    assert queue_capacity(configured) == slots


def test_a_queue_is_as_loaded_as_it_is_full() -> None:
    assert queue_load(waiting_messages=128, capacity_messages=512) == 0.25


@pytest.mark.parametrize(("pending", "load"), [(0, 0.0), (512, 0.5), (1024, 1.0), (4096, 1.0)])
def test_a_connection_is_full_from_1024_messages_on(pending: int, load: float) -> None:
    assert connection_load(pending) == load


def test_the_busier_of_queue_and_connection_counts() -> None:
    loads = Loads(remote={1: RemoteLoad(queue=0.2, connection=0.7), 2: RemoteLoad(queue=0.9, connection=0.7)})
    assert [loads.of(1), loads.of(2)] == [0.7, 0.9]


def test_what_is_measured_here_wins_over_a_report() -> None:
    assert Loads(local={1: 0.1}, remote={1: RemoteLoad(queue=0.9)}).of(1) == 0.1


def test_a_target_that_nobody_knows_counts_as_full() -> None:
    assert Loads(local={1: 0.1}).of(2) == 1.0


@pytest.mark.parametrize("figure", [math.nan, math.inf, -math.inf])
def test_a_figure_that_is_no_number_counts_as_full(figure: float) -> None:
    remote = {2: RemoteLoad(queue=figure, connection=0.2), 3: RemoteLoad(queue=0.2, connection=figure)}
    loads = Loads(local={1: figure}, remote=remote)
    assert [loads.of(target) for target in (1, 2, 3)] == [1.0, 1.0, 1.0]
