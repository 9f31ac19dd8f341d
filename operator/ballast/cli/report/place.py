"""Places and times as people write them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from ballast.model import Location, Node


def zone_and_rack(location: Location) -> tuple[str, str]:
    """The farthest level and those between it and the node; empty where there is no label."""
    between = [value for value in location[1:-1] if value is not None]
    zone = location[0] if len(location) > 1 else None
    return zone or "", "/".join(between)


@dataclass(frozen=True, slots=True)
class Naming:
    """Nodes, by themselves and within sentences, without the domain that all of them share."""

    domain: str = ""

    @classmethod
    def of(cls, nodes: Iterable[Node], *, whole: bool = False) -> Naming:
        """`whole`: leave names as they are."""
        domains = {node.name.partition(".")[2] for node in nodes}
        return cls() if whole or len(domains) != 1 else cls(domains.pop())

    def short(self, text: str) -> str:
        return text.replace(f".{self.domain}", "") if self.domain else text


def instant(at: float | None) -> str | None:
    """Seconds since the epoch as RFC 3339, in whole seconds."""
    if at is None:
        return None
    return datetime.fromtimestamp(round(at), UTC).isoformat().replace("+00:00", "Z")
