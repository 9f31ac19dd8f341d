"""What the operator serves over HTTP: /healthz and /readyz for the kubelet, /metrics for Prometheus.

A client that reaches a port may open any number of connections and leave them open. Each takes memory, so there is a
bound on their number, and one on how long a connection may take to send a request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from ballast.controller.loop import in_background
from ballast.controller.telemetry import Pulse

_LOG = logging.getLogger(__name__)
_UNHEARD = logging.getLogger(f"{__name__}.requests")
"""A client's bad request is no error of ours: each would be logged with a trace, and with its text."""
_UNHEARD.setLevel(logging.CRITICAL + 1)
_GRACE_SECONDS = 1.0
"""For an answer that is under way when the server stops."""
_REQUEST_SECONDS = 10.0
"""From a connection's beginning to the end of its request."""
_MOST_PROBES = 200
_MOST_SCRAPES = 20
"""An answer to a client that does not read it is kept, and has megabytes where there are thousands of executors."""
_METRICS_SECONDS = 1.0
"""For so long the same metrics are served: writing them takes as much CPU as a pass."""

Page = Callable[[web.Request], Awaitable[web.Response]]


class PageServer:
    """Serves `pages` by path, on at most so many connections. Start and stop it in one event loop."""

    def __init__(self, pages: Mapping[str, Page], *, host: str, port: int, most_connections: int) -> None:
        self._pages, self._host, self._port, self._most = pages, host, port, most_connections
        self._runner: web.AppRunner | None = None
        self._listening: asyncio.Server | None = None

    async def start(self) -> None:
        app = web.Application()
        app.on_response_prepare.append(_last_of_its_connection)
        for path, page in self._pages.items():
            app.router.add_get(path, _logged(page))
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=_UNHEARD,
            shutdown_timeout=_GRACE_SECONDS,
            keepalive_timeout=_REQUEST_SECONDS,
        )
        await self._runner.setup()
        self._listening = await asyncio.get_running_loop().create_server(self._connected, self._host, self._port)

    async def stop(self) -> None:
        if self._listening is not None:
            self._listening.close()
        if self._runner is not None:
            if self._runner.server is not None:
                await self._runner.server.shutdown(_GRACE_SECONDS)
            await self._runner.cleanup()

    def _connected(self) -> asyncio.Protocol:
        """A protocol for one more connection. At the bound, the oldest of the peer that has most is closed for it."""
        server = self._runner.server if self._runner is not None else None
        if server is None:
            raise ConnectionAbortedError("the server stops")
        there = [each for each in server.connections if each.transport is not None]
        if len(there) >= self._most:
            number = Counter(map(_peer, there))
            max(there, key=lambda each: number[_peer(each)]).force_close()
        return server()


async def _last_of_its_connection(request: web.Request, response: web.StreamResponse) -> None:
    """A connection takes one request: thousands in one packet would be answered next to the passes, at their cost."""
    del request
    response.headers["Connection"] = "close"
    response.force_close()


def _logged(page: Page) -> Page:
    async def answer(request: web.Request) -> web.Response:
        try:
            return await page(request)
        except Exception:
            _LOG.exception("%s can't be served", request.path)
            raise

    return answer


def _peer(connection: Any) -> str:
    address = connection.transport.get_extra_info("peername")
    return address[0] if isinstance(address, tuple) else ""


def health_server(pulse: Pulse, *, host: str, port: int) -> PageServer:
    """Liveness: the replica's loop finishes reconciles. Readiness: it has done one."""

    async def healthz(request: web.Request) -> web.Response:
        del request
        return _answer(holds=pulse.alive, why=pulse.explain("no reconcile has finished for too long"))

    async def readyz(request: web.Request) -> web.Response:
        del request
        return _answer(holds=pulse.ready, why=pulse.explain("no reconcile has finished yet"))

    pages: Mapping[str, Page] = {"/healthz": healthz, "/readyz": readyz}
    return PageServer(pages, host=host, port=port, most_connections=_MOST_PROBES)


def _answer(*, holds: bool, why: str) -> web.Response:
    return web.Response(text="ok\n" if holds else f"{why}\n", status=200 if holds else 503)


def metrics_server(registry: CollectorRegistry, *, host: str, port: int) -> PageServer:
    """Serves the registry's metrics in the format that the client prefers."""
    pages: Mapping[str, Page] = {"/metrics": _Metrics(registry).page}
    return PageServer(pages, host=host, port=port, most_connections=_MOST_SCRAPES)


@dataclass(slots=True)
class _Metrics:
    registry: CollectorRegistry
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One page at a time is written, however many ask."""
    _written: dict[str, bytes] = field(default_factory=dict)
    """By content type."""
    _written_at: float = 0.0

    async def page(self, request: web.Request) -> web.Response:
        encode, content_type = _encoder(request.headers.get("Accept", ""))
        async with self._writing:
            now = asyncio.get_running_loop().time()
            if now - self._written_at >= _METRICS_SECONDS:
                self._written, self._written_at = {}, now
            if content_type not in self._written:
                self._written[content_type] = await in_background(encode, self.registry)
            body = self._written[content_type]
        response = web.Response(body=body, headers={"Content-Type": content_type})
        response.enable_compression()
        return response


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    """The plain format for a header that the library can't read."""
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):
        return choose_encoder("")
