"""Blocking work that nobody has to wait for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ballast.controller.loop import in_background


async def test_it_gives_what_the_work_gives() -> None:
    assert await in_background(divmod, 7, 2) == (3, 1)


async def test_it_raises_what_the_work_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_background(divmod, 7, 0)


async def test_the_loop_goes_on_meanwhile() -> None:
    go = threading.Event()
    work = asyncio.ensure_future(in_background(go.wait, 30))
    await asyncio.sleep(0)
    assert not work.done()
    go.set()
    assert await work


async def test_who_gives_up_leaves_it_behind_and_its_end_disturbs_nobody() -> None:
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        go.wait(30)
        ended.set()

    work = asyncio.ensure_future(in_background(hang))
    await asyncio.to_thread(begun.wait, 30)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not ended.is_set()
    go.set()
    assert await asyncio.to_thread(ended.wait, 30)


def test_work_outlives_the_loop_without_harm() -> None:
    go, ended = threading.Event(), threading.Event()

    def hang() -> None:
        go.wait(30)
        ended.set()

    async def briefly() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(in_background(hang), 0.01)

    asyncio.run(briefly())
    go.set()
    assert ended.wait(30)
