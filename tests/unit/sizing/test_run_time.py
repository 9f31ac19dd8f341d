from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.sizing.run_time import predict
from tests.unit.sizing.values import log, stage, task

TEN = [task(0, start=float(n // 2), seconds=1.0) for n in range(10)]
"""Ten tasks of a second on two cores."""


@pytest.mark.parametrize(("cores", "seconds"), [(1, 10), (2, 5), (4, 3), (10, 1), (100, 1)])
def test_tasks_run_in_waves(cores: int, seconds: float) -> None:
    assert predict(log(stage(0, *TEN)), cores).seconds == seconds


def test_a_log_may_claim_any_number_of_cores() -> None:
    assert predict(log(stage(0, *TEN)), 10**15).seconds == 1


def test_what_the_driver_does_alone_is_not_shortened() -> None:
    found = predict(log(stage(0, *TEN), seconds=8.0), 10)
    assert (found.driver_seconds, found.seconds, found.least_seconds) == (3, 4, 4)


def test_a_stage_waits_for_its_parents() -> None:
    first, second = stage(0, *TEN), stage(1, task(1, start=5.0, seconds=2.0), parents=(0,))
    assert predict(log(first, second), 10).seconds == 3


def test_stages_of_jobs_that_followed_each_other_do_so_again() -> None:
    first, second = stage(0, *TEN), stage(1, task(1, start=6.0, seconds=2.0))
    assert predict(log(first, second), 10).seconds == 1 + 2 + 1


def test_stages_that_ran_together_do_so_again() -> None:
    first, second = stage(0, task(0, seconds=4.0)), stage(1, task(1, start=0.5, seconds=4.0))
    assert predict(log(first, second), 2).seconds == 4
    assert predict(log(first, second), 1).seconds == 8


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=30), st.integers(1, 8))
def test_more_cores_take_no_longer_than_twice_the_bound_and_never_less_than_it(
    seconds: list[float], cores: int
) -> None:
    """Graham's bound of list scheduling."""
    found = predict(log(stage(0, *(task(0, seconds=each) for each in seconds))), cores)
    least = max(sum(seconds) / cores, *seconds)
    assert least - 1e-9 <= found.seconds <= 2 * least + 1e-9
