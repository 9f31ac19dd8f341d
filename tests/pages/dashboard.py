"""A dashboard that is served next to the test that looks at it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from aiohttp import web

from ballast.cli.console.server import serve


@contextmanager
def serving(app: web.Application) -> Iterator[str]:
    """Its address, as `ballast dashboard` serves it on a free port."""
    loop, addresses, started = asyncio.new_event_loop(), SimpleQueue[str](), SimpleQueue[asyncio.Task[None]]()

    def run() -> None:
        asyncio.set_event_loop(loop)
        task = loop.create_task(serve(app, 0, started=addresses.put))
        started.put(task)
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield addresses.get(timeout=60)
    finally:
        loop.call_soon_threadsafe(started.get().cancel)
        thread.join()
        loop.close()
