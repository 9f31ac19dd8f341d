"""Objects of a cluster in a file, as `kubectl get … -o json` or `-o yaml` prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ballast.errors import InvalidField
from ballast.files import documents_in, objects_in, text_of

T = TypeVar("T")
JSON = dict[str, Any]
_MOST_MIB = 1024
"""Of a list of all pods."""
_TABLE = re.compile(r"(?:NAMESPACE +)?NAME +\S|Name: +\S")
"""The first line of what `kubectl get` prints without -o, and `kubectl describe`."""


def documents_of(path: Path, *, remedy: str) -> list[Any]:
    """Raises InvalidField."""
    text = text_of(path, option="--filename", remedy=remedy, most_mib=_MOST_MIB)
    if _TABLE.match(text):
        raise InvalidField("--filename", str(path), f"it is what kubectl prints for people; {remedy}")
    return documents_in(text, name=str(path), option="--filename", remedy=remedy)


def objects_by_kind(found: Iterable[Any]) -> Mapping[str, Sequence[JSON]]:
    """Those that name their kind, and those of a list that does."""
    by_kind: dict[str, list[JSON]] = {}
    for each in objects_in(found):
        by_kind.setdefault(str(each.get("kind") or ""), []).append(each)
    return by_kind
