from __future__ import annotations

import asyncio

from ballast.controller.agenda import Agenda


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_due_until_it_is_marked_and_what_is_due_is_taken_once() -> None:
    agenda = Agenda(Time())
    assert not agenda.take()
    agenda.mark()
    agenda.mark()
    assert agenda.take()
    assert not agenda.take()


def test_what_is_due_later_waits() -> None:
    time = Time()
    agenda = Agenda(time)
    agenda.mark(after_seconds=5.0)
    assert not agenda.take()
    time.now = 5.0
    assert agenda.take()


def test_an_earlier_mark_wins_and_a_later_one_changes_nothing() -> None:
    time = Time()
    agenda = Agenda(time)
    agenda.mark(after_seconds=5.0)
    agenda.mark(after_seconds=60.0)
    agenda.mark(after_seconds=1.0)
    time.now = 1.0
    assert agenda.take()
    time.now = 60.0
    assert not agenda.take()


async def test_waiting_ends_when_something_becomes_due() -> None:
    agenda = Agenda()
    agenda.mark(after_seconds=0.02)
    await asyncio.wait_for(agenda.wait(), 5)
    assert not agenda.take()


async def test_an_earlier_mark_shortens_the_wait() -> None:
    agenda = Agenda()
    agenda.mark(after_seconds=3600.0)
    waiting = asyncio.create_task(agenda.wait())
    await asyncio.sleep(0)
    agenda.mark()
    await asyncio.wait_for(waiting, 5)


async def test_a_mark_ends_a_wait_for_nothing() -> None:
    agenda = Agenda()
    waiting = asyncio.create_task(agenda.wait())
    await asyncio.sleep(0)
    agenda.mark()
    await asyncio.wait_for(waiting, 5)
