import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from tests.testbed.kubelet.probes import Tally, Target, Timing, check, repeat


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ("", None),
        ("+", None),
        ("++", True),
        ("--", None),
        ("---", False),
        ("++--", True),
        ("++---", False),
        ("---+", False),
    ],
)
def test_thresholds_decide_the_verdict(outcomes: str, verdict: bool | None) -> None:
    tally = Tally(Timing(success_threshold=2, failure_threshold=3))
    for outcome in outcomes:
        tally = tally.after(passed=outcome == "+")
    assert tally.verdict is verdict


@given(st.lists(st.booleans()))
def test_with_thresholds_of_one_the_last_outcome_is_the_verdict(outcomes: list[bool]) -> None:
    tally = Tally(Timing(success_threshold=1, failure_threshold=1))
    for outcome in outcomes:
        tally = tally.after(passed=outcome)
    assert tally.verdict is (outcomes[-1] if outcomes else None)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as made:
        yield made


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """A server that is well at /well and not at /ill."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=200 if request.path == "/well" else 503)

    application = web.Application()
    application.router.add_get("/{state}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


async def execute(argv: list[str], timeout_seconds: float) -> tuple[int, str]:
    return int(argv[0]), "said"


def target(session: aiohttp.ClientSession, port: int) -> Target:
    return Target("127.0.0.1", {"web": port}, execute, session)


@pytest.mark.parametrize(
    ("probe", "passes"),
    [
        ({"httpGet": {"path": "/well", "port": "web"}}, True),
        ({"httpGet": {"path": "/ill", "port": "web"}}, False),
        ({"tcpSocket": {"port": "web"}}, True),
        ({"tcpSocket": {"port": 1}}, False),
        ({"exec": {"command": ["0"]}}, True),
        ({"exec": {"command": ["2"]}}, False),
        ({"grpc": {"port": 1}}, False),
    ],
)
async def test_each_kind_of_probe_passes_and_fails(
    session: aiohttp.ClientSession, port: int, probe: dict[str, object], passes: bool
) -> None:
    assert (await check(probe, target(session, port)))[0] is passes


async def test_only_changes_of_the_verdict_are_told(session: aiohttp.ClientSession) -> None:
    codes = iter(["0", "0", "1", "1", "0"])
    told: list[bool] = []
    over = asyncio.Event()

    async def next_code(argv: list[str], timeout_seconds: float) -> tuple[int, str]:
        try:
            return int(next(codes)), ""
        except StopIteration:
            over.set()
            return 0, ""

    probe = {"exec": {"command": ["x"]}, "periodSeconds": 0, "failureThreshold": 2}
    probing = asyncio.create_task(
        repeat(probe, Target("127.0.0.1", {}, next_code, session), lambda passed, _: told.append(passed))
    )
    await over.wait()
    probing.cancel()
    assert told == [True, False, True]
