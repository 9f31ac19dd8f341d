"""A page of a list, its objects left as the bytes in which they came until they are read."""

from __future__ import annotations

import msgspec

from ballast.kube.document import JSON


class PageMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    """What the next page is asked for with; empty on the last one."""


class Page(msgspec.Struct, frozen=True):
    metadata: PageMetadata = msgspec.field(default_factory=PageMetadata)
    items: tuple[msgspec.Raw, ...] | None = None


def parsed(raw: bytes | msgspec.Raw) -> JSON:
    """Raises msgspec.DecodeError where this is no JSON object."""
    return msgspec.json.decode(raw, type=JSON)
