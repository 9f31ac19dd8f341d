from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ballast.kube.known import Known


def raw(name: str, version: int) -> msgspec.Raw:
    body = {"metadata": {"name": name, "resourceVersion": str(version)}}
    return msgspec.Raw(json.dumps(body).encode())


class Reading:
    """Reads names with versions, and remembers of which objects."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, item: dict[str, Any]) -> list[str]:
        metadata = item["metadata"]
        self.read.append(f"{metadata['name']}@{metadata['resourceVersion']}")
        return [self.read[-1]]


def test_only_what_has_changed_is_read_again() -> None:
    reading = Reading()
    known = Known(reading)
    first = known.of([raw("a", 1), raw("b", 1), raw("c", 1)])
    second = known.of([raw("a", 1), raw("b", 2), raw("d", 1), raw("c", 1)])
    assert second == [["a@1"], ["b@2"], ["d@1"], ["c@1"]]
    assert reading.read == ["a@1", "b@1", "c@1", "b@2", "d@1"]
    assert second[0] is first[0]


def test_what_is_gone_is_forgotten() -> None:
    reading = Reading()
    known = Known(reading)
    known.of([raw("a", 1), raw("b", 1)])
    known.of([raw("b", 1)])
    assert len(known) == 1
    known.of([raw("a", 1), raw("b", 1)])
    assert reading.read == ["a@1", "b@1", "a@1"]


def test_a_list_that_breaks_off_costs_no_knowledge() -> None:
    reading = Reading()
    known = Known(reading)
    known.of([raw("a", 1)])

    def broken() -> Any:
        yield raw("b", 1)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        known.of(broken())
    known.of([raw("a", 1)])
    assert reading.read == ["a@1", "b@1"]
