"""Amounts as logs and metrics tell them: only such as can be true, so that all that is computed from them is finite."""

from __future__ import annotations

from typing import Any

LARGEST = 1e18
"""Of seconds, records or bytes: an exabyte."""
SMALLEST = 1e-9


def amount(value: Any) -> float:
    """0 for what is too little to matter. Raises ValueError for NaN, infinity, and what no measurement is."""
    number = float(value)
    if not -LARGEST <= number <= LARGEST:
        raise ValueError(f"an amount: {number}")
    return number if abs(number) >= SMALLEST else 0.0
