from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

import pytest

from ballast.prometheus import Endpoint, Prometheus, PrometheusError

EMPTY = json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}})


class _Server(ThreadingHTTPServer):
    """Answers by query: `slow` never does, `bad` is refused in Prometheus' words, others find nothing."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.ended = threading.Event()
        self.authorization: list[str | None] = []


class _Answering(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.authorization.append(self.headers.get("Authorization"))
        query = parse_qs(urlparse(self.path).query)["query"][0]
        if query == "slow":
            self.server.ended.wait(30)
            return
        refused = json.dumps({"status": "error", "error": "parse error: unexpected end of input"})
        self.send_response(400 if query == "bad" else 200)
        self.end_headers()
        self.wfile.write((refused if query == "bad" else EMPTY).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the library's name
        del format, args


@contextmanager
def serving() -> Iterator[_Server]:
    server = _Server()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def asking(server: _Server, *, token: str = "") -> Iterator[Prometheus]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    client = Prometheus(Endpoint(f"http://127.0.0.1:{server.server_port}/", timeout_seconds=0.5, headers=headers))
    try:
        yield client
    finally:
        client.close()


def test_a_slow_server_is_waited_for_no_longer_than_the_timeout() -> None:
    with serving() as server, asking(server) as client, pytest.raises(PrometheusError, match="no answer in time"):
        client.query("slow")


def test_a_refused_query_is_told_in_the_servers_own_words() -> None:
    with serving() as server, asking(server) as client, pytest.raises(PrometheusError, match="unexpected end of input"):
        client.query("bad")


def test_a_dead_server_can_not_be_reached() -> None:
    with serving() as server:
        port = server.server_port
    client = Prometheus(Endpoint(f"http://127.0.0.1:{port}", timeout_seconds=0.5))
    with pytest.raises(PrometheusError, match="can't be reached"):
        client.query("up")
    client.close()


def test_one_query_that_fails_takes_no_other_with_it() -> None:
    with serving() as server, asking(server) as client:
        answers, failures = client.query_all({"good": "up", "bad": "bad", "slow": "slow"})
    assert answers == {"good": []}
    assert set(failures) == {"bad", "slow"}


def test_the_token_goes_with_every_query() -> None:
    with serving() as server, asking(server, token="secret") as client:
        client.query("up")
    assert server.authorization == ["Bearer secret"]
