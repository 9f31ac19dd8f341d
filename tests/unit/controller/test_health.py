from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import Metric

from ballast.controller import pages
from ballast.controller.cluster_objects import NotInstalledError
from ballast.controller.pages import PageServer, health_server, metrics_server
from ballast.controller.telemetry import ALIVE_SECONDS, Pulse
from ballast.errors import InvalidResource
from ballast.kube.errors import Unavailable, error_of

NO_ANSWER = Unavailable("list pods tenant-a/secret", "no answer from 10.0.0.1")


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


def test_it_lives_before_its_first_round_but_is_not_ready(time: Time) -> None:
    pulse = Pulse(time)
    assert (pulse.alive, pulse.ready) == (True, False)
    pulse.beat()
    assert (pulse.alive, pulse.ready) == (True, True)


def test_a_replica_whose_first_round_never_ends_is_dead(time: Time) -> None:
    pulse = Pulse(time)
    time.now += max(ALIVE_SECONDS, 3 * 60.0)
    assert not pulse.alive


@pytest.mark.parametrize(("interval", "patience"), [(1.0, 180.0), (60.0, 180.0), (600.0, 1800.0)])
def test_it_is_dead_after_three_rounds_that_did_not_come(time: Time, interval: float, patience: float) -> None:
    pulse = Pulse(time)
    pulse.beat(next_in_seconds=interval)
    time.now += patience - 1
    assert pulse.ready
    time.now += 2
    assert (pulse.alive, pulse.ready) == (False, False)


def test_a_round_that_ends_well_clears_what_failed_before(time: Time) -> None:
    pulse = Pulse(time)
    pulse.beat()
    pulse.fail(NO_ANSWER)
    assert (pulse.alive, pulse.ready) == (True, False)
    pulse.beat()
    assert (pulse.failing, pulse.ready) == ("", True)


@asynccontextmanager
async def serving(make: Callable[[int], PageServer]) -> AsyncIterator[int]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    server = make(port)
    await server.start()
    try:
        yield port
    finally:
        await server.stop()


def health(pulse: Pulse) -> Callable[[int], PageServer]:
    return lambda port: health_server(pulse, host="127.0.0.1", port=port)


async def test_probes_are_answered_with_the_reason(time: Time) -> None:
    pulse = Pulse(time)
    async with (
        serving(health(pulse)) as port,
        aiohttp.ClientSession(base_url=f"http://127.0.0.1:{port}") as session,
    ):
        assert await _get(session, "/healthz") == (200, "ok\n")
        assert await _get(session, "/readyz") == (503, "no reconcile has finished yet\n")
        pulse.fail(NO_ANSWER)
        time.now += 1000
        known = (503, "list pods: no answer (1000 s ago; the log has more)\n")
        assert (await _get(session, "/readyz"), await _get(session, "/healthz")) == (known, known)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (error_of("patch pods tenant-a/secret-exec-1", 403, {"message": "secret"}), "patch pods: HTTP 403"),
        (error_of("watch pods", 503, {"message": "secret"}), "watch pods: HTTP 503"),
        (NO_ANSWER, "list pods: no answer"),
        (InvalidResource("SparkTopology tenant-a/secret", ()), "the last reconcile failed"),
        (KeyError("secret"), "the last reconcile failed"),
        (NotInstalledError("sparktopologies"), str(NotInstalledError("sparktopologies"))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_probes_name_no_object_of_a_user_since_every_namespace_reaches_them(
    time: Time, error: Exception, shown: str
) -> None:
    pulse = Pulse(time)
    pulse.fail(error)
    assert pulse.explain("") == f"{shown} (0 s ago; the log has more)"


async def _get(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as response:
        return response.status, await response.text()


@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTTP/1.1\r\n"], ids=["nothing", "half a request"])
async def test_a_connection_that_sends_no_request_is_closed(
    time: Time, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(pages, "_REQUEST_SECONDS", 0.2)
    async with serving(health(Pulse(time))) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(begun)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()


async def test_metrics_are_served_in_the_format_that_is_asked_for_and_written_once_for_all() -> None:
    registry = CollectorRegistry()
    Counter("met", "", registry=registry).inc()
    written = 0

    class Counting(CollectorRegistry):
        def collect(self) -> Iterable[Metric]:
            nonlocal written
            written += 1
            return registry.collect()

    async with (
        serving(lambda port: metrics_server(Counting(), host="127.0.0.1", port=port)) as port,
        aiohttp.ClientSession(base_url=f"http://127.0.0.1:{port}") as session,
    ):
        answers = await asyncio.gather(*(_get(session, "/metrics") for _ in range(10)))
        assert all("met_total 1.0" in text for _, text in answers)
        assert written == 1
        accepted = {"Accept": "application/openmetrics-text; version=1.0.0"}
        async with session.get("/metrics", headers=accepted) as response:
            assert response.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
            assert (await response.text()).endswith("# EOF\n")
        assert (await _get(session, "/"))[0] == 404


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /metrics HTTP/9.9\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: text/plain; version=a\r\n\r\n", b"200"),
    ],
    ids=["no HTTP", "too long", "a format of no version"],
)
async def test_a_bad_request_is_not_logged(request_: bytes, status: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Any client could fill the log, and write lines into it."""
    async with serving(lambda port: metrics_server(CollectorRegistry(), host="127.0.0.1", port=port)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request_)
        assert (await reader.readline()).split()[1] == status
        writer.close()
    assert caplog.text == ""


async def test_a_page_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(request: web.Request) -> web.Response:
        raise RuntimeError("no page")

    made = lambda port: PageServer({"/x": fail}, host="127.0.0.1", port=port)  # noqa: E731
    async with serving(made) as port, aiohttp.ClientSession(base_url=f"http://127.0.0.1:{port}") as session:
        assert (await _get(session, "/x"))[0] == 500
    assert "/x can't be served" in caplog.text
