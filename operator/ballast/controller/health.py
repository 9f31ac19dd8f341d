"""Liveness and readiness: a replica is alive while its loop finishes rounds, and ready once it has done one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

_GRACE_SECONDS = 1.0
"""For an answer that is under way when the server stops."""
ALIVE_SECONDS = 90.0
"""Without a finished round for so long (and three intervals of the policies), the replica is to be restarted."""


@dataclass(slots=True)
class Pulse:
    """When something was last done. `clock`: monotonic seconds."""

    clock: Callable[[], float]
    beaten_at: float | None = None
    expected_seconds: float = 60.0
    """How long a round may take to come."""
    failing: str = ""
    """Why the last round failed; empty when it did not."""
    started_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.started_at = self.clock()

    def beat(self, *, next_in_seconds: float = 0.0) -> None:
        self.beaten_at, self.failing = self.clock(), ""
        self.expected_seconds = max(60.0, next_in_seconds)

    @property
    def alive(self) -> bool:
        since = self.beaten_at if self.beaten_at is not None else self.started_at
        return self.clock() - since < max(ALIVE_SECONDS, 3 * self.expected_seconds)

    @property
    def ready(self) -> bool:
        return self.beaten_at is not None and self.alive


class HealthServer:
    """Serves /healthz and /readyz. Start and stop it in one event loop."""

    def __init__(self, pulse: Pulse, *, host: str, port: int) -> None:
        self._pulse, self._host, self._port = pulse, host, port
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_GRACE_SECONDS)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _healthz(self, request: web.Request) -> web.Response:
        del request
        return _answer(holds=self._pulse.alive, why=self._pulse.failing or "no round has finished for too long")

    async def _readyz(self, request: web.Request) -> web.Response:
        del request
        return _answer(holds=self._pulse.ready, why=self._pulse.failing or "no round has finished yet")


def _answer(*, holds: bool, why: str) -> web.Response:
    return web.Response(text="ok\n" if holds else f"{why}\n", status=200 if holds else 503)
