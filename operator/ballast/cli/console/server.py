"""Serving the console on this machine: one page, its parts, and the state that it asks for again and again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from aiohttp import web

from ballast.errors import BallastError

HOST = "127.0.0.1"
_PAGE = files(__package__) / "page"
_PARTS = {
    "/": ("index.html", "text/html"),
    "/console.css": ("console.css", "text/css"),
    "/console.js": ("console.js", "text/javascript"),
    "/pool.js": ("pool.js", "text/javascript"),
    "/moves.js": ("moves.js", "text/javascript"),
    "/echarts.js": ("echarts.js", "text/javascript"),
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_LOCAL = ("127.0.0.1", "localhost")

Ask = Callable[[], dict[str, Any]]
"""Looks at the cluster, which may take seconds. Raises BallastError with what to do about it."""


@dataclass(frozen=True, slots=True)
class _Told:
    body: bytes
    tag: str


class Answers:
    """`ask` is called in a thread, once at a time, and only while a page asks; `every_seconds` apart at least."""

    def __init__(self, ask: Ask, *, every_seconds: float, clock: Callable[[], float]) -> None:
        self._ask, self._every, self._clock = ask, every_seconds, clock
        self._one_at_a_time = asyncio.Lock()
        self._told: _Told | None = None
        self._asked_at = float("-inf")

    async def answer(self, request: web.Request) -> web.Response:
        """304 where nothing changed since the page asked last."""
        async with self._one_at_a_time:
            if self._told is None or self._clock() - self._asked_at >= self._every:
                self._told = await asyncio.to_thread(self._look)
                self._asked_at = self._clock()
            told = self._told
        if request.headers.get("If-None-Match") == told.tag:
            return web.Response(status=304, headers={"ETag": told.tag})
        answer = web.Response(body=told.body, content_type="application/json", headers={"ETag": told.tag})
        answer.enable_compression()
        return answer

    def _look(self) -> _Told:
        """What went wrong is part of the state: the page shows it above what it saw last."""
        try:
            found: dict[str, Any] = {"everySeconds": self._every, **self._ask()}
        except BallastError as error:
            found = {"everySeconds": self._every, "error": "\n".join([str(error), *getattr(error, "__notes__", ())])}
        body = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
        return _Told(body, f'"{sha256(body).hexdigest()[:32]}"')


def console(answers: Mapping[str, Answers]) -> web.Application:
    """The page with its parts, and answers by path."""
    app = web.Application(middlewares=[_only_for_this_machine])
    for path in _PARTS:
        app.router.add_get(path, _part)
    for path, each in answers.items():
        app.router.add_get(path, each.answer)
    app.on_response_prepare.append(_with_headers)
    return app


async def serve(app: web.Application, port: int, *, started: Callable[[str], None]) -> None:
    """Until it is canceled. `started` gets the address. Raises OSError where the port is taken."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port)
        await site.start()
        started(f"http://{HOST}:{runner.addresses[0][1]}/")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


@web.middleware
async def _only_for_this_machine(request: web.Request, handler: Any) -> web.StreamResponse:
    """A page of somewhere else, whose name leads here, must not read the cluster's state."""
    if request.url.host not in _LOCAL:
        raise web.HTTPForbidden(text=f"Ask for http://{HOST}, not for {request.url.host}.\n")
    found: web.StreamResponse = await handler(request)
    return found


async def _part(request: web.Request) -> web.Response:
    name, kind = _PARTS[request.path]
    answer = web.Response(body=(_PAGE / name).read_bytes(), content_type=kind, charset="utf-8")
    answer.enable_compression()
    return answer


async def _with_headers(request: web.Request, response: web.StreamResponse) -> None:
    del request
    response.headers.update(_HEADERS)
