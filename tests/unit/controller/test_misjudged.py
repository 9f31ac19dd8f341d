"""How long it is remembered that a namespace's nominations came to nothing."""

from __future__ import annotations

from dataclasses import dataclass

from ballast.controller.misjudged import Misjudged
from ballast.model import Phase
from tests.builders import NOW, a_node, a_snapshot, an_executor


@dataclass
class Time:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


STUCK = a_snapshot(
    a_node("a"),
    executors=(an_executor("e-1", phase=Phase.PENDING, node=None, nominated="a", unschedulable_since=NOW - 1.0),),
)
QUIET = a_snapshot(a_node("a"))


def remembered_seconds(misjudged: Misjudged, time: Time) -> float:
    """From when it happens until it counts no more."""
    assert misjudged.remembered(STUCK) == ("team",)
    began = time.now
    while misjudged.remembered(QUIET):
        time.now += 10.0
    return time.now - began


def test_a_namespace_is_remembered_for_two_minutes_and_for_twice_as_long_each_time_that_it_happens_again() -> None:
    """A user with many namespaces would keep the room of all nodes by one after the other, without end."""
    time = Time()
    misjudged = Misjudged(time)
    found = [remembered_seconds(misjudged, time) for _ in range(5)]
    assert found == [120.0, 240.0, 480.0, 960.0, 960.0]


def test_passes_that_see_the_same_executor_make_it_no_longer() -> None:
    time = Time()
    misjudged = Misjudged(time)
    for _ in range(5):
        misjudged.remembered(STUCK)
        time.now += 1.0
    assert remembered_seconds(misjudged, time) == 120.0


def test_it_is_forgotten_after_as_long_again() -> None:
    time = Time()
    misjudged = Misjudged(time)
    remembered_seconds(misjudged, time)
    time.now += 120.0
    assert remembered_seconds(misjudged, time) == 120.0
