from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.kube.kinds import POD
from ballast.kube.lists import Objects, Query
from ballast.kube.store import Store
from tests.unit.kube.watched_server import WatchedServer

JSON = dict[str, Any]
Change = tuple[str | None, str | None]


def thing(uid: str, version: int, text: str = "") -> JSON:
    return {"metadata": {"uid": uid, "name": uid, "resourceVersion": str(version)}, "text": text or f"at {version}"}


def store() -> tuple[Store[str], list[Change]]:
    changes: list[Change] = []
    return Store(lambda raw: str(raw["text"]), lambda before, after: changes.append((before, after))), changes


def listed(items: list[JSON], version: int) -> Objects:
    server = WatchedServer(items)
    server.version = version
    return Objects(server, Query(POD))  # type: ignore[arg-type]


def test_the_newer_version_stays_whichever_comes_first() -> None:
    kept, changes = store()
    kept.put(thing("a", 2))
    kept.put(thing("a", 1))
    assert kept.get("a") == "at 2"
    assert changes == [(None, "at 2")]


def test_an_object_that_was_deleted_does_not_come_back_with_a_late_answer() -> None:
    kept, _ = store()
    kept.put(thing("a", 1))
    kept.remove("a", 3)
    kept.put(thing("a", 2))
    assert kept.values() == []


def test_a_deletion_that_is_older_than_what_is_known_is_ignored() -> None:
    kept, _ = store()
    kept.put(thing("a", 5))
    kept.remove("a", 4)
    assert kept.values() == ["at 5"]


def test_an_amended_object_stays_so_until_the_event_of_that_write() -> None:
    kept, _ = store()
    kept.put(thing("a", 1))
    kept.amend("a", 5, lambda text: f"{text}, released")
    kept.put(thing("a", 3))
    assert kept.get("a") == "at 1, released"
    kept.put(thing("a", 5))
    assert kept.get("a") == "at 5"


def test_a_list_takes_out_what_it_does_not_have_unless_that_is_newer_than_the_list() -> None:
    kept, _ = store()
    for uid, version in (("gone", 1), ("written-meanwhile", 12), ("same", 3)):
        kept.put(thing(uid, version))
    differing = kept.replace_all(listed([thing("same", 3), thing("new", 9)], 10))
    assert differing == {"gone", "new"}
    assert kept.uids() == {"written-meanwhile", "same", "new"}


def test_a_list_reads_only_objects_that_have_changed() -> None:
    reads: list[str] = []

    def read(raw: JSON) -> str:
        reads.append(raw["metadata"]["uid"])
        return ""

    kept: Store[str] = Store(read, lambda _, __: None)
    kept.replace_all(listed([thing("a", 1), thing("b", 1)], 2))
    kept.replace_all(listed([thing("a", 1), thing("b", 3)], 4))
    assert reads == ["a", "b", "b"]


def test_an_object_that_cannot_be_read_is_left_out_and_named(caplog: pytest.LogCaptureFixture) -> None:
    kept: Store[int] = Store(lambda raw: int(raw["text"]), lambda _, __: None)
    kept.put(thing("good", 1, "7"))
    kept.put(thing("bad", 2, "seven"))
    assert kept.values() == [7]
    assert "left out /bad" in caplog.text


def test_an_object_that_cannot_be_read_is_news_once_and_not_in_every_list() -> None:
    kept: Store[int] = Store(lambda raw: int(raw["text"]), lambda _, __: None)
    bad = thing("bad", 2, "seven")
    assert kept.replace_all(listed([bad], 5)) == {"bad"}
    assert kept.replace_all(listed([bad], 6)) == set()
    assert kept.replace_all(listed([thing("bad", 7, "7")], 8)) == {"bad"}
    assert kept.values() == [7]


def test_an_object_that_could_not_be_read_is_forgotten_when_it_is_gone() -> None:
    kept: Store[int] = Store(lambda raw: int(raw["text"]), lambda _, __: None)
    kept.put(thing("bad", 2, "seven"))
    assert kept.replace_all(listed([], 5)) == {"bad"}
    assert kept.uids() == set()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12), st.randoms(use_true_random=False))
def test_in_whatever_order_events_of_several_sources_come_the_end_is_the_same(
    history: list[tuple[str, bool]], order: Any
) -> None:
    """Watch, answers to writes and lists may bring the same changes twice, and late."""
    events = [(uid, version, alive) for version, (uid, alive) in enumerate(history, 1)]
    last = {uid: (version, alive) for uid, version, alive in events}
    shuffled = [*events, *events]
    order.shuffle(shuffled)
    kept, _ = store()
    for uid, version, alive in shuffled:
        if alive:
            kept.put(thing(uid, version))
        else:
            kept.remove(uid, version)
    assert {uid: kept.get(uid) for uid in kept.uids()} == {
        uid: f"at {version}" for uid, (version, alive) in last.items() if alive
    }


def test_raw_objects_keep_what_their_reader_makes_of_them() -> None:
    kept, _ = store()
    kept.put(msgspec.json.decode(json.dumps(thing("a", 1)).encode(), type=dict[str, Any]))
    assert kept.version("a") == 1
