"""Blocking work beside the event loop that nobody has to wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_background(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `asyncio.to_thread`, but a caller who is cancelled leaves the work behind, and so does a process that ends.

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


def _tell(loop: asyncio.AbstractEventLoop, news: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(news)
    except RuntimeError:
        """The loop has ended meanwhile, and with it everybody who waited."""
