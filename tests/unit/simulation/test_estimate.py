from __future__ import annotations

from math import isnan, nan

import pytest

from ballast.simulation.ranking import Estimate, quantile


def test_the_interval_is_student_s_t() -> None:
    # Five values of mean 3 and deviation √2.5; t for four degrees of freedom is 2.7764.
    found = Estimate.of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.mean, found.cases) == (3.0, 5)
    assert found.half_width == pytest.approx(2.7764 * (2.5 / 5) ** 0.5, rel=1e-4)
    assert (found.low, found.high) == pytest.approx((1.0368, 4.9632), abs=1e-3)


@pytest.mark.parametrize("values", [[4.0], [4.0, nan]])
def test_a_single_case_has_no_interval(values: list[float]) -> None:
    found = Estimate.of(values)
    assert (found.mean, found.cases) == (4.0, 1)
    assert isnan(found.half_width)


def test_cases_that_do_not_tell_are_left_out() -> None:
    assert Estimate.of([1.0, nan, 3.0]) == Estimate.of([1.0, 3.0])
    assert isnan(Estimate.of([nan]).mean)
    assert Estimate.of([]).cases == 0


@pytest.mark.parametrize(
    ("freedom", "tabulated"), [(1, 12.7062), (30, 2.0423), (31, 2.0395), (60, 2.0003), (120, 1.9799), (10**6, 1.96)]
)
def test_quantiles_are_the_tabulated_ones(freedom: int, tabulated: float) -> None:
    assert quantile(freedom) == pytest.approx(tabulated, abs=1e-4)
