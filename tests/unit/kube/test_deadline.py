"""Answers that have no end, as gateways give them on a bad day: byte by byte, or more than the memory holds."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ballast import deadline
from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from ballast.kube.errors import AnswerTooLong, KubeError, Unavailable
from ballast.kube.kinds import POD
from tests.apiserver import kubeconfig

READ_SECONDS = 30.0
ANSWER_SECONDS = 60.0
"""By a clock that goes on with what the server sends: nothing here takes as long."""
MEBIBYTE = 1 << 20
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LIMITS = Limits(attempts=1, read_seconds=READ_SECONDS, answer_seconds=ANSWER_SECONDS)

Send = Callable[[bytes], object]


class Clock:
    """Seconds, in place of the machine's."""

    def __init__(self) -> None:
        self.now = 0.0
        self.read = threading.Event()

    def monotonic(self) -> float:
        self.read.set()
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        """Once the client has read the time, as it does before each read of an answer."""
        if not self.read.wait(30.0):
            self.now = float("inf")
            raise ConnectionError("the client waits without a deadline")
        self.read.clear()
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(deadline, "time", found)
    return found


Answering = Callable[[Send, Clock], None]


def dripping(start: bytes, piece: bytes) -> Answering:
    """A piece in each second, for ten times as long as an answer may take."""

    def answer(send: Send, clock: Clock) -> None:
        send(start)
        for _ in range(round(10 * ANSWER_SECONDS)):
            clock.pass_seconds(1.0)
            send(piece)

    return answer


def pouring(start: bytes, piece: bytes) -> Answering:
    """Without an end, and within no time."""

    def answer(send: Send, clock: Clock) -> None:
        del clock
        send(start)
        while True:
            send(piece)

    return answer


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


SLOW = {
    "a status line": dripping(b"HTTP/1.1 200 ", b"o"),
    "headers": dripping(HEAD, b"X-A: b\r\n"),
    "a header": dripping(HEAD + b"X-A: ", b"b"),
    "100 Continue": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body": dripping(HEAD + b"Content-Length: 100000\r\n\r\n", b" "),
    "chunks": dripping(CHUNKED, chunk(b" ")),
    "a chunk's length": dripping(CHUNKED, b"0"),
    "trailers": dripping(CHUNKED + chunk(b"{}") + b"0\r\n", b"X-A: b\r\n"),
}
BOMB = gzip.compress(b'{"type":"ADDED","object":{"a":"' + b" " * (64 * MEBIBYTE))
LONG = {
    "a body": pouring(CHUNKED, chunk(b'{"a":"' + b"x" * 65536)),
    "a line": pouring(CHUNKED + chunk(b'{"type":"ADDED","object":{"a":"'), chunk(b"x" * 65536)),
    "a gzip bomb": pouring(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB, b""),
}


@contextmanager
def answering(answer: Answering, clock: Clock, folder: Path) -> Iterator[Client]:
    """A client of a server that sends this to the one that connects first."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()

            def send(data: bytes) -> None:
                if over.is_set():
                    raise ConnectionError
                connection.sendall(data)

            with connection, suppress(OSError):
                connection.recv(65536)
                answer(send, clock)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client = Client(
            Connection.from_kubeconfig(kubeconfig(folder, f"http://127.0.0.1:{server.getsockname()[1]}")), LIMITS
        )
        try:
            yield client
        finally:
            over.set()
            clock.read.set()
            client.close()
            thread.join(60)


def read(client: Client) -> object:
    return client.get(POD, "p", namespace="n")


def write(client: Client) -> object:
    return client.patch(POD, "p", [], namespace="n")


def read_page(client: Client) -> object:
    return client.get_page(POD, {})


def watch(client: Client) -> object:
    with client.stream(POD, {}, connect_seconds=READ_SECONDS, read_seconds=ANSWER_SECONDS) as stream:
        return list(stream)


@pytest.mark.parametrize("ask", [read, write, read_page, watch])
@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW.keys())
def test_an_answer_that_drips_without_an_end_is_given_up(
    answer: Answering, ask: Callable[[Client], object], clock: Clock, tmp_path: Path
) -> None:
    """Each read got something in time, so the thread waited for good: of the election, of a reconcile or of a watch."""
    with answering(answer, clock, tmp_path) as client:
        with pytest.raises(Unavailable, match=r"took too long|broke off"):
            ask(client)
        assert clock.now <= READ_SECONDS + ANSWER_SECONDS + 5.0


@pytest.mark.parametrize("ask", [read, write, read_page, watch])
@pytest.mark.parametrize("answer", LONG.values(), ids=LONG.keys())
def test_an_answer_that_would_fill_the_memory_is_not_read_to_its_end(
    answer: Answering, ask: Callable[[Client], object], clock: Clock, tmp_path: Path
) -> None:
    with answering(answer, clock, tmp_path) as client, pytest.raises(KubeError, match=r"more than 1[06] MiB") as raised:
        ask(client)
    assert isinstance(raised.value, AnswerTooLong) == (ask is read_page)


def test_a_watch_whose_events_keep_coming_stays_open(clock: Clock, tmp_path: Path) -> None:
    """Longer than its head, or one event, may take."""
    event = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}\n'
    count = 60

    def answer(send: Send, clock: Clock) -> None:
        send(CHUNKED)
        for _ in range(count):
            clock.pass_seconds(ANSWER_SECONDS / 20)
            send(chunk(event))
        send(b"0\r\n\r\n")

    with answering(answer, clock, tmp_path) as client:
        found = watch(client)
    assert isinstance(found, list)
    assert len(found) == count
    assert clock.now == 3 * ANSWER_SECONDS
