"""When reconciles run."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from ballast.controller.loop import Agenda, Loop, LoopThread
from ballast.controller.telemetry import Pulse
from ballast.kube.errors import Unavailable

NOW = 1000.0


class Stage:
    """A replica that leads unless `lapses` says that it has to be asked so many times more."""

    def __init__(self) -> None:
        self.agenda, self.pulse, self.stop = Agenda(), Pulse(time.monotonic), asyncio.Event()
        self.lapses = 0
        self.reconciles = 0
        self.release_at: float | None = None

    def leading(self) -> bool:
        self.lapses -= 1
        return self.lapses < 0

    async def run(self, *outcomes: Callable[[], float | None]) -> None:
        """Until there have been as many reconciles as outcomes."""
        ended, left = asyncio.get_running_loop(), list(outcomes)

        def work() -> float | None:
            self.reconciles += 1
            outcome = left.pop(0)
            if not left:
                ended.call_soon_threadsafe(self.stop.set)
            return outcome()

        loop = Loop(
            self.agenda,
            self.pulse,
            leading=self.leading,
            clock=lambda: NOW,
            look_again_seconds=0.01,
            promised=lambda: self.release_at,
        )
        await asyncio.wait_for(loop.run(work, self.stop), 10)


def nothing_due() -> float | None:
    return None


def due_at_once() -> float | None:
    return NOW


def unavailable() -> float | None:
    raise Unavailable("list pods", "no answer")


async def test_a_round_that_comes_due_while_the_lease_has_lapsed_runs_once_it_is_held_again() -> None:
    stage = Stage()
    stage.lapses = 3
    stage.agenda.mark()
    await stage.run(nothing_due)
    assert stage.reconciles == 1


async def test_who_has_lost_the_lease_gets_one_round_to_put_down_what_it_kept() -> None:
    stage, led = Stage(), list[bool]()

    def lose() -> float | None:
        led.append(stage.lapses < 0)
        stage.lapses = 3
        return NOW

    def note() -> float | None:
        led.append(stage.lapses < 0)
        return NOW

    stage.agenda.mark()
    await stage.run(lose, note, note)
    assert led == [True, False, True]


async def test_a_round_says_when_the_next_one_is_due() -> None:
    stage = Stage()
    stage.agenda.mark()
    await stage.run(due_at_once, due_at_once, nothing_due)
    assert stage.reconciles == 3
    assert stage.pulse.ready


async def test_a_round_that_failed_is_told_and_comes_again(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.agenda.mark()
    await stage.run(unavailable, nothing_due)
    assert stage.reconciles == 2
    assert [record.message for record in caplog.records] == [
        "the reconcile ended early, the next one comes in 1 s: list pods: no answer"
    ]
    assert stage.pulse.failing == ""


async def test_a_defect_that_shows_in_a_round_does_not_end_the_process(caplog: pytest.LogCaptureFixture) -> None:
    def defective() -> float | None:
        raise KeyError("spec")

    stage = Stage()
    stage.agenda.mark()
    await stage.run(defective, nothing_due)
    assert stage.reconciles == 2
    assert [record.exc_info is not None for record in caplog.records] == [True, False]


async def test_after_a_failure_no_event_brings_the_next_round_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, pauses = Stage(), list[tuple[float, int]]()

    async def paused(_: asyncio.Event, seconds: float) -> None:
        stage.agenda.mark()
        pauses.append((seconds, stage.reconciles))

    monkeypatch.setattr("ballast.controller.loop.pause", paused)
    stage.agenda.mark()
    await stage.run(unavailable, nothing_due)
    assert (pauses, stage.reconciles) == ([(1.0, 1)], 2)


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


async def test_a_release_that_is_due_does_not_wait_until_the_loop_has_rested() -> None:
    agenda = Agenda()
    agenda.rest(60.0)
    agenda.mark()
    agenda.promise(after_seconds=0.01)
    await asyncio.wait_for(agenda.wait(), 10)
    assert not agenda.take()


async def test_what_is_promised_first_comes_first_and_what_is_marked_rests() -> None:
    agenda = Agenda(clock=lambda: NOW)
    agenda.promise(after_seconds=60.0)
    agenda.rest(5.0)
    agenda.mark()
    assert not agenda.take()
    agenda.promise(after_seconds=0.0)
    agenda.promise(after_seconds=30.0)
    assert agenda.take()


def test_a_round_that_runs_can_see_that_the_next_release_is_due() -> None:
    time = Time()
    agenda = Agenda(time)
    agenda.mark()
    assert not agenda.release_due()
    agenda.promise(after_seconds=1.0)
    assert not agenda.release_due()
    time.now = 1.0
    assert agenda.release_due()
    assert agenda.take()
    assert not agenda.release_due()


def test_gates_that_never_end_leave_a_pause_between_reconciles() -> None:
    time = Time()
    agenda = Agenda(time)
    agenda.rest(60.0, promised_seconds=1.0)
    agenda.promise(after_seconds=0.0)
    assert not agenda.take()
    time.now = 1.0
    assert agenda.take()


async def test_a_round_promises_the_next_release() -> None:
    stage = Stage()
    stage.release_at = NOW
    stage.agenda.mark()
    await stage.run(nothing_due, nothing_due)
    assert stage.reconciles == 2


def test_the_work_of_a_thread_begins_once_and_ends_when_it_is_told_to_however_often() -> None:
    begun, called = list[bool](), threading.Event()

    async def work(stop: asyncio.Event) -> None:
        begun.append(True)
        thread.call(called.set)
        await stop.wait()

    thread = LoopThread(work)
    lost = threading.Event()
    thread.call(lost.set)
    thread.start()
    thread.start()
    assert called.wait(30)
    thread.stop()
    thread.stop()
    assert thread.ended.result(30) is None
    assert (begun, lost.is_set()) == ([True], False)
    thread.call(lost.set)
    assert not lost.is_set()


def test_work_that_was_never_begun_has_ended_when_it_is_stopped() -> None:
    async def work(_: asyncio.Event) -> None:
        pytest.fail("it was not to begin")

    thread = LoopThread(work)
    thread.stop()
    thread.stop()
    thread.start()
    assert thread.ended.result(0) is None


def test_the_error_of_the_work_is_raised_where_its_end_is_awaited() -> None:
    async def work(_: asyncio.Event) -> None:
        raise KeyError("spec")

    thread = LoopThread(work)
    thread.start()
    with pytest.raises(KeyError, match="spec"):
        thread.ended.result(30)
