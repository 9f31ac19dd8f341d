"""Names, keys and numbers with their bounds, as the resources use them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

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
        "remove the credentials: put them into a secret, and name it in bearerTokenSecret or headersSecret",
    ),
]

Query = Annotated[str, Field(min_length=1, max_length=4096)]
"""A PromQL expression."""

Text = Annotated[str, Field(max_length=1024)]
"""A message to people."""

Word = Annotated[str, Field(max_length=253)]
"""A name or reason in a status, written by the operator."""

Ratio = Annotated[float, Field(ge=0, le=1)]
Points = Annotated[float, Field(ge=0, le=100)]
"""Points of score: percent of a node's own capacity."""
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Hits = Annotated[int, Field(ge=1, le=1000)]
