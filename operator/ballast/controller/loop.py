"""The reconcile loop and its threads: a reconcile when something changed or one is due, backing off after a failure."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

from ballast.controller.other_releases import AnotherReleaseError
from ballast.controller.telemetry import Pulse
from ballast.errors import BallastError

# Work next to an event loop: calls that block, and a second loop in its own thread.

P = ParamSpec("P")
T = TypeVar("T")


class LoopThread:
    """Runs one coroutine in its own event loop, in a thread. It is given an event that says when to stop."""

    def __init__(self, work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
        self._work = work
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self.ended: Future[None] = Future()
        """Has the coroutine's error, if it raised one."""

    def start(self) -> None:
        """Doing so again changes nothing, nor does it once the work was stopped."""
        if self._thread is None and not self._stopped:
            self._thread = threading.Thread(target=self._run, name="operator", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """From any thread. One that was never started has ended then."""
        with self._lock:
            self._stopped = True
            if self._loop is not None and self._stop is not None:
                tell(self._loop, self._stop.set)
        if self._thread is None and not self.ended.done():
            self.ended.set_result(None)

    def call(self, function: Callable[[], object]) -> None:
        """Have it called in the loop, from any thread; lost once the loop has ended, and before it has begun."""
        loop = self._loop
        if loop is not None:
            tell(loop, function)

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # noqa: BLE001 -- it is raised where the end is awaited
            self.ended.set_exception(error)
        else:
            self.ended.set_result(None)

    async def _live(self) -> None:
        stop = asyncio.Event()
        with self._lock:
            self._loop, self._stop = asyncio.get_running_loop(), stop
            if self._stopped:
                stop.set()
        await self._work(stop)


async def in_background(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `asyncio.to_thread`, but a caller that is cancelled leaves the work behind, and so does a process that ends.

    A request that hangs can't be interrupted; a pool's threads would be waited for at the end of the process.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    threading.Thread(target=_run, args=(partial(work, *args, **kwargs), done, loop), daemon=True).start()
    return await done


def _run(work: Callable[[], Any], done: asyncio.Future[Any], loop: asyncio.AbstractEventLoop) -> None:
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 -- it is raised where the work is waited for
        tell(loop, partial(_settle, done, done.set_exception, error))
    else:
        tell(loop, partial(_settle, done, done.set_result, result))


def _settle(done: asyncio.Future[Any], settle: Callable[[Any], None], value: Any) -> None:
    if not done.done():
        settle(value)


def tell(loop: asyncio.AbstractEventLoop, news: Callable[[], object]) -> None:
    """Have it called there, from any thread."""
    try:
        loop.call_soon_threadsafe(news)
    except RuntimeError:
        """The loop has ended meanwhile, and with it everything that waited."""


_LOG = logging.getLogger(__name__)
CALM_SECONDS = 0.15
"""Changes within this time are reconciled together."""
_REST_RATIO = 6.0
"""After a reconcile, no other one for so many times the CPU time that it took: changes that never end must not take
more than about a seventh of a core. CPU time, not wall time, so that an operator that is starved does not slow down
further.
"""
_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 30.0
_IDLE_SECONDS = 60.0
_LONGEST_REST_SECONDS = 2.0


class Agenda:
    """The time at which the next reconcile is due. Marking it later than it is due already changes nothing.

    Belongs to one event loop.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = float("inf")
        self._promised = float("inf")
        self._rested = self._paused = -float("inf")
        self._changed = asyncio.Event()

    def mark(self, *, after_seconds: float = 0.0) -> None:
        """Have a reconcile, now or after a delay."""
        at = self._clock() + after_seconds
        if at < self._due:
            self._due = at
            self._changed.set()

    def promise(self, *, after_seconds: float) -> None:
        """Have a reconcile after a delay, also while others rest: an executor has come to its gate, or leaves it."""
        at = self._clock() + after_seconds
        if at < self._promised:
            self._promised = at
            self._changed.set()

    def release_due(self) -> bool:
        """Whether a promised reconcile is due. From any thread."""
        return self._promised <= self._clock()

    def rest(self, seconds: float, *, promised_seconds: float = 0.0) -> None:
        """Have no reconcile before so many seconds are over, whatever is marked; of those promised, none before
        `promised_seconds`.
        """
        now = self._clock()
        self._rested, self._paused = now + seconds, now + promised_seconds

    def take(self) -> bool:
        """Whether a reconcile is due; if so it is off the agenda until it is marked again."""
        due = self._next <= self._clock()
        if due:
            self._due = self._promised = float("inf")
        return due

    async def wait(self) -> None:
        """Wait until a reconcile is due, and take it."""
        while not self.take():
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), self._pause())
            except TimeoutError:
                continue

    def _pause(self) -> float | None:
        return max(0.0, self._next - self._clock()) if self._next < float("inf") else None

    @property
    def _next(self) -> float:
        return min(max(self._due, self._rested), max(self._promised, self._paused))


def earliest(times: Iterable[float | None]) -> float | None:
    """The first of those that there are; None where there is none."""
    return min((at for at in times if at is not None), default=None)


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait for so long, or for `stop`."""
    await or_stop(asyncio.sleep(seconds), stop)


async def or_stop(work: Awaitable[object], stop: asyncio.Event) -> bool:
    """Wait for `work`, or for `stop`; False when it was `stop`."""
    doing = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    done, pending = await asyncio.wait((doing, stopping), return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return doing in done


class Loop:
    """Runs the reconciles of the agenda while this replica leads, and one when it has led.

    `clock`: seconds since the epoch. `promised`: when the last reconcile's next executors are to be released.
    `look_again_seconds`: until a reconcile that was due while this replica did not lead is thought of again. The lease
    may lapse and be renewed with no other leader in between, and then no other replica marks the agenda.
    """

    def __init__(
        self,
        agenda: Agenda,
        pulse: Pulse,
        *,
        leading: Callable[[], bool],
        clock: Callable[[], float],
        look_again_seconds: float,
        promised: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._agenda, self._pulse, self._promised = agenda, pulse, promised
        self._leading, self._clock, self._look_again_seconds = leading, clock, look_again_seconds

    async def run(self, work: Callable[[], float | None], stop: asyncio.Event) -> None:
        """Until `stop` is set. `work`: one reconcile, which blocks; it returns when the next one is due, if ever.

        It is also called once when the lease was lost: what it has kept is then to be put down.
        """
        led, backoff = False, _FIRST_BACKOFF_SECONDS
        while not stop.is_set() and await or_stop(self._agenda.wait(), stop):
            ended, led = led, self._leading()
            if not (led or ended):
                self._agenda.mark(after_seconds=self._look_again_seconds)
                continue
            try:
                due, cpu_seconds = await in_background(_timed, work)
            except Exception as error:  # noqa: BLE001 -- a defect must not end the process: every replica would have it
                if not isinstance(error, BallastError):
                    _LOG.exception("a reconcile failed")
                backoff = self._after_failure(error, backoff)
                # Events can't bring the next one sooner: a server in trouble would be asked for everything at each.
                await pause(stop, _FIRST_BACKOFF_SECONDS)
                continue
            backoff = _FIRST_BACKOFF_SECONDS
            self._agenda.rest(
                min(_REST_RATIO * cpu_seconds, _LONGEST_REST_SECONDS),
                # Not at once, so that gates that never end take half of a core at most.
                promised_seconds=max(CALM_SECONDS, min(cpu_seconds, _LONGEST_REST_SECONDS)),
            )
            delay = _IDLE_SECONDS if due is None else max(CALM_SECONDS, due - self._clock())
            self._pulse.beat(next_in_seconds=delay)
            self._agenda.mark(after_seconds=delay)
            release_at = self._promised()
            if release_at is not None:
                self._agenda.promise(after_seconds=release_at - self._clock())

    def _after_failure(self, error: Exception, backoff: float) -> float:
        why = str(error) or type(error).__name__
        _LOG.warning("the reconcile ended early, the next one comes in %.0f s: %s", backoff, why)
        self._pulse.fail(error, alive=isinstance(error, AnotherReleaseError))
        self._agenda.mark(after_seconds=backoff)
        return min(2 * backoff, _LONGEST_BACKOFF_SECONDS)


def _timed(work: Callable[[], float | None]) -> tuple[float | None, float]:
    """Also the CPU time that it took in this thread."""
    began = time.thread_time()
    return work(), time.thread_time() - began
