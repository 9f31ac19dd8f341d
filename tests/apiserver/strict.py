"""What a real API server would say against a write: fields that are unknown, missing or of another type.

The doubles of unit tests take anything, and a real one drops a status' misspelled field without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from ballast.api.crd import KINDS, schema
from ballast.api.version import GROUP

if TYPE_CHECKING:
    from tests.apiserver.exchange import Asked

JSON = dict[str, Any]
_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
_TEXT: JSON = {"type": "string", "minLength": 1}
_COUNT: JSON = {"type": "integer", "minimum": 0}
_REFERENCE: JSON = {
    "type": "object",
    "required": ["apiVersion", "kind", "name", "uid"],
    "properties": dict.fromkeys(("apiVersion", "kind", "name", "uid", "namespace"), _TEXT),
}
_EVENT: JSON = {
    "type": "object",
    "required": ["metadata", "eventTime", "reportingController", "reportingInstance", "action", "reason", "regarding",
                 "note", "type"],
    "properties": {
        **dict.fromkeys(
            ("apiVersion", "kind", "eventTime", "reportingController", "reportingInstance", "action", "reason", "note"),
            _TEXT,
        ),
        "type": {"type": "string", "enum": ["Normal", "Warning"]},
        "metadata": {"type": "object"},
        "regarding": _REFERENCE,
        "related": _REFERENCE,
    },
}  # fmt: skip
_SERIES: JSON = {
    "type": "object",
    "required": ["series"],
    "properties": {
        "series": {
            "type": "object",
            "required": ["count", "lastObservedTime"],
            "properties": {"count": {"type": "integer"}, "lastObservedTime": _TEXT},
        }
    },
}
_LEASE: JSON = {
    "type": "object",
    "required": ["metadata", "spec"],
    "properties": {
        **dict.fromkeys(("apiVersion", "kind"), _TEXT),
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "properties": {
                **dict.fromkeys(("acquireTime", "renewTime"), _TEXT),
                "holderIdentity": {"type": "string"},
                **dict.fromkeys(("leaseDurationSeconds", "leaseTransitions"), _COUNT),
            },
        },
    },
}
_EVICTION: JSON = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata"],
    "properties": {
        "apiVersion": {"type": "string", "enum": ["policy/v1"]},
        "kind": {"type": "string", "enum": ["Eviction"]},
        "metadata": {
            "type": "object",
            "required": ["name", "namespace"],
            "properties": dict.fromkeys(("name", "namespace"), _TEXT),
        },
        "deleteOptions": {
            "type": "object",
            "properties": {"preconditions": {"type": "object", "properties": {"uid": _TEXT}}},
        },
    },
}
_FIXED = {("POST", "events"): _EVENT, ("PATCH", "events"): _SERIES, ("POST", "eviction"): _EVICTION,
          ("POST", "leases"): _LEASE, ("PUT", "leases"): _LEASE}  # fmt: skip


@cache
def _schemas() -> Mapping[str, JSON]:
    return {kind.plural: schema(kind) for kind in KINDS}


def objections(asked: Asked) -> list[str]:
    """Nothing where it is not known what such a write may hold."""
    parts = asked.path.partition("?")[0].split("/")
    if asked.headers.get("User-Agent") != "ballast" or not isinstance(asked.body, dict):
        return []
    last = parts[-1] if asked.method == "POST" else parts[-2]
    if (fixed := _FIXED.get((asked.method, last))) is not None:
        return list(_against(fixed, asked.body, last))
    if asked.method not in ("POST", "PATCH") or GROUP not in parts:
        return []
    plural = next((part for part in parts if part in _schemas()), None)
    if plural is None:
        return []
    return list(_against(_schemas()[plural], asked.body, plural, partial=asked.method == "PATCH"))


def _against(schema: JSON, value: Any, path: str, *, partial: bool = False) -> Iterator[str]:
    """`partial`: of a merge patch, in which null removes a field, and what is required may be there already."""
    if value is None and partial:
        return
    if not isinstance(value, _TYPES.get(schema.get("type", ""), object)):
        yield f"{path}: {value!r} is no {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        yield f"{path}: {value!r} is too short"
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        yield f"{path}: {value} is too small"
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _against(schema.get("items", {}), each, f"{path}[{index}]")
    if isinstance(value, dict):
        yield from _fields(schema, value, path, partial=partial)


def _fields(schema: JSON, value: JSON, path: str, *, partial: bool) -> Iterator[str]:
    known, others = schema.get("properties"), schema.get("additionalProperties")
    if not partial:
        yield from (f"{path}: {name} is missing" for name in schema.get("required", ()) if name not in value)
    for name, each in value.items():
        if known is not None and name in known:
            yield from _against(known[name], each, f"{path}.{name}", partial=partial)
        elif isinstance(others, dict):
            yield from _against(others, each, f"{path}.{name}", partial=partial)
        elif known is not None and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{path}: {name} is unknown"
