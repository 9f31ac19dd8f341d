from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.kube.client import Client
from ballast.kube.document import Page
from ballast.kube.errors import Unavailable
from ballast.kube.informer import Informer, Store, Timing
from ballast.kube.kinds import POD
from ballast.kube.objects import Objects, Query
from ballast.kube.stream import Stream
from tests.apiserver import Answer, ApiServer, Fault, Watch
from tests.testbed.waiting import wait_until
from tests.unit.kube.trials import recoveries

JSON = dict[str, Any]
AT_ONCE = Timing(first_backoff_seconds=0.0, longest_backoff_seconds=0.0)


class Longest(random.Random):
    """Every chance falls on the largest value."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


def bookmark(version: int) -> bytes:
    return json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}).encode() + b"\n"


@dataclass
class Followed:
    """What an informer knows, and a way to wait for it."""

    server: ApiServer
    client: Client
    names: set[str] = field(default_factory=set)
    changed: threading.Condition = field(default_factory=threading.Condition)
    now: float = 0.0

    @property
    def listed(self) -> int:
        """How often everything was."""
        asked = [each.query for each in self.server.asked]
        return len([each for each in asked if "watch" not in each and each.get("limit") != "1"])

    def put(self, *names: str) -> None:
        self.server.put("pods", *({"metadata": {"name": name}} for name in names))

    def follow(self, before: str | None, after: str | None) -> None:
        with self.changed:
            self.names = (self.names - {before or ""}) | ({after} if after else set())
            self.changed.notify_all()

    def until(self, *names: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.names == set(names), 30), self.names


@contextmanager
def followed(*names: str, timing: Timing = AT_ONCE) -> Iterator[tuple[Followed, Informer[str]]]:
    server = ApiServer()
    known = Followed(server, server.client())
    known.put(*names)
    store: Store[str] = Store(lambda raw: str(raw["metadata"]["name"]), known.follow)
    informer = Informer(known.client, Query(POD), store, monotonic=lambda: known.now, timing=timing)
    informer.start()
    try:
        yield known, informer
    finally:
        informer.stop()
        informer.join(30)
        assert not informer.running


def test_it_lists_once_and_follows_the_watch_from_there() -> None:
    with followed("a") as (known, informer):
        watch = known.server.next_watch()
        assert informer.synced
        assert watch.parameters["resourceVersion"] == str(known.server.version)
        assert watch.parameters["allowWatchBookmarks"] == "true"
        longest_seconds = Timing().server_seconds
        assert 0.8 * longest_seconds - 1 <= int(watch.parameters["timeoutSeconds"]) <= longest_seconds
        known.put("b")
        known.until("a", "b")
        known.server.remove("pods", "a")
        known.until("b")
        assert known.listed == 1


def test_it_lists_and_watches_only_what_it_was_asked_for() -> None:
    server, wanted = ApiServer(), {"labelSelector": "spark-role", "fieldSelector": "spec.nodeName=node-1"}
    query = Query(POD, labels=wanted["labelSelector"], fields=wanted["fieldSelector"])
    store: Store[str] = Store(str, lambda _, __: None)
    informer = Informer(server.client(), query, store, monotonic=lambda: 0.0, timing=AT_ONCE)
    informer.start()
    try:
        watch = server.next_watch()
    finally:
        informer.stop()
        informer.join(30)
    assert [asked.items() >= wanted.items() for asked in (server.asked[0].query, watch.parameters)] == [True, True]


def test_a_watch_that_ends_is_resumed_after_what_was_last_heard_and_nothing_is_listed() -> None:
    with followed() as (known, informer):
        watch = known.server.next_watch()
        known.put("a")
        known.until("a")
        watch.send_raw(bookmark(150))
        watch.end()
        assert known.server.next_watch(2).parameters["resourceVersion"] == "150"
        assert (known.listed, informer.restarts) == (1, 0)


@pytest.mark.parametrize(
    "befall",
    [
        pytest.param(lambda watch: watch.strike(Fault.SILENT), id="silent"),
        pytest.param(lambda watch: watch.strike(Fault.CUT), id="cut"),
        pytest.param(lambda watch: watch.strike(Fault.HALF), id="cut within an event"),
        pytest.param(lambda watch: watch.strike(Fault.PAGE), id="a page of a gateway"),
        pytest.param(lambda watch: watch.send_raw(b'{"type":"ERROR","object":{"code":500}}\n'), id="error 500"),
    ],
)
def test_a_watch_that_breaks_is_opened_again_where_it_was(befall: Callable[[Watch], None]) -> None:
    with followed("a") as (known, informer):
        first = known.server.next_watch()
        befall(first)
        again = known.server.next_watch(2)
        assert again.parameters["resourceVersion"] == first.parameters["resourceVersion"]
        known.put("b")
        known.until("a", "b")
        assert known.listed == 1
        assert informer.restarts == 1


def test_a_version_that_expired_brings_a_list_that_takes_out_what_vanished_unheard() -> None:
    with followed("a", "b") as (known, _):
        known.server.next_watch()
        with known.server.news:
            known.server.remove("pods", "a")
            known.server.strike(Fault.EXPIRED)
        known.until("b")
        assert known.server.next_watch(2).parameters["resourceVersion"] == str(known.server.version)


@pytest.mark.parametrize("fault", [Fault.SILENT, Fault.CUT], ids=["silent", "a restart"])
def test_after_etcd_was_restored_from_a_backup_the_watch_begins_where_the_server_is_now(fault: Fault) -> None:
    """It was opened at a version that was still to come: the API server says nothing until then, and executors stayed
    gated for as long.
    """
    with followed("a", "b") as (known, informer):
        known.server.next_watch()
        known.put("a", "a", "c")
        known.server.remove("pods", "b")
        known.until("a", "c")
        with known.server.news:
            known.server.restore(4)
            known.put("b")
            known.server.strike(fault)
        known.until("a", "b")
        assert known.server.next_watch(2).parameters["resourceVersion"] == str(known.server.version)
        known.put("a", "c")
        known.until("a", "b", "c")
        assert informer.store.version("uid-a") == known.server.version - 1
        assert informer.store.restorations == 1


def test_where_watches_are_kept_back_what_is_new_comes_with_a_list() -> None:
    """A proxy that buffers answers delivers no event: executors stayed gated until the next resync, half an hour."""
    with followed("a") as (known, _):
        known.server.next_watch()
        known.now = Timing().silent_seconds
        with known.server.news:
            known.put("b")
            known.server.strike(Fault.SILENT)
        assert known.server.next_watch(2).parameters["resourceVersion"] == str(known.server.version)
        known.until("a", "b")
        assert known.listed == 2


def test_a_version_that_expired_is_listed_at_once_whatever_pause_an_outage_has_brought() -> None:
    """A gated executor waits for it; only a version that was listed just now is not worth another list at once."""
    patient = Timing(first_backoff_seconds=3600.0, longest_backoff_seconds=3600.0)
    with followed("a", timing=patient) as (known, _):
        known.server.next_watch()
        known.now = 10.0
        with known.server.news:
            known.server.remove("pods", "a")
            known.put("b")
            known.server.strike(Fault.EXPIRED)
        known.until("b")


def test_a_server_that_refuses_the_watch_for_a_while_is_asked_again() -> None:
    refusals = [Answer(503, {"message": "overloaded"})] * 3
    with followed("a") as (known, informer):
        watch, by = known.server.next_watch(), known.server.by
        known.server.by = lambda asked: refusals.pop() if refusals and "watch" in asked.query else by(asked)
        watch.strike(Fault.SILENT)
        known.server.next_watch(2)
        known.put("b")
        known.until("a", "b")
        assert informer.restarts == 4


@pytest.mark.parametrize(("lasted_seconds", "pauses"), [(1.0, [1, 2, 4]), (20.0, [1, 1, 1])])
def test_only_watches_that_break_soon_are_opened_again_after_growing_pauses(
    lasted_seconds: float, pauses: list[float]
) -> None:
    """A load balancer may reset every connection once a minute."""
    client, now = ApiServer().client(), 0.0
    waited: list[float] = []

    def breaking(*_: Any, **__: Any) -> Any:
        nonlocal now
        now += lasted_seconds
        raise Unavailable("watch pods", "the watch broke off: read timed out")

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        if len(waited) == len(pauses):
            informer.stop()
        return False

    client.stream = breaking  # type: ignore[method-assign]
    store: Store[str] = Store(lambda raw: str(raw["metadata"]["name"]), lambda _, __: None)
    timing = Timing(first_backoff_seconds=1.0, longest_backoff_seconds=15.0)
    informer = Informer(client, Query(POD), store, monotonic=lambda: now, timing=timing, chance=Longest())
    informer._stopped.wait = wait  # type: ignore[assignment,method-assign]
    informer.start()
    informer.join(30)
    assert waited == pauses


def test_an_informer_that_is_stopped_while_its_watch_opens_does_not_wait_for_an_event() -> None:
    with followed() as (known, informer):
        first, opened = known.server.next_watch(), known.client.stream

        def stopped_meanwhile(*given: Any, **options: Any) -> Stream:
            informer.stop()
            return opened(*given, **options)

        known.client.stream = stopped_meanwhile  # type: ignore[method-assign]
        first.strike(Fault.SILENT)
        informer.join(30)
        assert not informer.running


def test_an_event_that_is_no_event_breaks_the_watch_and_not_the_informer() -> None:
    with followed() as (known, _):
        known.server.next_watch().send_raw(b'{"type": "ADDED", "object": {"metadata": {}}}\n')
        known.server.next_watch(2)
        known.put("a")
        known.until("a")


def test_everything_is_listed_again_after_the_resync_time() -> None:
    """An event may have been lost."""
    with followed("a", "c", timing=Timing(resync_seconds=60.0)) as (known, _):
        watch = known.server.next_watch()
        del known.server.objects["pods", "", "a"]
        known.now = 61.0
        watch.end()
        known.until("c")


def test_its_age_counts_from_the_last_event_or_bookmark() -> None:
    with followed() as (known, informer):
        watch = known.server.next_watch()
        known.now = 50.0
        assert informer.age_seconds == 50.0
        watch.send_raw(bookmark(150))
        known.put("a")
        known.until("a")
        assert informer.age_seconds == 0.0


def test_twenty_times_in_a_row_a_dead_watch_is_replaced() -> None:
    """kopf's watch of executors was seen to die for good in one of six runs under load."""
    with followed() as (known, informer):
        for number in range(20):
            watch = known.server.next_watch(number + 1)
            known.put(f"pod-{number}")
            watch.strike(Fault.SILENT)
        known.until(*(f"pod-{number}" for number in range(20)))
        known.server.next_watch(21)
        assert informer.restarts == 20
        assert known.listed == 1


