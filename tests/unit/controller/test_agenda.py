from __future__ import annotations

import asyncio
import threading

from ballast.controller.agenda import Agenda


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_is_due_is_taken_once() -> None:
    agenda = Agenda(Time())
    agenda.mark("b")
    agenda.mark("a")
    assert agenda.take() == ["a", "b"]
    assert agenda.take() == []


def test_what_is_due_later_waits() -> None:
    time = Time()
    agenda = Agenda(time)
    agenda.mark("round", after_seconds=5.0)
    assert agenda.take() == []
    time.now = 5.0
    assert agenda.take() == ["round"]


def test_an_earlier_mark_wins_and_a_later_one_changes_nothing() -> None:
    time = Time()
    agenda = Agenda(time)
    agenda.mark("round", after_seconds=5.0)
    agenda.mark("round", after_seconds=60.0)
    agenda.mark("round", after_seconds=1.0)
    time.now = 1.0
    assert agenda.take() == ["round"]
    time.now = 60.0
    assert agenda.take() == []


async def test_waiting_ends_when_something_is_marked_from_another_thread() -> None:
    agenda = Agenda()
    waiting = asyncio.create_task(agenda.wait())
    await asyncio.sleep(0)
    threading.Thread(target=agenda.mark, args=("round",)).start()
    assert await asyncio.wait_for(waiting, 5) == ["round"]


async def test_waiting_ends_when_something_becomes_due() -> None:
    agenda = Agenda()
    agenda.mark("round", after_seconds=0.02)
    assert await asyncio.wait_for(agenda.wait(), 5) == ["round"]


async def test_an_earlier_mark_shortens_the_wait() -> None:
    agenda = Agenda()
    agenda.mark("late", after_seconds=3600.0)
    waiting = asyncio.create_task(agenda.wait())
    await asyncio.sleep(0)
    agenda.mark("soon")
    assert await asyncio.wait_for(waiting, 5) == ["soon"]
