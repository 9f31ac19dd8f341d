"""Waiting that the operator's stop ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


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
