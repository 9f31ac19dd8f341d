"""Names, keys and numbers with their bounds, as the resources use them."""

from __future__ import annotations

from math import isnan
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from ballast.api.rule import matching

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

Word = Annotated[str, Field(max_length=253)]
"""A name or reason in a status, written by the operator."""

Ratio = Annotated[float, Field(ge=0, le=1)]
Points = Annotated[float, Field(ge=0, le=100)]
"""Points of score: percent of a node's own capacity."""
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Hits = Annotated[int, Field(ge=1, le=1000)]
