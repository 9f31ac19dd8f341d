from __future__ import annotations

import random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ballast.sizing.provenance import (
    Origin,
    assumed,
    declared,
    derived,
    measured,
    measured_ratio,
    student_t,
    weakest,
)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 8, 15, 30, 200])
def test_students_quantile_agrees_with_scipy(freedom: int) -> None:
    assert student_t(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=0.005)


def test_the_interval_of_a_ratio_holds_it_in_19_of_20_cases() -> None:
    chance, normal = random.Random(2), NormalDist(1.0, 0.2)
    held = 0
    for _ in range(500):
        bottoms = [chance.uniform(100.0, 5000.0) for _ in range(30)]
        noise = normal.samples(30, seed=chance.random())
        value = measured_ratio([0.008 * each * n for each, n in zip(bottoms, noise, strict=True)], bottoms, "s", "x")
        low, high = value.ends
        held += low <= 0.008 <= high
    assert 0.90 <= held / 500 <= 0.99


def test_the_interval_of_a_ratio_stays_above_zero() -> None:
    """Others are divided by it: of a real log's run time by its records the linear interval reached below zero."""
    value = measured_ratio([9.0, 0.04, 0.1, 3.0], [1.0, 1e6, 3.0, 20.0], "s", "x")
    low, high = value.ends
    assert 0.0 < low < value.amount < high


def test_one_sample_has_no_interval() -> None:
    assert measured_ratio([2.0], [4.0], "s", "x").low is None


def test_the_weakest_input_decides_where_a_value_comes_from() -> None:
    values = {"a": measured(1, "s", "a log"), "b": declared(2, "s", "spec.b"), "c": assumed(3, "s", "no idea")}
    assert weakest(list(values.values())) is Origin.ASSUMED
    assert weakest([]) is Origin.MEASURED
    made = derived("sum", "s", "a + b + c", lambda a, b, c: a + b + c, inputs=values)
    assert (made.value.amount, made.value.origin, made.value.source) == (6.0, Origin.ASSUMED, "c")
    assert made.inputs == ("a", "b", "c")
    assert made.value.low is None


ENDS = st.tuples(st.floats(1.0, 100.0), st.floats(0.0, 50.0), st.floats(0.0, 50.0))


@given(ENDS, ENDS, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_bounds_hold_for_every_input_within_its_own(
    one: tuple[float, float, float], other: tuple[float, float, float], first: float, second: float
) -> None:
    def value(ends: tuple[float, float, float]) -> tuple[float, float]:
        return ends[0], ends[0] + ends[1] + ends[2]

    (low, high), (least, most) = value(one), value(other)
    inputs = {
        "a": measured((low + high) / 2, "", "x", low=low, high=high),
        "b": measured((least + most) / 2, "", "x", low=least, high=most),
    }
    made = derived("ratio", "", "a ÷ b", lambda a, b: a / b, inputs=inputs).value
    within = (low + first * (high - low)) / (least + second * (most - least))
    bottom, top = made.ends
    assert bottom - 1e-9 <= within <= top + 1e-9


def test_what_if_scales_an_amount_with_its_interval() -> None:
    value = measured(100, "records/s", "a file", low=90, high=110).times(2.0, "--set rate=2x")
    assert (value.amount, value.low, value.high, value.source) == (200, 180, 220, "--set rate=2x")
    assert declared(5, "B", "spec.x").times(2.0, "y").low is None
