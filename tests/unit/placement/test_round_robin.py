from __future__ import annotations

from collections.abc import Sequence

import pytest

from ballast.placement.round_robin import RoundRobinSettings, Turn, choose

OURS = RoundRobinSettings()
THEIRS = RoundRobinSettings(by_count=True)


def chosen(settings: RoundRobinSettings, *candidates: Sequence[str]) -> list[str | None]:
    turn, made = Turn(), []
    for each in candidates:
        name, turn = choose(each, settings, turn)
        made.append(name)
    return made


@pytest.mark.parametrize("settings", [OURS, THEIRS])
def test_one_after_the_other(settings: RoundRobinSettings) -> None:
    assert chosen(settings, *["123"] * 6) == list("123123")


def test_a_node_that_joins_or_leaves_shifts_nobodys_turn() -> None:
    assert chosen(OURS, "123", "123", "124", "1234", "1234") == list("12412")
    assert chosen(OURS, "123", "13", "13", "123") == list("1312")


def test_as_pulsar_the_count_goes_on_over_another_list() -> None:
    assert chosen(THEIRS, *["123"] * 6, *["124"] * 6, *["24"] * 4) == list("1231231241242424")


def test_as_pulsar_reordering_is_not_noticed() -> None:
    assert chosen(THEIRS, "123", "321", "321") == list("123")


@pytest.mark.parametrize("settings", [OURS, THEIRS])
def test_without_candidates_nobody_loses_a_turn(settings: RoundRobinSettings) -> None:
    assert chosen(settings, "12", "", "12") == ["1", None, "2"]


def test_the_count_starts_again_at_the_largest_number() -> None:
    _, turn = choose("12", THEIRS, Turn("1", 2**31 - 1, ("1", "2")))
    assert turn.count == 0
