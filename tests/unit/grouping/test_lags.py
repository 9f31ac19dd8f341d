from __future__ import annotations

from collections.abc import Callable

import pytest

from ballast.grouping.lags import LagHistory, Offsets
from ballast.grouping.shares import Measured

FULL = 1000
PER_SECOND = 100


def read(seconds: int, committed: Callable[[int, int], float], *, parts: int = 2) -> list[Measured]:
    """A reading each second; `committed` gives the offset of a partition at a second. Each gets 100 records."""
    history, found = LagHistory(), []
    for now in range(seconds):
        ends = dict.fromkeys(range(parts), (now + 1) * PER_SECOND)
        done = {part: int(committed(part, now)) for part in range(parts)}
        found.append(history.add(Offsets(float(now), ends, done), lag_at_full=FULL))
    return found


def every(gap: int) -> Callable[[int, int], float]:
    return lambda part, now: (now - (now + part) % gap + 1) * PER_SECOND


def test_what_comes_in_between_two_commits_does_not_wait() -> None:
    for measured in read(60, every(10))[25:]:
        assert set(measured.loads.values()) == {0.0}


def test_the_age_is_the_time_between_commits() -> None:
    assert read(60, every(10))[-1].age_seconds == pytest.approx(11.0, abs=1.0)
    assert read(60, every(20))[-1].age_seconds == pytest.approx(21.0, abs=1.0)
    assert read(60, every(1))[-1].age_seconds <= 2.0


def test_a_reader_that_falls_behind_is_loaded_and_sent_less_than_it_handles() -> None:
    slow = read(90, lambda part, now: (now + 1) * (60 if part == 0 else 100))
    assert slow[-1].loads[0] > 0.9
    assert slow[-1].loads[1] == 0.0
    assert slow[-1].limits[0] < 0.6
    assert 1 not in slow[-1].limits


def test_a_reader_that_stopped_is_sent_nothing() -> None:
    stopped = read(90, lambda part, now: 30 * PER_SECOND if part == 0 and now > 30 else (now + 1) * PER_SECOND)
    assert stopped[-1].limits == {0: 0.0}


def test_a_reader_that_stopped_and_caught_up_is_sent_records_again() -> None:
    back = read(90, lambda part, now: 30 * PER_SECOND if part == 0 and 30 < now < 60 else (now + 1) * PER_SECOND)
    assert back[58].limits == {0: 0.0}
    assert back[-1].limits == {}


def test_the_first_reading_says_nothing_of_how_fast_a_partition_fills() -> None:
    first, second = read(2, every(1))
    assert first.fill_seconds == 0.0
    assert second.fill_seconds == pytest.approx(FULL / PER_SECOND)


def test_partitions_that_came_later_are_counted_from_then_on() -> None:
    history = LagHistory()
    history.add(Offsets(0.0, {0: 100}, {0: 100}), lag_at_full=FULL)
    found = history.add(Offsets(1.0, {0: 200, 1: 500}, {0: 200, 1: 0}), lag_at_full=FULL)
    assert found.loads == {0: 0.0, 1: pytest.approx(0.4)}