Change = tuple[str | None, str | None]


def thing(uid: str, version: int, text: str = "") -> JSON:
    return {"metadata": {"uid": uid, "name": uid, "resourceVersion": str(version)}, "text": text or f"at {version}"}


def store() -> tuple[Store[str], list[Change]]:
    changes: list[Change] = []
    return Store(lambda raw: str(raw["text"]), lambda before, after: changes.append((before, after))), changes


def listed(items: list[JSON], version: int) -> Objects:
    server = ApiServer()
    for each in items:
        server.version = int(each["metadata"]["resourceVersion"]) - 1
        server.put("pods", each)
    server.version = version
    return Objects(server.client(), Query(POD))


def meanwhile(found: Objects, kept: Store[str], uid: str) -> Objects:
    """An object is written after the list was read, and before the end of it has come."""
    page = found._page

    def read(limit: int, position: str) -> Page:
        answer = page(limit, position)
        kept.put(thing(uid, int(answer.metadata.resource_version) + 2))
        return answer

    found._page = read  # type: ignore[method-assign]
    return found


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


def test_a_late_answer_to_a_write_amends_neither_an_object_that_is_gone_nor_one_that_is_newer() -> None:
    kept, changes = store()
    kept.amend("a", 5, str.upper)
    kept.put(thing("a", 7))
    kept.amend("a", 5, str.upper)
    kept.remove("a", 8)
    kept.amend("a", 9, str.upper)
    assert changes == [(None, "at 7"), ("at 7", None)]


