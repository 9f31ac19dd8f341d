"""Progress is found in what people have: a file of objects, a driver's log, a structured log, kubectl's output."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from ballast.sizing.progress_log import reported

BATCH = {"batchId": 7, "numInputRows": 120}
INDENTED = json.dumps(BATCH, indent=2).splitlines()
ANNOUNCED = "26/11/29 10:00:00 INFO MicroBatchExecution: Streaming query made progress: "


def found(lines: Iterable[str]) -> list[tuple[int, object]]:
    return [(number, json.loads(text)) for number, text in reported(lines)]


def test_lines_that_are_objects_are_returned_as_they_are() -> None:
    lines = [json.dumps(BATCH), "", json.dumps(BATCH)]
    assert list(reported(lines)) == [(1, lines[0]), (2, ""), (3, lines[2])]


def test_nothing_is_found_in_nothing() -> None:
    assert list(reported([])) == []


def test_an_object_over_several_lines_is_one() -> None:
    assert found(INDENTED) == [(1, BATCH)]


def test_objects_over_several_lines_follow_each_other_or_stand_in_an_array() -> None:
    assert found([*INDENTED, *INDENTED]) == [(1, BATCH), (1 + len(INDENTED), BATCH)]
    assert found(["[", *INDENTED[:-1], "},", *INDENTED, "]"]) == [(1, BATCH), (1, BATCH)]


def test_where_an_object_breaks_off_its_line_is_left_to_the_reader() -> None:
    assert list(reported([*INDENTED, "{", '  "batchId": '])) == [(1, json.dumps(BATCH)), (5, "{")]


def test_a_drivers_log_has_the_object_behind_the_announcement() -> None:
    other = "26/11/29 10:00:00 INFO CheckpointFileManager: renamed"
    lines = [other, ANNOUNCED + INDENTED[0], *INDENTED[1:], other]
    assert found(lines) == [(2, BATCH)]


def test_an_announcement_and_its_object_may_share_a_line() -> None:
    assert found([ANNOUNCED + json.dumps(BATCH)]) == [(1, BATCH)]


@pytest.mark.parametrize("stamp", ["2026-11-29T10:00:00.123456789Z ", "[pod/etl-driver/spark-kubernetes-driver] "])
def test_kubectl_writes_before_each_line(stamp: str) -> None:
    lines = [stamp + line for line in [ANNOUNCED + INDENTED[0], *INDENTED[1:]]]
    assert found(lines) == [(1, BATCH)]


@pytest.mark.parametrize("key", ["msg", "message"])
def test_a_structured_log_has_the_object_in_its_message(key: str) -> None:
    message = "Streaming query made progress: " + json.dumps(BATCH, indent=2)
    assert found([json.dumps({"level": "INFO", key: message})]) == [(1, BATCH)]


def test_a_structured_line_without_a_message_is_read_behind_the_announcement() -> None:
    (found,) = reported(['{"level": "INFO", "text": "Streaming query made progress: {}"}'])
    assert found == (1, "{}")


def test_a_structured_line_that_breaks_off_is_left_to_the_reader() -> None:
    assert list(reported(['{"msg": "Streaming query made progress: {'])) == [(1, "{")]


def test_an_announcement_without_an_object_is_left_to_the_reader() -> None:
    assert list(reported([ANNOUNCED.rstrip(), "26/11/29 10:00:01 INFO other"])) == [(1, "nothing")]
    assert list(reported([ANNOUNCED + "soon"])) == [(1, "soon")]
