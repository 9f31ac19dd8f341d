from __future__ import annotations

from collections.abc import Callable

import pytest

from ballast.grouping.lags import LagHistory, Offsets
from ballast.grouping.shares import Flow, Measured

PER_SECOND = 100


def read(seconds: int, committed: Callable[[int, int], float], *, parts: int = 2) -> list[Measured]:
    """A reading each second; `committed` gives the offset of a partition at a second. Each gets 100 records."""
    history, found = LagHistory(), []
    for now in range(seconds):
        ends = dict.fromkeys(range(parts), (now + 1) * PER_SECOND)
        done = {part: int(committed(part, now)) for part in range(parts)}
        found.append(history.add(Offsets(float(now), ends, done)))
    return found


def flow(measured: Measured) -> Flow:
    assert measured.flow is not None
    return measured.flow


def every(gap: int) -> Callable[[int, int], float]:
    return lambda part, now: (now - (now + part) % gap + 1) * PER_SECOND


def test_what_comes_in_between_two_commits_does_not_wait() -> None:
    for measured in read(60, every(10))[25:]:
        assert flow(measured).can == {}


def test_the_age_is_the_time_between_commits() -> None:
    assert read(60, every(10))[-1].age_seconds == pytest.approx(11.0, abs=1.0)
    assert read(60, every(20))[-1].age_seconds == pytest.approx(21.0, abs=1.0)
    assert read(60, every(1))[-1].age_seconds <= 2.0


def test_a_reader_that_falls_behind_is_sent_less_than_it_handles() -> None:
    slow = flow(read(60, lambda part, now: (now + 1) * (60 if part == 0 else 100))[-1])
    assert 0.0 < slow.can[0] < 0.3
    assert 1 not in slow.can


def test_readers_that_are_all_behind_alike_are_not_told_from_commits_that_are_seen_late() -> None:
    """Each partition's limit was what came in already, so shares froze."""
    late = read(90, lambda part, now: max(now - 30, 0) * PER_SECOND)[-1]
    assert flow(late).can == {}
    slow = read(90, lambda part, now: (now + 1) * (60 if part == 0 else 80))[-1]
    assert set(flow(slow).can) == {0}


def test_a_reader_that_stopped_is_sent_nothing() -> None:
    stopped = read(90, lambda part, now: 30 * PER_SECOND if part == 0 and now > 30 else (now + 1) * PER_SECOND)
    assert flow(stopped[-1]).can == {0: 0.0}


def test_a_reader_that_stopped_and_caught_up_is_sent_records_again() -> None:
    back = read(90, lambda part, now: 30 * PER_SECOND if part == 0 and 30 < now < 60 else (now + 1) * PER_SECOND)
    assert flow(back[58]).can == {0: 0.0}
    assert flow(back[-1]).can == {}


def test_the_first_reading_says_nothing_of_what_arrives() -> None:
    first, second = read(2, every(1))
    assert flow(first) == Flow()
    assert flow(second).got == {0: 0.5, 1: 0.5}
    assert flow(second).messages == pytest.approx(2 * PER_SECOND * 30)


def test_readers_are_busy_half_of_the_time_at_half_of_what_they_handle() -> None:
    history = LagHistory()
    history.add(Offsets(0.0, {0: 0, 1: 0}, {0: 0, 1: 0}))
    found = history.add(Offsets(1.0, {0: 100, 1: 100}, {0: 100, 1: 100}), handled_per_second=300.0)
    assert flow(found).easily == pytest.approx(0.75)


def test_partitions_that_came_later_are_counted_from_then_on() -> None:
    history = LagHistory()
    history.add(Offsets(0.0, {0: 100}, {0: 100}))
    assert flow(history.add(Offsets(1.0, {0: 200, 1: 500}, {0: 200, 1: 0}))).got == {0: 1.0}
