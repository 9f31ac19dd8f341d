"""What is written as a log, by its own process: logging is the process' affair."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta
from typing import Any

import pytest

PROGRAM = """
import logging, sys
from ballast.controller.logs import configure
configure(as_json=sys.argv[1] == "json", level=logging.INFO)
log = logging.getLogger("ballast.here")
log.info("released %d of\\n%d", 1, 2, extra={"policy": "streaming"})
values = {"policy": "p", "reason": "two words", "detail": "", "places": {"a": 4}, "kept": True, "settings": object()}
logging.getLogger("ballast.there").info("placed", extra=values)
log.debug("not asked for")
logging.getLogger("kopf.objects").info("of no interest")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("a pass failed")
"""


def written(log_format: str) -> str:
    done = subprocess.run([sys.executable, "-c", PROGRAM, log_format], check=True, capture_output=True, text=True)
    assert done.stdout == ""
    return done.stderr


@pytest.fixture(scope="module")
def entries() -> list[dict[str, Any]]:
    return [json.loads(line) for line in written("json").splitlines()]


def test_every_entry_is_one_line_of_json(entries: list[dict[str, Any]]) -> None:
    assert [(e["level"], e["logger"], e["message"]) for e in entries] == [
        ("INFO", "ballast.here", "released 1 of\n2"),
        ("INFO", "ballast.there", "placed"),
        ("ERROR", "ballast.here", "a pass failed"),
    ]


def test_times_are_told_with_their_zone(entries: list[dict[str, Any]]) -> None:
    assert [datetime.fromisoformat(entry["time"]).utcoffset() for entry in entries] == [timedelta(0)] * 3


def test_what_an_entry_carries_is_a_field_of_it(entries: list[dict[str, Any]]) -> None:
    assert entries[0]["policy"] == "streaming"
    assert entries[1]["places"] == {"a": 4}
    assert "settings" not in entries[1]


def test_a_traceback_stays_within_its_entry(entries: list[dict[str, Any]]) -> None:
    assert "ZeroDivisionError: division by zero" in entries[2]["exc_info"]


def test_text_carries_every_value_behind_the_message() -> None:
    (line,) = [line for line in written("text").splitlines() if "placed" in line]
    assert line.endswith(' INFO ballast.there: placed policy=p reason="two words" detail="" places={"a":4} kept=true')


def test_text_is_for_people() -> None:
    assert " INFO ballast.here: released 1 of\n2 policy=streaming\n" in written("text")
