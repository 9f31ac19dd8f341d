"""Junk floods: thousands of topologies keep no executor at its gate, and no other namespace from its statuses."""

from __future__ import annotations

from ballast.controller.status_turns import LEAST, StatusTurns

MANY = [f"junk/t{number}" for number in range(5)]


def test_all_have_their_turn_as_long_as_no_executor_is_to_be_released() -> None:
    turns = StatusTurns()
    assert set(turns.take(MANY, lambda: False)) == set(MANY)
    assert turns.postponed == frozenset()


def test_once_executors_are_to_be_released_few_have_their_turn_and_the_others_come_next() -> None:
    turns = StatusTurns()
    first = list(turns.take(MANY, lambda: True))
    assert (len(first), turns.postponed) == (LEAST, frozenset(MANY) - set(first))
    assert set(turns.take(MANY, lambda: True)) >= frozenset(MANY) - set(first)


def test_each_namespace_has_its_turn() -> None:
    assert list(StatusTurns().take([*MANY, "web/t0"], lambda: True)) == ["junk/t0", "web/t0", "junk/t1"]


def test_what_is_gone_is_forgotten() -> None:
    turns = StatusTurns()
    list(turns.take([*MANY, "web/t0"], lambda: False))
    turns.begin({"web/t0"})
    assert len(turns) == 2
