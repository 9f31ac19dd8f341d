from __future__ import annotations

import numpy as np
import pytest

from ballast.grouping.fair import NO_ZONE, arriving, fair, leveled


def shares(own: str, senders: dict[str, float], zones: str, room: list[float] | None = None) -> list[float]:
    each = np.array(room or [1 / len(zones)] * len(zones))
    return [round(share, 4) for share in fair(own, senders, list(zones), each).tolist()]


def test_what_a_zone_can_t_keep_goes_where_others_leave_room() -> None:
    senders = {"a": 6.0, "b": 3.0, "c": 1.0}
    assert shares("a", senders, "abc") == [0.5556, 0.0556, 0.3889]
    assert shares("b", senders, "abc") == [0.0, 1.0, 0.0]
    assert shares("c", senders, "abc") == [0.0, 0.0, 1.0]
    assert arriving(senders, list("abc"), np.full(3, 1 / 3)).tolist() == pytest.approx([1 / 3] * 3)


def test_senders_without_a_zone_and_in_zones_without_targets_fill_what_is_left() -> None:
    assert shares(NO_ZONE, {NO_ZONE: 1, "a": 1}, "ab") == [0.0, 1.0]
    assert shares("z", {"z": 1, "b": 1}, "ab") == [1.0, 0.0]


def test_a_zone_that_was_not_counted_sends_evenly() -> None:
    assert shares("b", {"a": 1}, "ab") == [0.5, 0.5]
    assert shares("a", {}, "ab") == [0.5, 0.5]


def test_targets_whose_place_is_not_known_are_in_no_sender_s_zone() -> None:
    assert fair(NO_ZONE, {NO_ZONE: 1.0}, [None, "a"], np.full(2, 0.5)).tolist() == [0.5, 0.5]


def test_targets_take_no_more_than_they_can_and_the_others_share_the_rest() -> None:
    even = np.full(4, 0.25)
    assert leveled(even, np.array([0.1, 1.0, 0.28, 1.0])).tolist() == pytest.approx([0.1, 0.31, 0.28, 0.31])
    assert leveled(even, np.array([0.0, 0.2, 0.1, 0.1])).tolist() == pytest.approx([0.0, 0.5, 0.25, 0.25])
    assert leveled(even, np.zeros(4)).tolist() == even.tolist()


def test_a_target_without_weight_gets_something_only_if_the_others_can_t_take_all() -> None:
    assert leveled(np.array([1.0, 0.0]), np.ones(2)).tolist() == [1.0, 0.0]
    assert leveled(np.array([1.0, 0.0]), np.array([0.4, 1.0])).sum() == pytest.approx(1.0)
