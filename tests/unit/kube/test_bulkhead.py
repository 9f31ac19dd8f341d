"""What takes long is not waited for, and little of it is under way."""

from __future__ import annotations

import threading
from collections import Counter
from threading import Event, Semaphore

import pytest

from ballast.kube.bulkhead import Bulkhead
from tests.testbed.waiting import wait_until

Item = tuple[str, str]
"""Namespace and name."""
PATIENCE_SECONDS = 60.0


class Server:
    """Answers about pods of namespaces whose name begins with `slow` when it is let.

    The clock goes on, by as much as was to be waited for, only when `late` answers are kept back.
    """

    def __init__(
        self, *, threads: int = 4, late: int = 1, most_while_slow: int = 16, most_slow: int | None = None
    ) -> None:
        self.now, self.late = 0.0, late
        self.bulkhead = Bulkhead(
            threads,
            most_while_slow=most_while_slow,
            most_slow=most_slow,
            monotonic=lambda: self.now,
            wait=self.wait,
        )
        self.asked: list[str] = []
        self.kept_back: list[str] = []
        self.let = Event()

    def wait(self, done: Event, seconds: float) -> bool:
        wait_until(
            lambda: done.is_set() or len(self.kept_back) >= self.late,
            what="all answers, or late ones",
            timeout_seconds=PATIENCE_SECONDS,
            poll_seconds=0.001,
        )
        if not done.is_set():
            self.now += seconds
        return done.is_set()

    def answer(self, item: Item) -> str:
        namespace, name = item
        self.asked.append(name)
        if namespace.startswith("slow") and not self.let.is_set():
            self.kept_back.append(name)
            self.let.wait(PATIENCE_SECONDS)
        return f"{name} is done"

    def answer_all(self) -> None:
        """Until nothing is under way."""
        self.let.set()
        for each in threading.enumerate():
            if each.name == "bulkhead":
                each.join(PATIENCE_SECONDS)
        self.kept_back.clear()

    def ask(self, *items: Item) -> list[str | None]:
        return self.bulkhead.map(self.answer, items, key=lambda item: item[1], namespace=lambda item: item[0])


def of(namespace: str, count: int) -> list[Item]:
    return [(namespace, f"{namespace}-{number:03}") for number in range(count)]


def test_answers_come_in_the_order_in_which_was_asked() -> None:
    server = Server(threads=3)
    items = of("team", 50)
    assert server.ask(*items) == [f"{name} is done" for _, name in items]
    assert server.ask() == []


def test_a_single_request_has_a_single_answer_which_is_not_waited_for_if_it_is_late() -> None:
    server = Server()
    late, mine = of("slow", 1)[0], of("team", 1)[0]
    assert server.bulkhead.one(lambda: server.answer(late), key=late[1], namespace="slow") is None
    assert server.bulkhead.under_way(late[1])
    server.late = 2
    assert server.bulkhead.one(lambda: server.answer(mine), key=mine[1], namespace="team") == "team-000 is done"
    server.let.set()


def test_nothing_waits_long_for_answers_about_another_namespace() -> None:
    server = Server(threads=4, late=4)
    found = server.ask(*of("slow", 100), ("team", "mine"))
    assert found == [*[None] * 100, "mine is done"]
    server.late = 5
    assert server.ask(("team", "next")) == ["next is done"]
    server.answer_all()
    assert len(server.asked) == 6, "what had not begun is dropped"


def test_a_slow_namespace_is_not_waited_for_a_second_time_and_little_of_it_is_under_way() -> None:
    server = Server(threads=32, late=6)
    server.ask(*of("slow", 6))
    server.late = 100
    assert server.ask(*of("slow", 100), ("team", "mine"))[-1] == "mine is done"
    server.ask(*of("slow", 100))
    server.answer_all()
    assert len(server.asked) == 17
    assert {name for _, name in of("slow", 6)} < set(server.asked)


def test_a_namespace_that_was_slow_is_waited_for_again_after_a_minute() -> None:
    server = Server()
    server.ask(*of("slow", 1))
    server.answer_all()
    server.now += 61.0
    assert server.ask(("slow", "another")) == ["another is done"]


def test_what_was_answered_late_is_asked_for_again() -> None:
    server = Server()
    server.let.set()
    assert server.ask(*of("slow", 1)) == server.ask(*of("slow", 1)) == ["slow-000 is done"]


def test_an_error_is_raised_where_the_answers_are_waited_for() -> None:
    def fail(item: str) -> None:
        raise ValueError(item)

    bulkhead = Bulkhead(2, seconds=PATIENCE_SECONDS)
    with pytest.raises(ValueError, match="a"):
        bulkhead.map(fail, ["a"], key=str, namespace=str)


def test_many_quick_answers_that_take_long_together_make_no_namespace_slow() -> None:
    now, answers, permits = 0.0, list[str](), Semaphore(0)

    def answer(name: str) -> str:
        permits.acquire(timeout=PATIENCE_SECONDS)
        answers.append(name)
        return name

    def wait(done: Event, seconds: float) -> bool:
        """Twenty answers take so many seconds."""
        nonlocal now
        for count in range(len(answers) + 1, len(answers) + 21):
            now += seconds / 20
            permits.release()
            wait_until(
                lambda count=count: done.is_set() or len(answers) >= count,  # type: ignore[misc]
                what="an answer",
                timeout_seconds=PATIENCE_SECONDS,
                poll_seconds=0.001,
            )
        return done.is_set()

    def ask(count: int) -> list[str | None]:
        return bulkhead.map(answer, [name for _, name in of("busy", count)], key=str, namespace=lambda _: "busy")

    bulkhead = Bulkhead(1, monotonic=lambda: now, wait=wait)
    assert None not in ask(20)
    assert ask(400).count(None) >= 330, "what had not begun is dropped"
    permits.release()
    assert None not in ask(8)


def test_of_slow_namespaces_few_requests_are_under_way_in_each_and_in_all() -> None:
    """Each answer may take as much memory as a page of long pods."""
    server = Server(most_while_slow=1, most_slow=3)

    def ask(turn: int) -> None:
        for number in range(5):
            server.late = number + 1
            server.ask((f"slow-{number}", f"{number}-{turn}"))

    ask(1)
    ask(2)
    server.answer_all()
    assert sorted(server.asked) == [f"{number}-1" for number in range(5)], "once each, before it is known to be slow"
    server.let.clear()
    ask(3)
    ask(4)
    server.answer_all()
    assert len(server.asked) == 8


def test_the_more_namespaces_are_slow_the_fewer_requests_are_under_way_in_each() -> None:
    """A webhook may be slow for hundreds of namespaces, and each request has a thread and a connection."""
    names = [f"slow-{number}" for number in range(40)]
    server = Server(threads=40, late=40)
    server.ask(*((name, name) for name in names))
    server.answer_all()
    server.asked.clear()
    server.let.clear()
    for _ in range(2):
        server.ask(*(item for name in names for item in of(name, 16)))
    server.answer_all()
    by_namespace = Counter(name.rsplit("-", 1)[0] for name in server.asked)
    assert by_namespace == dict.fromkeys(names, 6), "256 // 40"
