"""`ballast dashboard`: the state that its page shows, and who may ask for it. tests/pages shows it in a browser."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from ballast.api import ExecutorMove
from ballast.cli.console.server import Answers, console
from ballast.cli.console.state import Gains, gains_of, placed_again, pool_state, state
from ballast.cli.dashboard import one_at_a_time
from ballast.cli.source import Seen
from ballast.cli.status import pool_document
from ballast.errors import BallastError
from ballast.model import MovePhase
from tests.builders import NOW, a_move
from tests.unit.cli.pools import a_situation, with_a_proposed_move
from tests.unit.cli.program import run


def test_the_state_is_what_status_and_plan_tell_with_each_executor() -> None:
    situation = a_situation()
    (pool,) = state(Seen((situation,), ("a problem",), operator_runs=True))["pools"]
    assert {**pool_document(situation, situation.plan()), **pool} == pool
    names = [node["name"] for node in pool["nodes"]["items"]]
    placed = {name: names[node] for name, _, node, _ in pool["executors"] if node is not None}
    running = {each.key: each.node for each in situation.snapshot.executors if each.node in names}
    assert placed == running
    assert all(pool["topologies"][owner]["topology"] for _, owner, *_ in pool["executors"])


def test_a_move_tells_its_predicted_and_its_measured_gain() -> None:
    situation = with_a_proposed_move()
    (move,) = situation.snapshot.moves
    gains = {(move.namespace, move.name): Gains(31.5, 28.25)}
    (told,) = pool_state(situation, gains)["timeline"]
    assert (told["predictedGain"], told["measuredGain"]) == (31.5, 28.25)
    (unknown,) = pool_state(situation, {})["timeline"]
    assert (unknown["predictedGain"], unknown["measuredGain"]) == (None, None)


def test_moves_that_ended_are_in_the_timeline_the_oldest_first() -> None:
    situation = a_situation()
    moves = (
        a_move(name="late", started_at=NOW - 10, helped=None),
        a_move(name="early", started_at=NOW - 900, phase=MovePhase.SUCCEEDED, ended_at=NOW - 600, helped=True),
    )
    timeline = pool_state(replace(situation, snapshot=replace(situation.snapshot, moves=moves)), {})["timeline"]
    assert [(each["name"], each["helped"]) for each in timeline] == [("early", True), ("late", None)]


Client = TestClient[web.Request, web.Application]
SNAPSHOT = Path(__file__).parents[3] / "examples" / "report" / "snapshot.yaml"
MOVE: dict[str, Any] = {
    "metadata": {"name": "m", "namespace": "team"},
    "spec": {
        "topologyName": "t",
        "executor": {"pod": "p", "uid": "u"},
        "sourceNodeName": "hot",
        "targetNodeName": "cold",
        "reason": {"scores": {"from": "90", "to": "30"}},
        "predicted": {"hotAfter": "50", "coldAfter": "60"},
    },
}


def test_the_predicted_gain_is_by_how_much_the_gap_was_to_narrow() -> None:
    assert gains_of(ExecutorMove.parse(MOVE)) == Gains(predicted=50.0)
    assert gains_of(ExecutorMove.parse({**MOVE, "status": {"measured": {"gain": 41.5}}})) == Gains(50.0, 41.5)


def test_a_move_by_hand_has_no_prediction() -> None:
    spec = {key: value for key, value in MOVE["spec"].items() if key not in ("reason", "predicted")}
    assert gains_of(ExecutorMove.parse({**MOVE, "spec": spec})) == Gains()


def test_placed_again_tells_by_policy_what_each_topology_would_gain() -> None:
    situation = a_situation()
    (found,) = placed_again(Seen((situation,)))["pools"][situation.policy.name]
    assert found["locality"]["after"]["crossZoneRatio"] < found["locality"]["before"]["crossZoneRatio"]


class _Cluster:
    """Answers by a number that grows each time it is asked, or fails."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails: BallastError | None = None
        self.free = threading.Event()
        self.free.set()

    def __call__(self) -> dict[str, int]:
        self.free.wait()
        if self.fails is not None:
            raise self.fails
        self.asked += 1
        return {"number": self.asked}


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def cluster() -> _Cluster:
    return _Cluster()


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
async def client(cluster: _Cluster, clock: _Clock) -> AsyncIterator[Client]:
    answers = Answers(cluster, every_seconds=5.0, clock=clock)
    async with TestClient(TestServer(console({"/state": answers}))) as found:
        yield found


async def test_pages_that_ask_more_often_get_the_same_answer(client: Client, cluster: _Cluster, clock: _Clock) -> None:
    first = await client.get("/state")
    again = await client.get("/state", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, cluster.asked) == (304, 1)
    clock.now = 5.0
    later = await client.get("/state", headers={"If-None-Match": first.headers["ETag"]})
    assert (later.status, (await later.json())["number"]) == (200, 2)


async def test_two_pages_make_one_question(client: Client, cluster: _Cluster) -> None:
    cluster.free.clear()
    questions = [asyncio.create_task(client.get("/state")) for _ in range(3)]
    await asyncio.sleep(0)
    cluster.free.set()
    assert [(await answer.json())["number"] for answer in await asyncio.gather(*questions)] == [1, 1, 1]


async def test_what_went_wrong_is_told_with_what_helps(client: Client, cluster: _Cluster) -> None:
    cluster.fails = BallastError("the API server does not answer")
    cluster.fails.add_note("Is the VPN on?")
    answer = await client.get("/state")
    assert (await answer.json())["error"] == "the API server does not answer\nIs the VPN on?"


def test_what_looks_at_the_cluster_is_asked_by_one_thread_at_a_time() -> None:
    ended: list[str | None] = []
    others: list[threading.Thread] = []

    def look(policy: str | None) -> Seen:
        if policy == "first":
            others.append(threading.Thread(target=locked, args=("second",)))
            others[0].start()
            # It would end in this time.
            others[0].join(timeout=0.2)
        ended.append(policy)
        return Seen(())

    locked = one_at_a_time(look)
    locked("first")
    others[0].join()
    assert ended == ["first", "second"]


@pytest.mark.parametrize(("host", "status"), [("localhost:8080", 200), ("127.0.0.1", 200), ("elsewhere.test", 403)])
async def test_only_names_of_this_machine_are_answered(client: Client, host: str, status: int) -> None:
    assert (await client.get("/state", headers={"Host": host})).status == status


@pytest.mark.parametrize("path", ["/", "/console.js", "/pool.js", "/moves.js", "/echarts.js", "/console.css"])
async def test_every_part_of_the_page_is_there_and_may_load_nothing_from_elsewhere(client: Client, path: str) -> None:
    answer = await client.get(path)
    assert answer.status == 200
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert await answer.text()


async def test_nothing_else_of_the_machine_is_served(client: Client) -> None:
    assert (await client.get("/NOTICE")).status == 404
    assert (await client.post("/state")).status == 405


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run("dashboard", "-f", str(SNAPSHOT), "--no-browser", "--port", str(port))
    assert ended.code == 1
    assert f"port {port} of this machine can't be used" in ended.err


def test_the_state_is_json_without_gaps() -> None:
    assert "NaN" not in json.dumps(state(Seen((a_situation(),))))
