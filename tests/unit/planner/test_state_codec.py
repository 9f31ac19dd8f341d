from dataclasses import dataclass

import pytest

from ballast.model import Memory
from ballast.planner.strategy_state import restored, stored


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
