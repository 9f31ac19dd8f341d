"""Work next to an event loop: calls that block, and a second loop in its own thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

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
        """Doing so again changes nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="operator", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """From any thread. One that was never started has ended then."""
        with self._lock:
            self._stopped = True
            if self._loop is not None and self._stop is not None:
                _tell(self._loop, self._stop.set)
        if self._thread is None and not self.ended.done():
            self.ended.set_result(None)

    def call(self, function: Callable[[], object]) -> None:
        """Have it called in the loop, from any thread; lost once the loop has ended, and before it has begun."""
        loop = self._loop
        if loop is not None:
            _tell(loop, function)

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
        _tell(loop, partial(_settle, done, done.set_exception, error))
    else:
        _tell(loop, partial(_settle, done, done.set_result, result))


def _settle(done: asyncio.Future[Any], settle: Callable[[Any], None], value: Any) -> None:
    if not done.done():
        settle(value)


def _tell(loop: asyncio.AbstractEventLoop, news: Callable[[], object]) -> None:
    try:
        loop.call_soon_threadsafe(news)
    except RuntimeError:
        """The loop has ended meanwhile, and with it everything that waited."""
