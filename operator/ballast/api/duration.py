"""Durations in Go's grammar (`30s`, `2m`, `1h30m`, `250ms`), as Kubernetes writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pydantic_core import core_schema

from ballast.api.rule import VALIDATIONS, Rule
from ballast.errors import InvalidField

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # micro sign
    "\u03bcs": 1_000,  # Greek mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
REMEDY = "write a duration such as 30s, 2m or 1h30m"
_TERM = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(rf"([+-]?)(0|(?:{_TERM.pattern})+)", re.ASCII)
_CEL_PATTERN = "^[-+]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
_MAX_NANOSECONDS = 2**63 - 1
_MAX_LENGTH = 32


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time that remembers how it was written. Equal and ordered by length: `60s` equals `1m`."""

    nanoseconds: int
    text: str = field(compare=False)

    @property
    def seconds(self) -> float:
        return self.nanoseconds / 1_000_000_000

    def __str__(self) -> str:
        return self.text

    def as_written(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: str, field: str = "") -> Duration:
        """Read `text` as Go's time.ParseDuration does (parts below a nanosecond are cut off).

        Raises InvalidField, naming `field`.
        """
        whole = _WHOLE.fullmatch(text) if isinstance(text, str) else None
        if whole is None:
            raise InvalidField(field, text, REMEDY)
        magnitude = sum(int(Fraction(_number(n)) * NANOSECONDS[unit]) for n, unit in _TERM.findall(whole[2]))
        if magnitude > _MAX_NANOSECONDS:
            raise InvalidField(field, text, "write a duration below 292 years")
        return cls(-magnitude if whole[1] == "-" else magnitude, text)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        from_text = core_schema.no_info_after_validator_function(
            cls.parse, core_schema.str_schema(max_length=_MAX_LENGTH)
        )
        return core_schema.json_or_python_schema(
            json_schema=from_text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), from_text]),
            serialization=core_schema.plain_serializer_function_ser_schema(cls.as_written),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _schema: core_schema.CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {
            "type": "string",
            "maxLength": _MAX_LENGTH,
            VALIDATIONS: [{"rule": f"self.matches('{_CEL_PATTERN}')", "message": REMEDY}],
        }


@dataclass(frozen=True, slots=True)
class Between:
    """Annotates a Duration with its bounds, both included."""

    low: str
    high: str

    def rule(self) -> Rule:
        low, high = Duration.parse(self.low), Duration.parse(self.high)
        return Rule(
            cel=(
                f"self.matches('{_CEL_PATTERN}') && duration(self) >= duration('{self.low}')"
                f" && duration(self) <= duration('{self.high}')"
            ),
            message=f"{REMEDY}, from {self.low} to {self.high}",
            holds=lambda duration: low <= duration <= high,
        )

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self.rule().check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), VALIDATIONS: [self.rule().as_validation()]}


def comparing(cel: str, *fields: str) -> str:
    """`cel`, which compares the durations in `fields`, silent if one of them is malformed: that has its own rule."""
    malformed = f"[{', '.join(fields)}].exists(d, !d.matches('{_CEL_PATTERN}'))"
    return f"{cel} || {malformed}"


def _number(text: str) -> str:
    whole, _, fraction = text.partition(".")
    return f"{whole or 0}.{fraction or 0}"
