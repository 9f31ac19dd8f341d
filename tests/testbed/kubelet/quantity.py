"""Kubernetes quantities ("500m", "1Gi") as exact numbers, and divided as the downward API does."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

_SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal("1e3"), "M": Decimal("1e6"), "G": Decimal("1e9"), "T": Decimal("1e12"),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
}  # fmt: skip


def parse(text: str | float) -> Decimal:
    """The number that a quantity stands for. Raises ValueError for anything else."""
    shown = str(text)
    for suffix in sorted(_SUFFIXES, key=len, reverse=True):
        if suffix and shown.endswith(suffix):
            return Decimal(shown.removesuffix(suffix)) * _SUFFIXES[suffix]
    try:
        return Decimal(shown)
    except ArithmeticError:
        raise ValueError(f"not a quantity: {shown!r}") from None


def divided(text: str, divisor: str) -> str:
    """A quantity in units of `divisor` ("0" stands for 1), rounded up."""
    unit = parse(divisor) or Decimal(1)
    return str(int((parse(text) / unit).to_integral_value(rounding=ROUND_CEILING)))
