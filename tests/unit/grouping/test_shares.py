from __future__ import annotations

import math

import numpy as np
import pytest

from ballast.errors import InvalidField
from ballast.grouping.place import Place
from ballast.grouping.shares import Measured, Sender, projected, turns
from benchmarks.routed.loop import OURS, ROUND_ROBIN, RULES, STORM, Case, View, run

HERE = Place("n1", zone="a")
NEAR, FAR = Place("n2", zone="a"), Place("n3", zone="b")


def sender(*places: Place | None) -> Sender:
    return Sender(HERE, range(len(places)), places, random=np.random.default_rng(1))


def after(sender: Sender, *loads: float, age: float = 0.0, fill: float = math.inf) -> list[float]:
    sender.measured(Measured(dict(enumerate(loads)), age, fill), seconds=1.0)
    return [round(share, 4) for share in sender.shares.tolist()]


def test_only_the_nearest_targets_get_messages_at_first() -> None:
    assert sender(NEAR, FAR, NEAR).shares.tolist() == [0.5, 0.0, 0.5]


def test_a_step_is_smaller_the_older_the_load_and_the_sooner_a_target_is_full() -> None:
    lost = [0.5 - after(sender(NEAR, NEAR), 0.5, 0.0, age=age, fill=20.0)[0] for age in (10.0, 20.0, 40.0)]
    assert lost[0] > lost[1] > lost[2] > 0.0
    assert lost[0] == pytest.approx(lost[1] * 2, rel=0.15)


def test_a_load_whose_growth_is_not_known_moves_nothing() -> None:
    assert after(sender(NEAR, NEAR), 1.0, 0.0, fill=0.0) == [0.5, 0.5]


def test_equal_loads_leave_equal_shares_however_high_they_are() -> None:
    assert after(sender(NEAR, NEAR), 0.9, 0.9) == [0.5, 0.5]


def test_what_near_targets_lose_goes_farther_and_comes_back_within_two_minutes() -> None:
    one = sender(NEAR, FAR)
    assert after(one, 1.0, 0.0)[1] >= 0.4
    for _ in range(120):
        shares = after(one, 0.0, 0.0)
    assert shares == [1.0, 0.0]


def test_a_target_gets_no_more_than_it_can_take_and_the_others_get_the_rest() -> None:
    one = sender(NEAR, FAR)
    one.measured(Measured({0: 0.1, 1: 0.0}, limits={0: 0.6}), seconds=1.0)
    assert one.shares.tolist() == pytest.approx([0.6, 0.4])


def test_targets_that_can_all_take_no_more_share_what_there_is() -> None:
    assert projected(np.array([0.5, 0.5]), np.array([0.2, 0.6])).tolist() == pytest.approx([0.25, 0.75])
    assert projected(np.array([0.5, 0.5]), np.zeros(2)).tolist() == [0.5, 0.5]


def test_a_load_that_is_not_known_or_no_number_counts_as_full() -> None:
    known = Measured({0: 0.2, 1: math.nan, 2: -1.0, 3: 7.0})
    assert [known.of(target) for target in range(5)] == [0.2, 1.0, 0.0, 1.0, 1.0]


def test_without_any_load_the_nearest_targets_get_all() -> None:
    one = sender(NEAR, FAR)
    after(one, 1.0, 0.0)
    one.measured(None, seconds=1.0)
    assert one.shares.tolist() == [1.0, 0.0]


def test_a_new_target_gets_what_those_in_its_scope_get() -> None:
    one = sender(NEAR, NEAR, FAR)
    one.targets_are([0, 1, 2, 3], [NEAR, NEAR, FAR, NEAR])
    assert one.shares.tolist() == pytest.approx([1 / 3, 1 / 3, 0.0, 1 / 3])


def test_when_no_near_target_is_left_the_next_ones_get_all_at_once() -> None:
    one = sender(NEAR, FAR)
    one.targets_are([1], [FAR])
    assert one.shares.tolist() == [1.0]


def test_no_target_at_all_is_an_error() -> None:
    with pytest.raises(InvalidField, match="targets"):
        sender()


def test_turns_are_evenly_spaced() -> None:
    order = turns(np.array([2, 4]), np.random.default_rng(0)).tolist()
    assert sorted(order) == [0, 0, 1, 1, 1, 1]
    assert "000" not in "".join(map(str, order))
    assert all(order[at : at + 3].count(0) <= 1 for at in range(4))


def test_shares_are_exact_over_refreshes_though_turns_are_whole() -> None:
    one = sender(*[NEAR] * 3)
    counts = np.zeros(3)
    for _ in range(200):
        after(one, 0.0, 0.0, 0.0)
        counts += np.bincount(one.choose(1000), minlength=3)
    assert counts / counts.sum() == pytest.approx([1 / 3] * 3, abs=1e-3)


VIEWS: tuple[View, ...] = ("commits", "late", "batches")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("speeds", [(1.0,), (1.0, 0.6, 1.4)])
def test_no_more_waits_than_with_round_robin_at_98_percent_though_lag_is_30_s_old(
    view: View, speeds: tuple[float, ...]
) -> None:
    """`python -m benchmarks routing-loop` has the other loads, ages and numbers of targets."""
    case = Case(4, 0.98, 30.0, view, speeds=speeds, seconds=300.0)
    assert run(case, RULES[OURS]).backlog <= 1.2 * run(case, RULES[ROUND_ROBIN]).backlog


def test_storm_s_rule_herds_where_commits_are_ten_seconds_old() -> None:
    case = Case(8, 0.9, 10.0, seconds=300.0)
    assert run(case, RULES[STORM]).backlog > 5.0 * run(case, RULES[ROUND_ROBIN]).backlog


def test_records_stay_in_the_own_zone_at_80_percent_though_readers_differ() -> None:
    case = Case(6, 0.8, 10.0, speeds=(1.0, 0.9, 1.1), senders="abc", seconds=300.0)
    assert run(case, RULES[OURS]).near >= 0.9 * run(case, RULES[STORM]).near
