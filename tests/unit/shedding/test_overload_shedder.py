from __future__ import annotations

import pytest

from ballast.model.shedders import OverloadSettings
from ballast.shedding.pulsar_shedders import overload_shedder
from tests.unit.shedding.builders import MIB, busy, pool


@pytest.mark.parametrize(
    ("score", "leaving"),
    [(99.9, ["a/9", "a/8"]), (85.0, ["a/9"]), (84.9, [])],
)
def test_the_largest_leave_until_the_node_is_below_the_threshold(score: float, leaving: list[str]) -> None:
    made = overload_shedder(pool(busy("a", score, volumes=[i * 2 * MIB for i in range(1, 11)])), OverloadSettings())
    assert [suggestion.executor for suggestion in made] == leaving


def test_no_destination_is_named() -> None:
    (made,) = overload_shedder(pool(busy("a", 90, volumes=[MIB, MIB])), OverloadSettings())
    assert (made.source, made.target, made.hot_score, made.difference) == ("a", None, 90, 5)


def test_a_sole_executor_stays() -> None:
    assert overload_shedder(pool(busy("a", 99, volumes=[MIB])), OverloadSettings()) == ()


def test_a_node_without_traffic_keeps_its_executors_unless_asked_to_do_as_pulsar() -> None:
    idle = pool(busy("a", 99, volumes=[0.0, 0.0]))
    assert overload_shedder(idle, OverloadSettings()) == ()
    assert len(overload_shedder(idle, OverloadSettings(idle_too=True))) == 1
