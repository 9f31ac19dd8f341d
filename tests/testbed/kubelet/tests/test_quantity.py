from decimal import Decimal

import pytest

from tests.testbed.kubelet import quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("500m", "0.5"),
        ("2", "2"),
        ("1Gi", str(2**30)),
        ("1.5Ki", "1536"),
        ("3M", "3e6"),
        ("1e3", "1000"),
        ("100n", "1e-7"),
    ],
)
def test_a_quantity_stands_for_an_exact_number(text: str, number: str) -> None:
    assert quantity.parse(text) == Decimal(number)


def test_what_is_not_a_quantity_is_named() -> None:
    with pytest.raises(ValueError, match="lots"):
        quantity.parse("lots")


@pytest.mark.parametrize(
    ("text", "divisor", "shown"),
    [
        ("500m", "1", "1"),
        ("500m", "1m", "500"),
        ("128Mi", "1Mi", "128"),
        ("128Mi", "0", str(2**27)),
        ("1025", "1Ki", "2"),
    ],
)
def test_the_downward_api_rounds_up(text: str, divisor: str, shown: str) -> None:
    assert quantity.divided(text, divisor) == shown
