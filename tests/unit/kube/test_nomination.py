"""Nominating a pod to a node: what is sent, and what each answer means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ballast.kube.actions import Changed, Refused, Vanished
from ballast.kube.client import Limits
from ballast.kube.nomination import Cleared, Nominated, clear_nomination, nominate
from ballast.kube.pods import Pod, PodReader
from tests.apiserver import Answer, scripted
from tests.unit.kube.builders import GATE, NOMINATED_BY_ANOTHER, NOMINATED_BY_US, executor

ONCE = Limits(attempts=1)
NAMED = {"nominatedNodeName": "n1"}
STALE = Answer(422, {"message": "the server rejected our request", "details": {}})


def read(**changes: Any) -> Pod:
    return PodReader().read(executor(gates=[GATE], **changes))


def ours(node: str = "n1") -> Pod:
    return read(status={"nominatedNodeName": node}, managed_fields=[NOMINATED_BY_US])


def theirs(node: str) -> Pod:
    return read(status={"nominatedNodeName": node}, managed_fields=[NOMINATED_BY_ANOTHER])


def answer(version: str = "8", gates: tuple[dict[str, str], ...] = (GATE,)) -> Answer:
    pod = executor(gates=list(gates))
    pod["metadata"]["resourceVersion"] = version
    return Answer(body=pod)


@pytest.mark.parametrize(
    ("pod", "answers", "outcome"),
    [
        pytest.param(read(), [answer()], Nominated, id="done"),
        pytest.param(ours("n2"), [answer()], Nominated, id="our own is replaced"),
        pytest.param(ours(), [Answer(500)], Nominated, id="it was before: nothing is asked"),
        pytest.param(theirs("n2"), [Answer(500)], Refused, id="another's is left alone"),
        pytest.param(read(), [answer(gates=())], Changed, id="released meanwhile"),
        pytest.param(read(), [STALE], Changed, id="touched since it was read"),
        pytest.param(read(), [Answer(409, {"message": "modified"})], Changed, id="or while it was written"),
        pytest.param(read(), [Answer(hang_up=True)], Changed, id="no answer: read it again"),
        pytest.param(read(), [Answer(404)], Vanished, id="deleted"),
        pytest.param(read(), [Answer(403, {"message": "no"})], Refused, id="not allowed"),
        pytest.param(read(), [Answer(422, {"details": {"causes": [{"field": "status"}]}})], Refused, id="not valid"),
    ],
)
def test_a_nomination_ends_in(pod: Pod, answers: list[Answer], outcome: type, tmp_path: Path) -> None:
    with scripted(*answers) as script:
        assert isinstance(nominate(script.client(tmp_path, ONCE), pod, "n1"), outcome)


def test_it_is_guarded_by_uid_and_version_and_the_pod_has_its_new_version(tmp_path: Path) -> None:
    with scripted(answer("8")) as script:
        outcome = nominate(script.client(tmp_path), read(), "n1")
    assert isinstance(outcome, Nominated)
    assert outcome.pod.held is not None
    assert outcome.pod.held.resource_version == outcome.pod.resource_version == "8"
    assert outcome.pod.nominated == "n1"
    (asked,) = script.asked
    assert asked.path.split("?")[0].endswith("/pods/spark-1-exec-1/status")
    assert [(each["op"], each["path"], each["value"]) for each in asked.body] == [
        ("test", "/metadata/uid", "uid-spark-1-exec-1"),
        ("test", "/metadata/resourceVersion", "7"),
        ("add", "/status/nominatedNodeName", "n1"),
    ]


@pytest.mark.parametrize(
    ("pod", "answers", "outcome"),
    [
        pytest.param(ours(), [answer()], Cleared, id="done"),
        pytest.param(read(status=NAMED), [Answer(500)], Changed, id="another's stays"),
        pytest.param(read(), [Answer(500)], Changed, id="there is none"),
        pytest.param(ours(), [STALE], Changed, id="touched since it was read"),
        pytest.param(ours(), [Answer(404)], Vanished, id="deleted"),
        pytest.param(ours(), [Answer(403, {"message": "no"})], Refused, id="not allowed"),
    ],
)
def test_clearing_ends_in(pod: Pod, answers: list[Answer], outcome: type, tmp_path: Path) -> None:
    with scripted(*answers) as script:
        assert isinstance(clear_nomination(script.client(tmp_path, ONCE), pod), outcome)
