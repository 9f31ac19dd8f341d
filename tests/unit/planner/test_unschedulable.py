from dataclasses import replace
from typing import Any

import pytest

from ballast.model import Attempts, Executor, Memory, Phase, Pin, Reason
from ballast.planner.release import given_up, unschedulable
from tests.builders import NOW, a_snapshot, an_executor

SINCE = NOW - 20.0


def waiting(name: str = "e1", **changes: Any) -> Executor:
    """Pinned, and not schedulable for as long as it may be."""
    stuck = {"phase": Phase.PENDING, "node": None, "pinned": True, "unschedulable_since": SINCE}
    return an_executor(name, **{**stuck, **changes})


def found(*executors: Executor, memory: Memory | None = None) -> tuple[list[str], tuple[Attempts, ...]]:
    deleted, after = unschedulable(a_snapshot(executors=executors), memory or Memory(), NOW)
    return [placement.executor for placement in deleted], after.attempts


def tried(count: int, ago: float, component: str = "ingest") -> Attempts:
    return Attempts("team/clicks", component, count=count, last_at=NOW - ago)


def test_who_waits_too_long_where_it_was_tied_is_to_be_deleted_and_counted_once_a_component() -> None:
    deleted, attempts = found(waiting("e2"), waiting("e1"))
    assert deleted == ["team/e1", "team/e2"]
    assert attempts == (tried(1, 0.0),)


def test_it_is_deleted_with_a_reason() -> None:
    ((placement,), _) = unschedulable(a_snapshot(executors=(waiting(),)), Memory(), NOW)
    assert (placement.node, placement.pin, placement.reason) == (None, Pin.NONE, Reason.NO_ROOM)


@pytest.mark.parametrize(
    "changes",
    [
        {"pinned": False},
        {"enforced": False},
        {"phase": Phase.RUNNING},
        {"node": "n1"},
        {"unschedulable_since": None},
        {"unschedulable_since": SINCE + 1},
    ],
)
def test_others_are_left_alone(changes: dict[str, Any]) -> None:
    assert found(waiting(**changes)) == ([], ())


def test_one_that_is_seen_again_on_its_way_out_is_the_same_attempt() -> None:
    assert found(waiting(), memory=Memory(attempts=(tried(1, 19.0),)))[1] == (tried(1, 19.0),)
    assert found(waiting(), memory=Memory(attempts=(tried(1, 20.0),)))[1] == (tried(2, 0.0),)


def test_attempts_of_long_ago_are_forgotten() -> None:
    memory = Memory(attempts=(tried(3, 900.0), tried(2, 899.0, "report")))
    assert found(memory=memory)[1] == (tried(2, 899.0, "report"),)
    assert found(waiting(), memory=memory)[1][0] == tried(1, 0.0)


def test_after_three_attempts_a_component_is_given_up_for_a_while() -> None:
    memory = Memory(attempts=(tried(3, 899.0), tried(2, 0.0, "report")))
    assert given_up(memory, NOW) == {("team/clicks", "ingest")}
    assert given_up(replace(memory, attempts=(tried(4, 900.0),)), NOW) == frozenset()
