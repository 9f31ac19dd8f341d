from __future__ import annotations

import pytest

from ballast.placement.stickiness import Apart, even_shares, open_slots, settled

SIX = {f"x{number}": "x" for number in range(6)}
PAIRWISE = dict(zip(SIX, "AABBCC", strict=True))


@pytest.mark.parametrize(
    ("count", "held", "shares"),
    [
        (6, {"A": 2, "B": 2, "C": 2}, {"A": 2, "B": 2, "C": 2}),
        (6, {"A": 2, "B": 2, "C": 2, "D": 0}, {"A": 2, "B": 2, "C": 1, "D": 1}),
        (6, {"A": 0, "B": 3, "C": 3, "D": 0}, {"A": 1, "B": 2, "C": 2, "D": 1}),
        (4, {"A": 2, "B": 2}, {"A": 2, "B": 2}),
        (1, {"A": 0, "B": 1}, {"A": 0, "B": 1}),
        (0, {"A": 2}, {"A": 0}),
        (3, {}, {}),
    ],
)
def test_shares_are_even_and_leave_one_more_where_it_is(
    count: int, held: dict[str, int], shares: dict[str, int]
) -> None:
    assert even_shares(count, held) == shares


def test_a_fourth_node_takes_one_of_six_executors() -> None:
    limits = even_shares(6, {"A": 2, "B": 2, "C": 2, "D": 0})
    ours = settled(SIX, PAIRWISE, limits)
    assert ours.missing == ()
    assert len(ours.moved(PAIRWISE)) == 1


def test_everyone_returns_when_nothing_changed() -> None:
    assert settled(SIX, PAIRWISE, {"A": 2, "B": 2, "C": 2}).nodes == PAIRWISE


def test_those_of_a_node_that_is_gone_are_spread_over_the_others() -> None:
    after = settled(SIX, PAIRWISE, {"A": 3, "B": 3})
    assert after.moved(PAIRWISE) == ("x4", "x5")
    assert sorted(after.nodes.values()) == ["A", "A", "A", "B", "B", "B"]


def test_those_that_were_nowhere_go_to_the_emptiest_node() -> None:
    assert settled({"x": "c", "y": "c"}, {"x": "A"}, {"A": 3, "B": 3}).nodes == {"x": "A", "y": "B"}


def test_who_finds_no_room_is_missing() -> None:
    assert settled(SIX, {}, {"A": 2, "B": 3}).missing == ("x5",)


RACKS = {"A": "r1", "B": "r1", "C": "r2"}
STANDBY = Apart(frozenset({"live", "standby"}), places=RACKS)


def test_a_standby_goes_to_another_rack() -> None:
    after = settled({"l": "live", "s": "standby"}, {"l": "A"}, {"A": 5, "B": 5, "C": 1}, apart=[STANDBY])
    assert after.nodes == {"l": "A", "s": "C"}


def test_a_standby_doesnt_return_beside_what_it_stands_by_for() -> None:
    after = settled({"l": "live", "s": "standby"}, {"l": "A", "s": "B"}, {"A": 5, "B": 5, "C": 1}, apart=[STANDBY])
    assert after.nodes == {"l": "A", "s": "C"}
    assert after.moved({"l": "A", "s": "B"}) == ("s",)


def test_executors_that_stay_where_they_are_count_too() -> None:
    after = settled({"s": "standby"}, {}, {"A": 5, "B": 5}, apart=[STANDBY], others=[("live", "B")])
    assert after.missing == ("s",)


def test_components_without_a_rule_and_nodes_without_a_place_are_free() -> None:
    after = settled({"s": "standby", "o": "other"}, {}, {"A": 1, "D": 1}, apart=[STANDBY], others=[("live", "B")])
    assert after.nodes == {"s": "D", "o": "A"}


def test_a_component_keeps_to_its_places_so_that_its_standby_finds_one() -> None:
    components = {f"l{number}": "live" for number in range(3)} | {f"s{number}": "standby" for number in range(3)}
    each_node = Apart(frozenset({"live", "standby"}), places={"A": "A", "C": "C"})
    assert settled(components, {}, {"A": 5, "C": 5}, apart=[each_node]).missing == ()


def test_slots_are_open_where_fewer_run_than_before() -> None:
    assert open_slots({"A": 3, "B": 1, "C": 2}, {"A": 1, "B": 2}) == {"A": 2, "C": 2}
