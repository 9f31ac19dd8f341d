from __future__ import annotations

import pytest

from ballast.shedding.streak import Streak


def after(times: list[float], *, high: bool = False, deviations: list[float] | None = None) -> Streak:
    streak = Streak(hot=True)
    for index, now in enumerate(times):
        deviation = deviations[index] if deviations else 10.0
        streak = streak.hit(
            partner="b", low=True, high=high, deviation=deviation, now_seconds=now, window_seconds=120.0
        )
    return streak


@pytest.mark.parametrize(
    ("times", "hits"),
    [
        ([0.0], 1),
        ([0.0, 60.0], 1),
        ([0.0, 60.0, 120.0], 2),
        ([0.0, 119.0, 130.0], 2),
        ([60.0 * i for i in range(15)], 8),
        ([7200.0, 0.0, 60.0, 120.0], 3),
    ],
)
def test_a_hit_counts_once_a_window(times: list[float], hits: int) -> None:
    streak = after(times, high=True)
    assert (streak.low, streak.high, streak.passes) == (hits, hits, len(times))


def test_the_high_count_starts_again_below_its_threshold() -> None:
    streak = after([0.0, 120.0], high=True)
    narrower = streak.hit(partner="b", low=True, high=False, deviation=5.0, now_seconds=240.0, window_seconds=120.0)
    assert (narrower.low, narrower.high) == (3, 0)


def test_the_first_high_hit_need_not_wait_for_the_window() -> None:
    streak = after([0.0]).hit(partner="b", low=True, high=True, deviation=5.0, now_seconds=60.0, window_seconds=120.0)
    assert (streak.low, streak.high) == (1, 1)


def test_the_deviation_is_a_mean() -> None:
    assert after([0.0, 60.0, 120.0], deviations=[10.0, 20.0, 30.0]).deviation == pytest.approx(20.0)


def test_in_the_long_run_the_last_fifteen_passes_count_most() -> None:
    streak = after([60.0 * i for i in range(100)], deviations=[0.0] * 50 + [30.0] * 50)
    assert streak.deviation > 28.0
