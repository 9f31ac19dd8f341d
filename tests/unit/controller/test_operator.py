"""The operator as a whole, where the API server is slow or of no help."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ballast.controller.operator import Operator, Settings
from ballast.kube.connection import Connection
from ballast.kube.document import text
from tests.unit.kube.builders import GATE, executor, node
from tests.unit.kube.scripted import Answer, Asked, kubeconfig, scripted


class Mute:
    """A server that takes connections and never answers."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._taken: list[socket.socket] = []
        self.asked = threading.Semaphore(0)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._taking = threading.Thread(target=self._take, daemon=True)
        self._taking.start()

    def _take(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._taken.append(connection)
            self.asked.release()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._taking.join()
        self._listener.close()
        for connection in self._taken:
            connection.close()


@contextmanager
def mute() -> Iterator[Mute]:
    server = Mute()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(autouse=True)
def _nobody_left_behind() -> Iterator[None]:
    """What the operator leaves behind ends once its server is gone; it must not disturb the next test."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive(), thread


async def test_a_stop_does_not_wait_for_a_server_that_hangs(tmp_path: Path) -> None:
    with mute() as server:
        settings = Settings(
            "ballast", "ballast-system", "one", host="127.0.0.1", health_port=0, metrics_port=0, stop_seconds=0.2
        )
        operator = Operator(Connection.from_kubeconfig(kubeconfig(tmp_path, server.url)), settings)
        stop = asyncio.Event()
        running = asyncio.ensure_future(operator.run(stop))
        for _ in range(4):
            await asyncio.to_thread(server.asked.acquire, timeout=30)
        stop.set()
        await asyncio.wait_for(running, 15)


class Slow:
    """Keeps one lease and one switch at once; all lists are empty, and come when they are let go. Hangs up on kopf."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {
            "leases": {"metadata": {"resourceVersion": "1"}, "spec": {}},
            "gateswitches": {"metadata": {"resourceVersion": "1", "name": "ballast"}, "spec": {"gating": True}},
        }
        self.round_began, self.let_go, self.renewed = threading.Event(), threading.Event(), threading.Semaphore(0)

    def __call__(self, asked: Asked) -> Answer:
        if asked.headers["User-Agent"].startswith("kopf"):
            return Answer(hang_up=True)
        path = asked.path.partition("?")[0].removesuffix("/status")
        kind = path.split("/")[-2]
        if kind in self.kept:
            return self._keep(kind, asked)
        if "watch=true" in asked.path:
            return Answer(503, {"message": "not now"})
        if path.endswith("/executormoves"):
            self.round_began.set()
            self.let_go.wait(60)
        return Answer(body={"items": [], "metadata": {"resourceVersion": "1"}})

    def _keep(self, kind: str, asked: Asked) -> Answer:
        if asked.method == "PUT":
            self.kept[kind] = asked.body
            self.renewed.release()
        elif asked.method == "PATCH":
            self.kept[kind] |= asked.body | {"metadata": self.kept[kind]["metadata"]}
        return Answer(body=self.kept[kind])


async def test_a_clean_stop_turns_the_switch_off_although_the_last_round_takes_longer_than_a_lease(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with scripted() as script:
        script.by = server = Slow()
        settings = Settings(
            "ballast",
            "ballast-system",
            "one",
            host="127.0.0.1",
            health_port=0,
            metrics_port=0,
            lease_seconds=3,
            stop_seconds=60,
        )
        operator = Operator(Connection.from_kubeconfig(kubeconfig(tmp_path, script.url)), settings)
        stop = asyncio.Event()
        running = asyncio.ensure_future(operator.run(stop))
        assert await asyncio.to_thread(server.round_began.wait, 30)
        stop.set()
        renewals_of_a_lease = 6
        for _ in range(2 * renewals_of_a_lease):
            assert await asyncio.to_thread(server.renewed.acquire, timeout=30)
        server.let_go.set()
        await asyncio.wait_for(running, 30)
        assert server.kept["gateswitches"]["status"]["reason"] == "Stopped"
        assert server.kept["leases"]["spec"]["holderIdentity"] == ""
    led = [vars(each) for each in caplog.records if vars(each).get("event") == "LeadershipChanged"]
    assert [(each["identity"], each["leading"]) for each in led][:1] == [("one", True)]


class Gated:
    """A pool with one executor that is gated. Watches are refused, and kopf is hung up on."""

    def __init__(self) -> None:
        self.lists: dict[str, list[dict[str, Any]]] = {
            "pods": [executor(1, gates=[GATE])],
            "nodes": [node()],
            "namespaces": [{"metadata": {"name": "analytics", "labels": {"ballast.dev/gate": "enabled"}}}],
        }
        self.lists["pods"][0]["metadata"]["creationTimestamp"] = text(time.time())

    def __call__(self, asked: Asked) -> Answer:
        if asked.headers["User-Agent"].startswith("kopf"):
            return Answer(hang_up=True)
        if "watch=true" in asked.path:
            return Answer(503, {"message": "not now"})
        kind = asked.path.partition("?")[0].rsplit("/", 1)[-1]
        return Answer(body={"items": self.lists.get(kind, []), "metadata": {"resourceVersion": "9"}})


async def test_a_process_that_fails_releases_what_it_gates_and_says_why(tmp_path: Path) -> None:
    with scripted() as script:
        script.by = Gated()
        settings = Settings("ballast", "ballast-system", "one", host="127.0.0.1", health_port=0, metrics_port=0)
        operator = Operator(Connection.from_kubeconfig(kubeconfig(tmp_path, script.url)), settings)
        with (
            patch.object(operator, "_elect", side_effect=RuntimeError("a defect")),
            pytest.raises(ExceptionGroup, match="unhandled errors"),
        ):
            await asyncio.wait_for(operator.run(asyncio.Event()), 30)
        released = [asked.path for asked in script.writes if "/pods/" in asked.path]
    assert released == ["/api/v1/namespaces/analytics/pods/spark-1-exec-1?fieldManager=ballast"]
