"""Resource quantities in Kubernetes' grammar (`250m`, `1.5`, `20Mi`, `1e3`, `2E`)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pydantic_core import core_schema

from ballast.api.rule import VALIDATIONS
from ballast.errors import InvalidField

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

REMEDY = "write a quantity such as 500m, 1000, 20Mi or 1.5G"
NOT_NEGATIVE = f"{REMEDY}, not below 0"
_SUFFIXES: dict[str, Fraction] = {
    **{unit: Fraction(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)},
    **{unit: Fraction(1000) ** power for power, unit in enumerate(("", "k", "M", "G", "T", "P", "E"))},
    **{unit: Fraction(1, 1000**power) for power, unit in enumerate(("m", "u", "n"), start=1)},
}
_GRAMMAR = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:[eE](?P<sign>[+-]?)0*(?P<exponent>[0-9]{1,3})|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))",
    re.ASCII,
)
_CEL_PATTERN = "^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?0*[0-9]{1,3}|[KMGTPE]i|[numkMGTPE]?)$"
"""_GRAMMAR, for the API server."""
_NANO = 10**9
_LARGEST = Fraction(2**63 - 1)
_MAX_LENGTH = 32
_MOST_DIGITS = 1100
"""Of a number, before the decimal point and after it: an exponent moves the point by at most 999, a suffix by 18."""


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An exact number that remembers how it was written. Equal and ordered by value: `1k` equals `1000`."""

    value: Fraction
    text: str = field(compare=False)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        """The value as a whole number, rounded up as Kubernetes does."""
        return math.ceil(self.value)

    def __str__(self) -> str:
        return self.text

    def as_written(self) -> str | int:
        """The text; digits alone as an integer, as most people write them in YAML."""
        return int(self.text) if re.fullmatch("0|[1-9][0-9]*", self.text) else self.text

    @classmethod
    def parse(cls, raw: str | int, field: str = "") -> Quantity:
        """Read `raw` as Kubernetes' resource.ParseQuantity does.

        Finer than 1n rounds away from zero; beyond 2^63-1 is cut to that. Raises InvalidField, naming `field`.
        """
        text = "" if isinstance(raw, bool) else str(raw)
        match = _GRAMMAR.fullmatch(text)
        if match is None:
            raise InvalidField(field, raw, REMEDY)
        exponent = match["exponent"]
        scale = Fraction(10) ** int(match["sign"] + exponent) if exponent else _SUFFIXES[match["suffix"] or ""]
        return cls(_within_range(Fraction(_number(match["number"])) * scale), text)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        written = core_schema.union_schema(
            [core_schema.int_schema(strict=True), core_schema.str_schema(strict=True, max_length=_MAX_LENGTH)]
        )
        from_written = core_schema.no_info_after_validator_function(_parse_not_negative, written)
        return core_schema.json_or_python_schema(
            json_schema=from_written,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), from_written]),
            serialization=core_schema.plain_serializer_function_ser_schema(cls.as_written),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _schema: core_schema.CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        # The grammar comes first: the API server computes an exponent of ten digits without end. It also takes a suffix
        # alone ("Mi") for 0.
        grammar = f"self.matches('{_CEL_PATTERN}')"
        not_negative = f"{grammar} && isQuantity(self) && quantity(self).compareTo(quantity('0')) >= 0"
        rule = f"type(self) == int ? self >= 0 : ({not_negative})"
        return {
            "x-kubernetes-int-or-string": True,
            "maxLength": _MAX_LENGTH,
            VALIDATIONS: [{"rule": rule, "message": NOT_NEGATIVE}],
        }


def _parse_not_negative(raw: str | int) -> Quantity:
    quantity = Quantity.parse(raw)
    if quantity.value < 0:
        raise InvalidField("", raw, NOT_NEGATIVE)
    return quantity


def _number(text: str) -> str:
    """The number for Python, which reads only so many digits. The API server returns some as a user wrote them.

    A number with more than _MOST_DIGITS before the point is beyond the range, whatever its exponent. Digits beyond
    _MOST_DIGITS after the point are finer than 1n; the 1 in their place makes the value round away from zero.
    """
    sign = "-" if text.startswith("-") else ""
    whole, _, fraction = text.lstrip("+-").partition(".")
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    if len(whole) > _MOST_DIGITS:
        whole, fraction = "9" * _MOST_DIGITS, ""
    if len(fraction) > _MOST_DIGITS:
        fraction = f"{fraction[:_MOST_DIGITS]}1"
    return f"{sign}{whole or 0}.{fraction or 0}"


def _within_range(value: Fraction) -> Fraction:
    magnitude = min(Fraction(math.ceil(abs(value) * _NANO), _NANO), _LARGEST)
    return -magnitude if value < 0 else magnitude


def plain_quantity(thousandths: int, *, binary: bool) -> str:
    """An amount as people write it: `64Mi` where it is `binary`, `4`, or `334m` where it is no whole number."""
    whole, rest = divmod(thousandths, 1000)
    if rest:
        return f"{thousandths}m"
    units = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki") if binary and whole else ()
    unit = next((unit for unit in units if whole % int(_SUFFIXES[unit]) == 0), "")
    return f"{whole // int(_SUFFIXES[unit])}{unit}"
