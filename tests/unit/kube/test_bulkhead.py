"""What takes long is not waited for, and little of it is under way."""

from __future__ import annotations

import time
from collections import Counter
from threading import Event

import pytest

from ballast.kube.bulkhead import Bulkhead
from tests.testbed.waiting import wait_until

Item = tuple[str, str]
"""Namespace and name."""


class Server:
    """Answers about pods of the namespace `slow` when it is let."""

    def __init__(self, *, threads: int = 4, seconds: float = 0.6) -> None:
        self.ahead = 0.0
        self.bulkhead = Bulkhead(threads, seconds=seconds, monotonic=lambda: time.monotonic() + self.ahead)
        self.asked: list[str] = []
        self.let = Event()

    def answer(self, item: Item) -> str:
        namespace, name = item
        self.asked.append(name)
        if namespace == "slow":
            self.let.wait(30)
        elif namespace == "busy":
            time.sleep(0.05)
        return f"{name} is done"

    def await_asked(self, count: int) -> None:
        wait_until(lambda: len(self.asked) >= count, what=f"{count} are asked for", timeout_seconds=10)

    def ask(self, *items: Item) -> list[str | None]:
        return self.bulkhead.map(self.answer, items, key=lambda item: item[1], namespace=lambda item: item[0])


def of(namespace: str, count: int) -> list[Item]:
    return [(namespace, f"{namespace}-{number:03}") for number in range(count)]


def test_answers_come_in_the_order_in_which_was_asked() -> None:
    server = Server(threads=3, seconds=30.0)
    items = of("team", 50)
    assert server.ask(*items) == [f"{name} is done" for _, name in items]
    assert server.ask() == []


def test_a_single_request_has_a_single_answer_which_is_not_waited_for_if_it_is_late() -> None:
    server = Server()
    late, mine = of("slow", 1)[0], of("team", 1)[0]
    assert server.bulkhead.one(lambda: server.answer(late), key=late[1], namespace="slow") is None
    assert server.bulkhead.under_way(late[1])
    assert server.bulkhead.one(lambda: server.answer(mine), key=mine[1], namespace="team") == "team-000 is done"
    server.let.set()


def test_nothing_waits_long_for_answers_about_another_namespace() -> None:
    server = Server()
    found = server.ask(*of("slow", 100), ("team", "mine"))
    assert found == [*[None] * 100, "mine is done"]
    assert len(server.asked) == 5, "what had not begun is dropped"
    assert server.ask(("team", "next")) == ["next is done"]
    server.let.set()


def test_a_slow_namespace_is_not_waited_for_a_second_time_and_little_of_it_is_under_way() -> None:
    server = Server(threads=32)
    server.ask(*of("slow", 6))
    server.bulkhead._seconds = 30.0
    assert server.ask(*of("slow", 100), ("team", "mine"))[-1] == "mine is done"
    server.await_asked(17)
    assert {name for _, name in of("slow", 6)} < set(server.asked)
    server.ask(*of("slow", 100))
    assert len(server.asked) == 17
    server.let.set()


def test_a_namespace_that_was_slow_is_waited_for_again_after_a_minute() -> None:
    server = Server()
    server.ask(*of("slow", 1))
    server.let.set()
    server.ahead = 61.0
    server.bulkhead._seconds = 30.0
    assert server.ask(("slow", "another")) == ["another is done"]


def test_what_was_answered_late_is_asked_for_again() -> None:
    server = Server()
    server.let.set()
    assert server.ask(*of("slow", 1)) == server.ask(*of("slow", 1)) == ["slow-000 is done"]


def test_an_error_is_raised_where_the_answers_are_waited_for() -> None:
    def fail(item: str) -> None:
        raise ValueError(item)

    bulkhead = Bulkhead(2, seconds=30.0)
    with pytest.raises(ValueError, match="a"):
        bulkhead.map(fail, ["a"], key=str, namespace=str)


def test_many_quick_answers_that_take_long_together_make_no_namespace_slow() -> None:
    server = Server(threads=2, seconds=1.0)
    assert None not in server.ask(*of("busy", 20))
    left = server.ask(*of("busy", 400))
    assert left.count(None) > 50, "what had not begun is dropped"
    assert None not in server.ask(*of("busy", 8))


def test_of_slow_namespaces_few_requests_are_under_way_in_each_and_in_all() -> None:
    """Each answer may take as much memory as a page of long pods."""
    let, asked = Event(), []
    bulkhead = Bulkhead(4, seconds=0.6, most_while_slow=1, most_slow=3)

    def answer(item: Item) -> None:
        asked.append(item[0])
        let.wait(30)

    def ask(turn: int) -> None:
        for number in range(5):
            item = (f"slow-{number}", f"{number}-{turn}")
            bulkhead.map(answer, [item], key=lambda each: each[1], namespace=lambda each: each[0])

    ask(1)
    ask(2)
    assert sorted(asked) == [f"slow-{number}" for number in range(5)], "once each, before it is known to be slow"
    let.set()
    wait_until(lambda: not any(bulkhead.under_way(f"{n}-1") for n in range(5)), what="answers", timeout_seconds=10)
    let.clear()
    ask(3)
    ask(4)
    wait_until(lambda: len(asked) >= 8, what="three are asked for", timeout_seconds=10)
    time.sleep(0.2)
    assert len(asked) == 8
    let.set()


def test_the_more_namespaces_are_slow_the_fewer_requests_are_under_way_in_each() -> None:
    """A webhook may be slow for hundreds of namespaces, and each request has a thread and a connection."""
    server = Server(seconds=30.0)
    items = [item for name in range(40) for item in ((f"slow-{name}", f"{name}-{number}") for number in range(16))]
    server.bulkhead._slow_until = dict.fromkeys(
        (namespace for namespace, _ in items), server.bulkhead._monotonic() + 60
    )

    def answer(item: Item) -> str:
        server.asked.append(item[1])
        server.let.wait(30)
        return "done"

    for _ in range(2):
        server.bulkhead.map(answer, items, key=lambda item: item[1], namespace=lambda item: item[0])
    server.await_asked(240)
    by_namespace = Counter(name.split("-")[0] for name in server.asked)
    server.let.set()
    assert set(by_namespace.values()) == {6}, "256 // 40"
    assert len(by_namespace) == 40