def test_a_list_takes_out_what_it_does_not_have_unless_that_is_newer_than_the_list() -> None:
    kept, _ = store()
    for uid, version in (("gone", 1), ("same", 3)):
        kept.put(thing(uid, version))
    differing = kept.replace_all(meanwhile(listed([thing("same", 3), thing("new", 9)], 10), kept, "written-meanwhile"))
    assert differing == {"gone", "new"}
    assert kept.uids() == {"written-meanwhile", "same", "new"}
    kept.put(thing("gone", 8))
    assert "gone" not in kept.uids(), "an event from before the list came late"


def test_a_list_that_is_older_than_what_came_before_it_replaces_everything() -> None:
    """etcd was restored from a backup, and gives the same versions again."""
    kept, _ = store()
    kept.replace_all(listed([thing("same", 3), thing("changed", 15, "later"), thing("new", 16)], 20))
    kept.remove("deleted", 18)
    backup = [thing("same", 3), thing("changed", 5, "before"), thing("deleted", 6)]
    assert kept.replace_all(listed(backup, 10)) == {"same", "changed", "deleted", "new"}
    assert sorted(kept.values()) == ["at 3", "at 6", "before"]
    kept.put(thing("changed", 11, "after"))
    assert kept.get("changed") == "after"
    assert kept.replace_all(listed([], 12)) == {"same", "changed", "deleted"}
    assert kept.restorations == 1


