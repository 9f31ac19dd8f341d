"""JSON as the API server speaks it, before it becomes our own values, and its timestamps (RFC 3339, UTC)."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

JSON = dict[str, Any]
ReadOnlyJSON = Mapping[str, Any]
LONGEST_KEPT_BYTES = 16 << 10
"""Of a part of one object that is kept in memory as it is: any user may create thousands with parts of a megabyte."""


class PageMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    """What the next page is asked for with; empty on the last one."""


class Page(msgspec.Struct, frozen=True):
    metadata: PageMetadata = msgspec.field(default_factory=PageMetadata)
    items: tuple[msgspec.Raw, ...] | None = None


# Built when this module is loaded: msgspec 0.22 crashes where several threads are the first to decode a type at once.
PAGE = msgspec.json.Decoder(Page)


def parsed(raw: bytes | msgspec.Raw) -> JSON:
    """Raises msgspec.DecodeError where this is no JSON object."""
    return msgspec.json.decode(raw, type=JSON)


def too_long(part: Any) -> bool:
    """Whether the part of an object, as parsed, is longer than what is kept."""
    return len(marshal.dumps(part, 2)) > LONGEST_KEPT_BYTES


def seconds(text: str | None) -> float | None:
    """Seconds since the epoch; None for no timestamp."""
    return datetime.fromisoformat(text).timestamp() if text else None


def text(at_seconds: float) -> str:
    """As metav1.Time has it, to the second."""
    return datetime.fromtimestamp(at_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_text(at_seconds: float) -> str:
    """As metav1.MicroTime has it."""
    return datetime.fromtimestamp(at_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
