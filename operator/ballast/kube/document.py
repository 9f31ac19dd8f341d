"""JSON as the API server speaks it, before it becomes our own values, and its timestamps (RFC 3339, UTC)."""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
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
PAGE, _OBJECT = msgspec.json.Decoder(Page), msgspec.json.Decoder(JSON)
_DEEPEST = 100
"""Objects of Kubernetes nest some twenty levels."""
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def decoded(decode: Callable[[bytes | msgspec.Raw], T], raw: bytes | msgspec.Raw) -> T:
    """What `decode` makes of the JSON text, without the parts that nest too deeply for it, and with U+FFFD for what is
    no UTF-8.

    Any user may write managedFields, the one part of an object whose depth no schema bounds, and whose bytes the API
    server returns as they came. A reader that fails at one such object would fail at the whole list.
    """
    try:
        return decode(raw)
    except (RecursionError, UnicodeDecodeError):
        return decode(_shallow(bytes(raw).decode(errors="replace").encode()))


def _shallow(raw: bytes) -> bytes:
    """With null for each object and array that lies too deep."""
    kept: list[bytes] = []
    depth = at = 0
    for token in _TOKEN.finditer(raw):
        match token[0]:
            case b"{" | b"[":
                depth += 1
                if depth == _DEEPEST:
                    kept += [raw[at : token.start()], b"null"]
            case b"}" | b"]":
                if depth == _DEEPEST:
                    at = token.end()
                depth -= 1
    return b"".join([*kept, raw[at:]]) if depth < _DEEPEST else b"".join(kept)


def parsed(raw: bytes | msgspec.Raw) -> JSON:
    """The object. Raises msgspec.DecodeError where this is no JSON object."""
    return decoded(_OBJECT.decode, raw)


def too_long(part: Any) -> bool:
    """Whether a part of an object, as parsed, is longer than what is kept."""
    return len(marshal.dumps(part, 2)) > LONGEST_KEPT_BYTES


def seconds(text: str | None) -> float | None:
    """Seconds since the epoch; None for no timestamp, or for a year that no datetime has: the API server takes 0."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except (ValueError, OverflowError):
        return None


def text(at_seconds: float) -> str:
    """As metav1.Time has it, to the second."""
    return datetime.fromtimestamp(at_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_text(at_seconds: float) -> str:
    """As metav1.MicroTime has it."""
    return datetime.fromtimestamp(at_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
