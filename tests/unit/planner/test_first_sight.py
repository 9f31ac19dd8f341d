"""Sets that grow after their first executors were released: how long each waits, and where all of them are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.model import Component, Topology
from tests.arrivals import ENFORCED, Arrival, Arrivals, Departure, Outcome, batches, doubling, pool

ROOM = {"a": 60, "b": 120, "c": 112}
"""Of a real report: a set of 100 had 60 executors in one zone and 40 in another."""
AT_MOST_SECONDS = 0.5
"""That one waits, as far as it is planned: the debounce and the time in which changes are collected."""


def declared(size: int) -> tuple[Topology, ...]:
    return (Topology("team/app", "team", "app", (Component("work", expected=size),)),)


def in_one_zone_at_once(found: Outcome) -> bool:
    return found.together() and max(found.waits) <= AT_MOST_SECONDS


def test_a_set_that_comes_in_batches_is_in_one_zone_and_none_waits_for_the_others() -> None:
    assert in_one_zone_at_once(Arrivals(pool(**ROOM)).run(batches(100, size=5)))


def test_so_is_one_whose_size_is_declared() -> None:
    found = Arrivals(pool(**ROOM), topologies=declared(100)).run(batches(100, size=5))
    assert in_one_zone_at_once(found)
    assert set(found.homes["app"]) == {"c"}, "the smallest that holds them"


def test_so_is_one_that_says_its_size_itself() -> None:
    found = Arrivals(pool(**ROOM)).run(batches(100, size=5, expected=100))
    assert in_one_zone_at_once(found)
    assert set(found.homes["app"]) == {"c"}


def test_so_is_one_that_dynamic_allocation_enlarges() -> None:
    assert in_one_zone_at_once(Arrivals(pool(a=8, b=40, c=24)).run(doubling(31)))


def test_so_is_one_that_is_scaled_to_nothing_and_up_again() -> None:
    again = [replace(each, at_seconds=each.at_seconds + 70.0) for each in doubling(16)]
    found = Arrivals(pool(a=8, b=40, c=24)).run([*doubling(16), Departure(60.0), *again])
    assert in_one_zone_at_once(found)


def test_two_that_grow_at_the_same_time_leave_each_other_room() -> None:
    both = [*batches(50, size=5, application="one", expected=50), *batches(50, size=5, application="two", expected=50)]
    found = Arrivals(pool(a=60, b=60, c=56)).run(both)
    assert found.together("one")
    assert found.together("two")
    assert found.homes["one"] != found.homes["two"]


def test_so_do_two_of_which_nothing_is_known() -> None:
    both = [*batches(50, size=5, application="one"), *batches(50, size=5, application="two")]
    found = Arrivals(pool(a=60, b=60, c=56)).run(both)
    assert found.together("one")
    assert found.together("two")


def test_a_set_that_no_zone_holds_fills_one_and_then_the_next() -> None:
    found = Arrivals(pool(a=40, b=48)).run(batches(80, size=5, expected=80))
    assert found.homes["app"] == {"b": 48, "a": 32}
    assert max(found.waits) <= AT_MOST_SECONDS


def test_executors_that_find_no_room_are_released_all_the_same() -> None:
    found = Arrivals(pool(a=8)).run(batches(12, size=4), until_seconds=20.0)
    assert max(found.waits) <= AT_MOST_SECONDS
    assert found.homes["app"] == {"a": 8, "": 4}


def test_a_user_may_have_sets_gathered_for_longer() -> None:
    patient = replace(ENFORCED, placement=replace(ENFORCED.placement, debounce_seconds=2.0))
    found = Arrivals(pool(**ROOM), patient).run(batches(20, size=5))
    assert max(found.waits) == pytest.approx(2.0, abs=0.2)
    assert found.together()


def test_one_executor_alone_is_released_too() -> None:
    assert in_one_zone_at_once(Arrivals(pool(**ROOM)).run([Arrival(0.05, 1)]))
