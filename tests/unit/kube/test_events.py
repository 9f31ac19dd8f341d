from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.kube import events
from ballast.kube.client import Client
from ballast.kube.errors import KubeError
from ballast.kube.events import EventRecorder, Notice, Regarding, _shortened
from ballast.kube.kinds import NODE, POD
from ballast.tenancy import allowance
from tests.apiserver import Answer, scripted
from tests.lanes import AtOnce

OK = Answer(201)
BUSY = Answer(429, {"message": "limit reached on type Namespace"}, {"Retry-After": "2"})
FORBIDDEN = Answer(403, {"message": "the namespace is being terminated"})


def notice(number: int, namespace: str = "analytics") -> Notice:
    return Notice(Regarding(POD, f"exec-{number}", f"uid-{number}", namespace), "Placed", "Place", "on node-1")


class Told:
    """A recorder at a time that the test sets, and the errors that it told of."""

    def __init__(self, client: Client) -> None:
        self.now = 1_800_000_000.0
        self.errors: list[KubeError] = []
        self.recorder = EventRecorder(
            client, AtOnce(), instance="one", clock=lambda: self.now, on_error=self.errors.append
        )

    def post(self, *numbers: int, namespace: str = "analytics") -> None:
        for number in numbers:
            self.recorder.post(notice(number, namespace))


def test_a_series_that_is_throttled_is_not_waited_for_either(tmp_path: Path) -> None:
    with scripted(OK, BUSY) as script:
        told = Told(script.client(tmp_path))
        told.post(1)
        told.now += 301
        told.post(1)
    assert [asked.method for asked in script.asked] == ["POST", "PATCH"]
    assert script.slept == []


def test_a_flood_of_events_about_one_namespace_is_cut_short_and_others_have_theirs(tmp_path: Path) -> None:
    with scripted(*[OK] * 200) as script:
        told = Told(script.client(tmp_path))
        told.post(*range(100), namespace="junk")
        flooded = len(script.asked)
        told.post(1)
        told.now += 5.0
        told.post(*range(100, 200), namespace="junk")
        told.now -= 3600.0
        told.post(*range(200, 300), namespace="junk")
    assert flooded == 25
    assert [asked.path.split("/")[5] for asked in script.asked[25:]] == ["analytics", *["junk"] * 5]
    assert told.errors == []


def test_an_event_that_is_refused_for_itself_keeps_back_no_other(tmp_path: Path) -> None:
    with scripted(FORBIDDEN, OK) as script:
        told = Told(script.client(tmp_path))
        told.post(1, 2)
    assert (len(script.asked), len(told.errors)) == (2, 1)


def test_the_same_event_is_counted_again_when_the_clock_was_set_back(tmp_path: Path) -> None:
    with scripted(OK) as script:
        told = Told(script.client(tmp_path))
        told.post(1, 1)
        assert len(script.asked) == 1
        told.now -= 3600
        told.post(1)
    assert [asked.method for asked in script.asked] == ["POST", "PATCH"]
    assert script.asked[1].body["series"]["count"] == 3


@pytest.mark.parametrize("last", ["a", "-", "."])
def test_an_event_about_an_object_with_a_long_name_has_a_name_that_the_api_server_takes(
    last: str, tmp_path: Path
) -> None:
    long = Regarding(POD, "a" * 199 + last + "a" * 50, "uid", "analytics")
    with scripted(OK) as script:
        Told(script.client(tmp_path)).recorder.post(Notice(long, "Placed", "Place", "on node-1"))
    name = script.asked[0].body["metadata"]["name"]
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name)
    assert len(name) <= 253


def test_an_event_about_a_move_names_the_node_that_it_relates_to(tmp_path: Path) -> None:
    target = Regarding(NODE, "node-2", "uid-node-2")
    with scripted(OK) as script:
        told = Told(script.client(tmp_path))
        told.recorder.post(replace(notice(1), related=target))
        told.post(1)
    bodies = [asked.body for asked in script.asked]
    assert [body.get("related") for body in bodies] == [
        {"apiVersion": "v1", "kind": "Node", "name": "node-2", "uid": "uid-node-2"},
        None,
    ]


def test_what_is_remembered_of_events_has_an_end_and_the_latest_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(events, "_KEPT", 3)
    with scripted(OK) as script:
        told = Told(script.client(tmp_path))
        told.post(1, 2, 3, 4)
        told.post(4, 1)
    assert [asked.body["regarding"]["name"] for asked in script.asked] == [f"exec-{n}" for n in (1, 2, 3, 4, 1)]


def test_the_namespace_that_was_heard_of_longest_ago_is_the_first_to_be_forgotten(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(allowance, "_KEPT", 2)
    with scripted(OK) as script:
        told = Told(script.client(tmp_path))
        for namespace in ("flooding", "second", "flooding", "third", "flooding"):
            told.post(*range(25), namespace=namespace)
        posted = Counter(asked.path.split("/")[5] for asked in script.asked)
    assert posted == {"flooding": 25, "second": 25, "third": 25}


@given(st.text(min_size=400, max_size=1500))
def test_a_note_is_as_long_as_the_server_takes_at_most_and_ends_within_no_character(note: str) -> None:
    cut = _shortened(note)
    assert len(cut.encode()) <= 1024
    assert cut == note or note.startswith(cut.removesuffix("…"))


def test_what_is_remembered_of_a_notice_is_no_longer_than_its_event(tmp_path: Path) -> None:
    with scripted(OK) as script:
        told = Told(script.client(tmp_path))
        told.recorder.post(replace(notice(1), note="n" * 1_000_000))
        assert max(len(each.note) for each in told.recorder._posted) <= 1024
        told.recorder.post(replace(notice(1), note="n" * 1_000_000))
    assert len(script.asked) == 1, "it is the same one"
