from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.errors import InvalidField
from ballast.spark.history.schema import DAY_MS, Day, Stretch, missing, stretches

FIRST = Day.parse("2026-02-27", field="from")


def test_a_day_is_from_midnight_to_midnight_utc() -> None:
    assert FIRST.start_ms == 1_772_150_400_000
    assert FIRST.end_ms == FIRST.plus(1).start_ms
    assert Day.of(FIRST.end_ms - 1) == FIRST
    assert str(FIRST.plus(2)) == "2026-03-01"


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", ""])
def test_what_is_no_day_is_refused(text: str) -> None:
    with pytest.raises(InvalidField, match=r"^from: .*such as 2026-11-21"):
        Day.parse(text, field="from")


@given(st.integers(-3, 5), st.integers(-DAY_MS, 6 * DAY_MS))
def test_days_are_collected_as_far_as_they_are_ripe(length: int, ripe: int) -> None:
    ripe_ms = FIRST.start_ms + ripe
    found = list(stretches(FIRST, FIRST.plus(length), ripe_ms=ripe_ms))
    assert [one.day for one in found] == [FIRST.plus(n) for n in range(len(found))]
    assert all(one.day.start_ms < one.through_ms <= min(ripe_ms, one.day.end_ms) for one in found)
    assert all(one.complete for one in found[:-1])
    covered = min(ripe_ms, FIRST.plus(length).end_ms)
    assert covered <= FIRST.start_ms or found[-1].through_ms == covered


@pytest.mark.parametrize(
    ("known", "lacking"),
    [
        ({}, [0, 1, 2]),
        ({0: FIRST.end_ms}, [1, 2]),
        ({0: FIRST.end_ms - 1}, [0, 1, 2]),
        ({0: FIRST.end_ms, 2: FIRST.plus(2).end_ms}, [1]),
        ({0: FIRST.end_ms, 1: FIRST.plus(1).start_ms + 1}, [1, 2]),
    ],
)
def test_a_history_lacks_the_days_that_it_does_not_know_to_their_end(known: dict[int, int], lacking: list[int]) -> None:
    wanted = stretches(FIRST, FIRST.plus(2), ripe_ms=FIRST.plus(3).start_ms)
    found = missing(wanted, {FIRST.plus(number): through_ms for number, through_ms in known.items()})
    assert [stretch.day for stretch in found] == [FIRST.plus(number) for number in lacking]


def test_a_stretch_is_complete_when_it_reaches_midnight() -> None:
    assert Stretch(FIRST, FIRST.end_ms).complete
    assert not Stretch(FIRST, FIRST.end_ms - 1).complete
