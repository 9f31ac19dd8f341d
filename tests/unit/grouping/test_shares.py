from __future__ import annotations

import math

import numpy as np
import pytest

from ballast.errors import InvalidField
from ballast.grouping.place import Place
from ballast.grouping.shares import Flow, Measured, Sender, projected, turns
from benchmarks.routed.loop import OURS, ROUND_ROBIN, RULES, STORM, Case, View, run

HERE = Place("n1", zone="a")
NEAR, FAR = Place("n2", zone="a"), Place("n3", zone="b")


def sender(*places: Place | None) -> Sender:
    return Sender(HERE, range(len(places)), places, random=np.random.default_rng(1))


def after(sender: Sender, *loads: float, age: float = 0.0) -> list[float]:
    sender.measured(Measured(dict(enumerate(loads)), age), seconds=1.0)
    return [round(share, 4) for share in sender.shares.tolist()]


def flowing(sender: Sender, senders: dict[str, float], flow: Flow, *, seconds: float = 1.0) -> list[float]:
    sender.senders_are(senders)
    sender.measured(Measured(flow=flow), seconds=seconds)
    return [round(share, 4) for share in sender.shares.tolist()]


def test_only_the_nearest_targets_get_messages_at_first() -> None:
    assert sender(NEAR, FAR, NEAR).shares.tolist() == [0.5, 0.0, 0.5]


def test_equal_loads_leave_equal_shares_however_high_they_are() -> None:
    assert after(sender(NEAR, NEAR), 0.9, 0.9) == [0.5, 0.5]


def test_what_near_targets_lose_goes_farther_and_comes_back_within_two_minutes() -> None:
    one = sender(NEAR, FAR)
    assert after(one, 1.0, 0.0)[1] >= 0.4
    for _ in range(120):
        shares = after(one, 0.0, 0.0)
    assert shares == [1.0, 0.0]


def test_messages_that_can_wait_stay_near_as_far_as_senders_leave_room() -> None:
    """All senders of one zone gave the targets there everything: up to 405 times as much waited as with round robin."""
    assert flowing(sender(NEAR, FAR), {"a": 1, "b": 1}, Flow()) == [1.0, 0.0]
    assert flowing(sender(NEAR, FAR), {"a": 3, "b": 1}, Flow()) == pytest.approx([2 / 3, 1 / 3], abs=1e-4)
    assert flowing(sender(NEAR, FAR), {"a": 4}, Flow()) == [0.5, 0.5]


def test_messages_that_can_wait_go_everywhere_while_it_is_not_known_who_sends() -> None:
    assert flowing(sender(NEAR, FAR, FAR, FAR), {}, Flow()) == [0.25] * 4
    assert flowing(sender(NEAR, FAR), {"b": 2}, Flow()) == [0.5, 0.5]


def test_a_target_gets_no_more_than_it_can_take_and_the_others_get_the_rest() -> None:
    assert flowing(sender(NEAR, FAR), {"a": 1, "b": 1}, Flow(can={0: 0.3})) == [0.6, 0.4]
    assert flowing(sender(NEAR, FAR), {"a": 1, "b": 1}, Flow(can={0: 0.0})) == [0.0, 1.0]


def test_near_targets_that_are_idle_half_of_the_time_get_more_than_an_even_share() -> None:
    assert flowing(sender(NEAR, FAR, FAR, FAR), {"a": 1}, Flow(easily=0.4)) == [0.4, 0.2, 0.2, 0.2]
    assert flowing(sender(NEAR, FAR, FAR, FAR), {"a": 1}, Flow(easily=3.0)) == [1.0, 0.0, 0.0, 0.0]
    assert flowing(sender(NEAR, FAR), {"a": 1}, Flow(easily=3.0, can={0: 0.0})) == [0.0, 1.0]


def test_racks_stand_for_zones_where_targets_are_known_by_rack() -> None:
    places = [Place("n2", rack="r1"), Place("n3", rack="r2")]
    one = Sender(Place("n1", rack="r1", zone="a"), range(2), places, random=np.random.default_rng(1))
    assert flowing(one, {"r1": 1, "r2": 1}, Flow()) == [1.0, 0.0]


def test_targets_that_get_more_than_was_meant_for_them_are_sent_less() -> None:
    """Senders of zone a send three times as much as those of zone b, though there are as many."""
    one = sender(NEAR, FAR)
    for _ in range(300):
        near = one.shares[0]
        shares = flowing(one, {"a": 1, "b": 1}, Flow(got={0: 0.75 * near, 1: 1 - 0.75 * near}, messages=10_000))
    assert shares == pytest.approx([2 / 3, 1 / 3], abs=0.02)


def test_few_messages_tell_little_of_what_arrives() -> None:
    few, many = sender(NEAR, FAR), sender(NEAR, FAR)
    for one, messages in ((few, 10), (many, 10_000)):
        for _ in range(10):
            flowing(one, {"a": 1, "b": 1}, Flow(got={0: 0.75, 1: 0.25}, messages=messages))
    assert few.shares[0] > 0.95 > many.shares[0]


def test_shares_that_are_projected_add_up_and_owe_nothing() -> None:
    assert projected(np.array([0.5, 0.7])).tolist() == pytest.approx([0.4, 0.6])
    assert projected(np.array([2.0, 0.1])).tolist() == [1.0, 0.0]


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


@pytest.mark.parametrize("senders", ["", "a", "abc", "aaaaaaabbc"])
@pytest.mark.parametrize("view", VIEWS)
def test_no_more_waits_than_with_round_robin_though_lag_is_30_s_old(view: View, senders: str) -> None:
    """`python -m benchmarks routing-loop` has the other loads, ages, speeds and numbers of targets."""
    for busy in (0.8, 0.98):
        case = Case(6, busy, 30.0, view, senders=senders, seconds=200.0)
        assert run(case, RULES[OURS]).backlog <= 1.2 * run(case, RULES[ROUND_ROBIN]).backlog


@pytest.mark.parametrize("told", [None, ""])
def test_less_waits_than_with_round_robin_where_readers_differ(told: str | None) -> None:
    case = Case(6, 0.98, 30.0, "batches", speeds=(1.0, 0.6, 1.4), senders="a", told=told, seconds=300.0)
    assert run(case, RULES[OURS]).backlog <= run(case, RULES[ROUND_ROBIN]).backlog


def test_storm_s_rule_herds_where_commits_are_ten_seconds_old() -> None:
    case = Case(8, 0.9, 10.0, seconds=300.0)
    assert run(case, RULES[STORM]).backlog > 5.0 * run(case, RULES[ROUND_ROBIN]).backlog


@pytest.mark.parametrize(("senders", "most"), [("abc", 1.0), ("a", 1 / 3), ("aaaaaaabbc", 1 / 3 + 0.2 + 0.1)])
def test_as_much_stays_near_at_80_percent_as_can_at_an_even_load(senders: str, most: float) -> None:
    case = Case(6, 0.8, 10.0, senders=senders, seconds=200.0)
    assert run(case, RULES[OURS]).near == pytest.approx(most, rel=0.02)
