"""Names, keys and numbers with their bounds, as the resources use them."""

from __future__ import annotations

import re
from enum import StrEnum
from math import isnan
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from ballast.api.rule import VALIDATIONS, matching
from ballast.errors import InvalidField

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"

DnsLabel = Annotated[
    str,
    Field(min_length=1, max_length=63),
    matching(_LABEL, "write a DNS label: lower-case letters, digits and '-', such as clickstream"),
]
"""Name of a component, of a namespace."""

ObjectName = Annotated[
    str,
    Field(min_length=1, max_length=253),
    matching(
        f"{_LABEL}([.]{_LABEL})*",
        "write an object's name: lower-case letters, digits, '-' and '.', such as clickstream",
    ),
]
"""Name of a node, a pod, a topology, a secret."""

Uid = Annotated[
    str,
    Field(min_length=1, max_length=64),
    matching(
        "[A-Za-z0-9-]+", "write the uid as `kubectl get -o yaml` shows it under metadata.uid: letters, digits, '-'"
    ),
]
"""What the API server names an object by: a UUID."""

LabelKey = Annotated[
    str,
    Field(min_length=1, max_length=317),
    matching(
        f"({_LABEL}([.]{_LABEL})*/)?{_QUALIFIED}",
        "write a label's key, such as topology.kubernetes.io/zone",
    ),
]

LabelValue = Annotated[
    str,
    Field(max_length=63),
    matching(f"({_QUALIFIED})?", "write a label's value: letters, digits, '-', '_' and '.'"),
]

Url = Annotated[
    str,
    Field(min_length=1, max_length=2048),
    matching(
        "https?://[^/?# ]+(/[^?# ]*)?",
        "write an address with its scheme and without a query, such as http://prometheus.monitoring:9090",
    ),
    matching(
        "[^@]*|[^/]*//[^/@]*/.*",
        "remove the credentials: put them into a secret, and name it in bearerTokenSecretRef or headersSecretRef",
    ),
]

Query = Annotated[str, Field(min_length=1, max_length=4096)]
"""A PromQL expression."""

_TEXT_LENGTH = 1024
_LARGEST = 1_000_000


def _clipped(text: Any) -> Any:
    return f"{text[: _TEXT_LENGTH - 1]}…" if isinstance(text, str) and len(text) > _TEXT_LENGTH else text


def _clamped(lowest: float) -> BeforeValidator:
    """NaN stays what it is, and is refused."""

    def clamp(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float) or isnan(value):
            return value
        return min(_LARGEST, max(value, lowest))

    return BeforeValidator(clamp)


# What the operator itself writes is shown as the bound if it is beyond, so that no status fails by one value.
Text = Annotated[str, Field(max_length=_TEXT_LENGTH), BeforeValidator(_clipped)]
"""A message to people, shortened if it is too long."""

Score = Annotated[float, Field(ge=0, le=_LARGEST), _clamped(0)]
"""Points of score, a ratio or seconds, that the operator computed."""
Number = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST), _clamped(-_LARGEST)]
"""As Score, and below 0, too."""

_DECIMAL = "-?[0-9]{1,7}([.][0-9]{1,9})?"
_DECIMAL_REMEDY = 'write a decimal number as text, such as "62.5"'


def decimal(value: float) -> str:
    """As a spec holds a number that need not be whole: to four digits after the point."""
    return f"{round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")


class _Decimal:
    """A float in Python, text in the API: Kubernetes' conventions keep floating-point numbers out of specs."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        written = core_schema.no_info_after_validator_function(_from_decimal, core_schema.str_schema(strict=True))
        return core_schema.json_or_python_schema(
            json_schema=written,
            python_schema=core_schema.union_schema([core_schema.float_schema(strict=True), written]),
            serialization=core_schema.plain_serializer_function_ser_schema(decimal),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _schema: core_schema.CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        rule = {"rule": f"self.matches('^{_DECIMAL}$')", "message": _DECIMAL_REMEDY}
        return {"type": "string", "maxLength": 18, VALIDATIONS: [rule]}


def _from_decimal(text: str) -> float:
    if re.fullmatch(_DECIMAL, text) is None:
        raise InvalidField("", text, _DECIMAL_REMEDY)
    return float(text)


Decimal = Annotated[float, _Decimal]

Word = Annotated[str, Field(max_length=253)]
"""A name or reason in a status, written by the operator."""

Ratio = Annotated[float, Field(ge=0, le=1)]
"""Only in a status: Kubernetes' conventions keep floating-point numbers out of specs."""
Percent = Annotated[int, Field(ge=0, le=100)]
Points = Annotated[int, Field(ge=0, le=100)]
"""Points of score: percent of a node's own capacity."""
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Hits = Annotated[int, Field(ge=1, le=1000)]


# Levels of nearness, in the words of the resources.


class SeparateBy(StrEnum):
    """What separated components must not share."""

    NODE = "Node"
    RACK = "Rack"
    ZONE = "Zone"
