from __future__ import annotations

from dataclasses import dataclass

import pytest

from ballast.model import Memory, PlacementPolicy
from ballast.placement.strategies import PlacementState
from ballast.planner.strategy_state import observed, restored, stored
from tests.builders import NOW, a_node, a_policy, a_snapshot, an_executor


@pytest.mark.parametrize("strategy", ["LeastLongTermRate", "LeastResourceUsage"])
@pytest.mark.parametrize(("since_seconds", "again"), [(0.0, False), (119.0, False), (120.0, True), (-7200.0, True)])
def test_figures_enter_the_averages_once_a_window_even_when_the_clock_is_set_back(
    strategy: str, since_seconds: float, again: bool
) -> None:
    policy = a_policy(placement=PlacementPolicy(strategy=strategy), window_seconds=120.0, interval_seconds=60.0)
    snapshot = a_snapshot(a_node("n1"), a_node("n2"), executors=(an_executor("e-1", node="n1", cpu=0.5),))
    before = PlacementState(observed_at=NOW - since_seconds)
    after = observed(before, snapshot, policy, measured={"n1": 50.0, "n2": 20.0}, now=NOW)
    assert (after != before, after.observed_at) == (again, NOW if again else before.observed_at)


@dataclass(frozen=True, slots=True)
class Hits:
    by_node: dict[str, int]


def test_a_strategy_finds_again_what_it_left() -> None:
    memory = stored(stored(Memory(), "Zebra", Hits({"a": 1})), "Ant", Hits({"b": 2}))
    assert restored(memory, "Zebra", Hits) == Hits({"a": 1})
    assert restored(memory, "Ant", Hits) == Hits({"b": 2})
    assert [name for name, _ in memory.shedding] == ["Ant", "Zebra"]


def test_what_is_left_later_takes_the_place_of_what_was_there() -> None:
    memory = stored(stored(Memory(), "Ant", Hits({"a": 1})), "Ant", Hits({}))
    assert restored(memory, "Ant", Hits) == Hits({})
    assert len(memory.shedding) == 1


@pytest.mark.parametrize("text", ["not json", '{"by_node": {"a": "many"}}', "{}"])
def test_what_this_version_cant_read_is_as_good_as_nothing(text: str) -> None:
    assert restored(Memory(shedding=(("Ant", text),)), "Ant", Hits) is None


def test_nothing_was_left_by_another() -> None:
    assert restored(stored(Memory(), "Ant", Hits({})), "Zebra", Hits) is None
