from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ballast.model.arrays import FloatArray
from ballast.simulation.demand import curve, random_for
from ballast.simulation.scenario_models import Load

LANES = 2000


def factors(times: list[float], lanes: int = 1, seed: int = 1, **vary: Any) -> FloatArray:
    """One row per time, one column per lane."""
    (parsed,) = Load.model_validate({"cores": 1, "vary": [vary]}).vary
    made = curve(parsed, lanes, random_for(seed, "test"))
    return np.array([np.resize(made.at(time), lanes) for time in times])


def test_a_day_has_its_peak_and_half_a_day_later_its_trough() -> None:
    found = factors([0.0, 7200.0, 50_400.0, 93_600.0], kind="Diurnal", amplitude=0.5)
    assert found[2, 0] == pytest.approx(1.5), "14:00"
    assert found[1, 0] == pytest.approx(0.5), "02:00"
    assert found[3, 0] == pytest.approx(0.5), "02:00 the next day"


def test_a_surge_rises_stays_and_falls() -> None:
    surge: dict[str, Any] = {"kind": "Surge", "at": "10m", "factor": 3, "rise": "2m", "lasts": "5m", "fall": "4m"}
    found = factors([0.0, 600.0, 660.0, 720.0, 1020.0, 1140.0, 1260.0, 9e9], **surge)
    assert found[:, 0].tolist() == [1.0, 1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 1.0]


def test_a_recorded_series_is_played_back_and_its_last_value_stays() -> None:
    times = [0.0, 29.0, 30.0, 60.0, 120.0]
    assert factors(times, kind="Series", values=[1, 2, 4], every="30s")[:, 0].tolist() == [1, 1, 2, 4, 4]
    assert factors(times, kind="Series", values=[1, 2, 4], every="30s", repeat=True)[:, 0].tolist() == [1, 1, 2, 4, 2]


def test_noise_has_its_deviation_and_is_alike_over_its_memory() -> None:
    found = factors([0.0, 30.0, 300.0], LANES, kind="Noise", deviation=0.1, memory="5m") - 1.0
    assert found.std(axis=1) == pytest.approx(0.1, rel=0.1)
    likeness = [float(np.corrcoef(found[0], row)[0, 1]) for row in found[1:]]
    assert likeness == pytest.approx([np.exp(-0.1), np.exp(-1.0)], abs=0.06)


def test_a_random_walk_stays_within_its_bounds_and_spreads() -> None:
    found = factors([60.0 * i for i in range(200)], LANES, kind="RandomWalk", step=0.1, low=0.5, high=2.0)
    assert found.min() >= 0.5
    assert found.max() <= 2.0
    assert found[1].std() == pytest.approx(0.1, rel=0.1)
    assert found[-1].std() > 0.3


def test_heavy_tails_have_mean_1_and_are_drawn_again_when_it_is_time() -> None:
    found = factors([0.0, 299.0, 300.0], 100_000, kind="HeavyTail", alpha=3, renewed="5m", most=1000)
    assert found.mean(axis=1) == pytest.approx(1.0, rel=0.03)
    assert (found[0] == found[1]).all()
    assert (found[1] != found[2]).any()
    assert factors([0.0], 1000, kind="HeavyTail", alpha=1.1, most=4).max() == 4.0


def test_bursts_come_as_often_and_last_as_long_as_is_said() -> None:
    found = factors([60.0 * i for i in range(600)], 200, kind="Bursts", perHour=2, factor=5, lasts="3m")
    assert set(np.unique(found)) == {1.0, 5.0}
    assert (found == 5.0).mean() == pytest.approx(1 - np.exp(-2 * 3 / 60), rel=0.1)


def test_what_one_curve_does_depends_on_its_place_and_the_seed_alone() -> None:
    noise: dict[str, Any] = {"kind": "Noise", "deviation": 0.2}
    assert (factors([0.0, 60.0], 5, **noise) == factors([0.0, 60.0], 5, **noise)).all()
    assert (factors([0.0, 60.0], 5, **noise) != factors([0.0, 60.0], 5, seed=2, **noise)).all()
