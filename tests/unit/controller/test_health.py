from __future__ import annotations

import socket

import aiohttp
import pytest

from ballast.controller.telemetry import ALIVE_SECONDS, HealthServer, Pulse


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
    pulse.fail("list pods: no answer")
    assert (pulse.alive, pulse.ready) == (True, False)
    pulse.beat()
    assert (pulse.failing, pulse.ready) == ("", True)


async def test_probes_are_answered_with_the_reason(time: Time) -> None:
    pulse = Pulse(time)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    server = HealthServer(pulse, host="127.0.0.1", port=port)
    await server.start()
    try:
        async with aiohttp.ClientSession(base_url=f"http://127.0.0.1:{port}") as session:
            assert await _get(session, "/healthz") == (200, "ok\n")
            assert await _get(session, "/readyz") == (503, "no reconcile has finished yet\n")
            pulse.fail("list pods: no answer")
            assert await _get(session, "/readyz") == (503, "list pods: no answer\n")
            time.now += 1000
            assert await _get(session, "/healthz") == (503, "list pods: no answer\n")
    finally:
        await server.stop()


async def _get(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as response:
        return response.status, await response.text()
