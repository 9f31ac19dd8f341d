"""The audit log is read from where a reader was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.testbed.audit import _CHUNK_BYTES, end_of, requests_in


def line(name: str, *, padding: int = 0) -> str:
    event = {
        "user": {"username": "system:serviceaccount:ns:operator"},
        "verb": "get",
        "objectRef": {"resource": "pods", "name": name},
        "requestURI": "/" + "x" * padding,
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
    }
    return json.dumps(event) + "\n"


@pytest.mark.parametrize("padding", [0, 3 * _CHUNK_BYTES], ids=["short lines", "lines longer than a chunk"])
def test_only_whole_lines_after_a_place_are_read(tmp_path: Path, padding: int) -> None:
    log, late = tmp_path / "audit.log", line("late", padding=padding)
    assert (end_of(log), list(requests_in(log))) == (0, [])
    log.write_text(line("early", padding=padding) + late[:-5])
    place = end_of(log)
    assert [each.name for each in requests_in(log)] == ["early"]
    assert list(requests_in(log, since=place)) == []
    log.write_text(line("early", padding=padding) + late)
    assert [each.name for each in requests_in(log, since=place)] == ["late"]
    log.write_text(late[:-5])
    assert end_of(log) == 0
