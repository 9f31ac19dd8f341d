"""What the operator serves over HTTP: /healthz and /readyz for the kubelet, /metrics for Prometheus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

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
_METRICS_SECONDS = 1.0
"""For so long the same metrics are served: writing them takes as much CPU as a pass."""

Page = Callable[[web.Request], Awaitable[web.Response]]


class PageServer:
    """Serves `pages` by path. Start and stop it in one event loop."""

    def __init__(self, pages: Mapping[str, Page], *, host: str, port: int) -> None:
        self._pages, self._host, self._port = pages, host, port
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
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
        await web.TCPSite(self._runner, self._host, self._port).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()


def _logged(page: Page) -> Page:
    async def answer(request: web.Request) -> web.Response:
        try:
            return await page(request)
        except Exception:
            _LOG.exception("%s can't be served", request.path)
            raise

    return answer


def health_server(pulse: Pulse, *, host: str, port: int) -> PageServer:
    """Liveness: the replica's loop finishes reconciles. Readiness: it has done one."""

    async def healthz(request: web.Request) -> web.Response:
        del request
        return _answer(holds=pulse.alive, why=pulse.explain("no reconcile has finished for too long"))

    async def readyz(request: web.Request) -> web.Response:
        del request
        return _answer(holds=pulse.ready, why=pulse.explain("no reconcile has finished yet"))

    pages: Mapping[str, Page] = {"/healthz": healthz, "/readyz": readyz}
    return PageServer(pages, host=host, port=port)


def _answer(*, holds: bool, why: str) -> web.Response:
    return web.Response(text="ok\n" if holds else f"{why}\n", status=200 if holds else 503)


def metrics_server(registry: CollectorRegistry, *, host: str, port: int) -> PageServer:
    """Serves the registry's metrics in the format that the client prefers."""
    pages: Mapping[str, Page] = {"/metrics": _Metrics(registry).page}
    return PageServer(pages, host=host, port=port)


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