def test_a_list_is_believed_against_older_events_that_it_contradicts() -> None:
    """Something between us and the API server told of changes that there were not."""
    kept, _ = store()
    kept.put(thing("changed", 4, "invented"))
    kept.put(thing("deleted", 2))
    kept.remove("deleted", 3)
    kept.put(thing("newer", 9))
    kept.amend("newer", 12, lambda text: f"{text}, released")
    found = [thing("changed", 3, "true"), thing("deleted", 2), thing("newer", 9)]
    assert kept.replace_all(listed(found, 11)) == {"changed", "deleted"}
    assert sorted(kept.values()) == ["at 2", "at 9, released", "true"]


def test_a_list_without_a_version_replaces_nothing() -> None:
    """A gateway has answered with JSON of its own."""
    kept, _ = store()
    kept.put(thing("a", 5))
    assert kept.replace_all(listed([], 0)) == set()
    assert kept.values() == ["at 5"]


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


def test_after_each_fault_the_watch_is_opened_again_and_the_store_is_complete(tmp_path: Path) -> None:
    """`make bench BENCH=watching` does this twenty times on a busy machine, and measures how soon it is."""
    found = recoveries(tmp_path, random.Random(1))
    assert {each.fault for each in found} == set(Fault)


def test_what_there_is_no_right_to_read_is_said_once_and_read_as_soon_as_there_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ApiServer()
    server.put("pods", {"metadata": {"name": "a"}})
    server.refusals["/pods"] = Answer(403, {"message": 'pods is forbidden: User "x" cannot list resource "pods"'})
    known = Followed(server, server.client())
    store: Store[str] = Store(lambda raw: str(raw["metadata"]["name"]), known.follow)
    timing = Timing(first_backoff_seconds=0.0, longest_backoff_seconds=0.0, refused_seconds=0.0)
    informer = Informer(
        known.client, Query(POD), store, monotonic=lambda: known.now, timing=timing, without="placed without it"
    )
    informer.start()
    try:
        wait_until(lambda: len(server.asked) > 2, what="it was asked for again")
        server.refusals.clear()
        known.until("a")
    finally:
        informer.stop()
        informer.join(30)
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(warnings) == 1, warnings
    assert warnings[0].startswith("placed without it: not allowed to list pods")
