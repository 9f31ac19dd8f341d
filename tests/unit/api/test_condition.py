from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ballast.api.condition import Condition, ConditionStatus, drop_condition, find_condition, set_condition

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def ready(before: tuple[Condition, ...] = (), **changes: Any) -> tuple[Condition, ...]:
    said: dict[str, Any] = {
        "type_": "Ready",
        "status": ConditionStatus.TRUE,
        "reason": "Placed",
        "message": "",
        "observed_generation": 1,
        "now": NOON,
    }
    return set_condition(before, **(said | changes))


def test_a_new_condition_begins_now() -> None:
    (condition,) = ready()

    assert (condition.type, condition.status, condition.last_transition_time) == ("Ready", "True", NOON)


def test_the_time_stays_while_the_status_stays() -> None:
    (condition,) = ready(ready(), reason="Moved", message="5 of 6", observed_generation=2, now=LATER)

    assert condition.last_transition_time == NOON
    assert (condition.reason, condition.message, condition.observed_generation) == ("Moved", "5 of 6", 2)


def test_the_time_moves_when_the_status_flips() -> None:
    (condition,) = ready(ready(), status=ConditionStatus.FALSE, now=LATER)

    assert condition.last_transition_time == LATER


def test_the_same_said_twice_changes_nothing() -> None:
    assert ready(ready(), now=LATER) == ready()


def test_the_time_has_whole_seconds_as_the_server_keeps_them() -> None:
    (condition,) = ready(now=NOON.replace(microsecond=123456))

    assert condition.to_dict()["lastTransitionTime"] == "2026-01-01T12:00:00Z"


def test_other_conditions_and_their_order_stay() -> None:
    both = ready(ready(type_="Stalled"))

    changed = ready(both, type_="Stalled", status=ConditionStatus.FALSE, now=LATER)

    assert [condition.type for condition in changed] == ["Stalled", "Ready"]
    assert changed[1] == both[1]


def test_a_condition_can_be_dropped() -> None:
    assert find_condition(drop_condition(ready(ready(type_="Stalled")), "Stalled"), "Stalled") is None


def test_whether_something_holds_may_be_unknown() -> None:
    assert [ConditionStatus.of(holds) for holds in (True, False, None)] == ["True", "False", "Unknown"]
