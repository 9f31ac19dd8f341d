from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from ballast.model.arrays import FloatArray
from ballast.sizing.batch_regimes import CannotTell, Regimes, fit
from tests.examples import seeds

KNEE, BEND = 300.0, 3000.0
SEEDS = seeds(8)


def truth(rows: FloatArray) -> FloatArray:
    seconds: FloatArray = 0.2 + 1e-4 * np.maximum(rows - KNEE, 0.0) + 1e-3 * np.maximum(rows - BEND, 0.0)
    return seconds


def batches(seed: int, *, noise: float, count: int = 150, most: float = 8000.0) -> tuple[FloatArray, FloatArray]:
    chance = np.random.default_rng(seed)
    rows = np.exp(chance.uniform(np.log(50.0), np.log(most), count)).round()
    return rows, truth(rows) * np.exp(chance.normal(0.0, noise, count))


def fitted(rows: FloatArray, seconds: FloatArray) -> Regimes:
    found = fit(rows.tolist(), seconds.tolist())
    assert isinstance(found, Regimes)
    return found


@pytest.mark.parametrize(("noise", "error"), [(0.02, 0.02), (0.05, 0.04), (0.1, 0.06), (0.2, 0.1)])
@pytest.mark.parametrize("seed", SEEDS)
def test_sharp_growth_is_found_within_a_known_error(seed: int, noise: float, error: float) -> None:
    found = fitted(*batches(seed, noise=noise))
    assert found.sharp_from is not None
    assert found.sharp_from.rows == pytest.approx(BEND, rel=error)
    assert found.noise_ratio == pytest.approx(noise, rel=0.3)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_three_regimes_are_found_at_little_noise(seed: int) -> None:
    found = fitted(*batches(seed, noise=0.02))
    assert found.flat_until is not None
    assert found.flat_until.rows == pytest.approx(KNEE, rel=0.2)
    assert found.base_seconds == pytest.approx(0.2, rel=0.05)
    assert found.slow_seconds_per_row == pytest.approx(1e-4, rel=0.1)
    assert found.sharp_seconds_per_row == pytest.approx(1e-3, rel=0.1)


@pytest.mark.soak
def test_the_interval_of_a_breakpoint_mostly_holds_it() -> None:
    held = 0
    for seed in range(40):
        found = fitted(*batches(seed, noise=0.1))
        held += found.sharp_from is not None and found.sharp_from.low <= BEND <= found.sharp_from.high
    assert held >= 32


def test_no_other_place_for_the_breakpoints_fits_better() -> None:
    """SciPy, started from the truth, finds no smaller sum of squares."""
    rows, seconds = batches(3, noise=0.05)
    found = fitted(rows, seconds)

    def residuals(p: FloatArray) -> FloatArray:
        made = p[0] + p[1] * np.maximum(rows - p[3], 0.0) + p[2] * np.maximum(rows - p[4], 0.0)
        return np.asarray(1.0 - made / seconds)

    best = least_squares(residuals, [0.2, 1e-4, 1e-3, KNEE, BEND], x_scale=[0.1, 1e-4, 1e-3, 100.0, 1000.0])
    ours = np.array([1.0 - found.seconds(float(r)) / s for r, s in zip(rows, seconds, strict=True)])
    assert ours @ ours <= 2.0 * best.cost * 1.002


def test_where_batches_end_before_sharp_growth_none_is_reported() -> None:
    found = fitted(*batches(1, noise=0.05, most=2500.0))
    assert found.sharp_from is None
    assert found.bend_rows > found.largest_rows
    assert found.seconds(2000.0) == pytest.approx(float(truth(np.array(2000.0))), rel=0.05)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_straight_line_has_no_breakpoints(seed: int) -> None:
    chance = np.random.default_rng(seed)
    rows = chance.uniform(100.0, 10_000.0, 120).round()
    found = fitted(rows, (0.3 + 2e-4 * rows) * np.exp(chance.normal(0.0, 0.1, 120)))
    assert found.flat_until is None
    assert found.sharp_from is None
    assert found.slow_seconds_per_row == pytest.approx(2e-4, rel=0.15)


@pytest.mark.parametrize(
    ("rows", "seconds", "words"),
    [
        ([100.0] * 11, [0.2] * 11, "only 11 batches"),
        ([1000.0 + step for step in range(50)], [0.2] * 50, "about the same size"),
        ([100.0 * 2 ** (step % 5) for step in range(50)], [0.2 + 0.001 * (step % 7) for step in range(50)], "not grow"),
        ([0.0] * 50, [0.2] * 50, "only 0 batches"),
    ],
)
def test_it_refuses_when_the_batches_cannot_tell(rows: list[float], seconds: list[float], words: str) -> None:
    found = fit(rows, seconds)
    assert isinstance(found, CannotTell)
    assert words in found.reason
    assert "maxOffsetsPerTrigger" in found.remedy


def test_noise_that_hides_the_growth_is_not_taken_for_regimes() -> None:
    chance = np.random.default_rng(4)
    rows = chance.uniform(100.0, 400.0, 60).round()
    found = fit(rows.tolist(), np.exp(chance.normal(0.0, 0.6, 60)).tolist())
    assert isinstance(found, CannotTell) or (found.flat_until is None and found.sharp_from is None)
