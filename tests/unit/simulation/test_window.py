from __future__ import annotations

import numpy as np

from ballast.simulation.meter import Window


def filled(*rows: tuple[float, list[float]]) -> Window:
    window = Window(2, 4)
    for time, values in rows:
        window.add(time, np.array(values))
    return window


def test_a_mean_is_over_the_samples_after_the_beginning_and_up_to_the_end() -> None:
    window = filled((0.0, [9, 9]), (15.0, [1, 2]), (30.0, [3, 4]), (45.0, [99, 99]))
    assert window.mean(0.0, 30.0).tolist() == [2.0, 3.0]


def test_missing_samples_count_for_nothing_and_none_at_all_gives_nan() -> None:
    window = filled((15.0, [1, np.nan]), (30.0, [np.nan, np.nan]))
    means = window.mean(0.0, 30.0)
    assert means[0] == 1.0
    assert np.isnan(means[1])
    assert window.newest(30.0).tolist() == [15.0, -np.inf]


def test_the_oldest_sample_makes_room_for_a_new_one() -> None:
    window = filled(*((15.0 * i, [float(i), 0.0]) for i in range(6)))
    assert window.mean(-1.0, 100.0)[0] == 3.5


def test_what_is_forgotten_is_gone_and_the_rest_stays() -> None:
    window = filled((0.0, [1, 2]))
    window.forget(np.array([True, False]))
    means = window.mean(-1.0, 0.0)
    assert np.isnan(means[0])
    assert means[1] == 2.0
