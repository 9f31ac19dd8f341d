from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.api.quantity import Quantity
from ballast.errors import InvalidField
from tests.cluster.crds.grammar import NO_QUANTITIES, QUANTITIES


@pytest.mark.parametrize(("raw", "value"), QUANTITIES)
def test_a_quantity_is_read_as_kubernetes_reads_it(raw: str | int, value: Fraction) -> None:
    assert Quantity.parse(raw).value == value


@pytest.mark.parametrize("raw", NO_QUANTITIES)
def test_anything_else_is_refused_with_the_field_and_the_remedy(raw: str | int) -> None:
    with pytest.raises(InvalidField, match=r"spec.rate.*write a quantity such as 500m, 1000, 20Mi"):
        Quantity.parse(raw, "spec.rate")


def test_what_is_finer_than_a_billionth_is_rounded_away_from_zero() -> None:
    assert Quantity.parse("0.1n").value == Fraction(1, 10**9)
    assert Quantity.parse("-0.1n").value == Fraction(-1, 10**9)


def test_what_is_larger_than_64_bits_hold_is_cut() -> None:
    assert Quantity.parse("100E").value == 2**63 - 1


def test_a_whole_number_is_rounded_up() -> None:
    assert int(Quantity.parse("1500m")) == 2
    assert float(Quantity.parse("1500m")) == 1.5


def test_quantities_are_equal_by_value_and_keep_their_text() -> None:
    assert Quantity.parse("1k") == Quantity.parse("1000")
    assert Quantity.parse("1Ki") > Quantity.parse("1k")
    assert str(Quantity.parse("1k")) == "1k"


@pytest.mark.parametrize(
    ("raw", "written"), [("20Mi", "20Mi"), ("1000", 1000), (1000, 1000), ("007", "007"), ("1.0", "1.0")]
)
def test_a_quantity_is_written_as_it_was_read(raw: str | int, written: str | int) -> None:
    assert Quantity.parse(raw).as_written() == written


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_an_integer_reads_back_the_same(number: int) -> None:
    assert Quantity.parse(str(number)).value == number


@given(st.integers(0, 10**6), st.sampled_from(["n", "u", "m", "", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "e3", "E-3"]))
def test_reading_what_was_written_changes_nothing(number: int, suffix: str) -> None:
    quantity = Quantity.parse(f"{number}{suffix}")

    assert Quantity.parse(quantity.as_written()) == quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0" * 5000 + "5", 5.0),
        ("-" + "0" * 5000 + "5.", -5.0),
        ("5." + "0" * 5000 + "Ki", 5120.0),
        ("9" * 5000, 2.0**63),
        ("9" * 5000 + "e-999", 2.0**63),
        ("0." + "0" * 5000 + "1", 1e-9),
        ("2." + "0" * 5000 + "1e0", 2.000000001),
        ("5e+" + "0" * 5000 + "1", 50.0),
    ],
    ids=["zeros", "negative", "a suffix", "large", "an exponent", "small", "rounded up", "zeros of an exponent"],
)
def test_any_number_of_digits_is_read(text: str, value: float) -> None:
    """The API server returns some amounts as a user wrote them, and Python reads 4 300 digits at most."""
    assert float(Quantity.parse(text)) == value
