"""Answers that have no end, as gateways give them on a bad day: byte by byte, or more than the memory holds."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from ballast.kube.errors import AnswerTooLong, KubeError, Unavailable
from ballast.kube.kinds import POD
from tests.apiserver import kubeconfig

READ_SECONDS = 0.2
ANSWER_SECONDS = 0.4
LATEST_SECONDS = 5.0
"""A busy machine takes its time."""
MEBIBYTE = 1 << 20
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LIMITS = Limits(attempts=1, read_seconds=READ_SECONDS, answer_seconds=ANSWER_SECONDS)

Send = Callable[[bytes], object]


def drip(send: Send, piece: bytes) -> None:
    while True:
        send(piece)
        time.sleep(READ_SECONDS / 10)


def pour(send: Send, piece: bytes) -> None:
    while True:
        send(piece)


def dripping(start: bytes, piece: bytes) -> Callable[[Send], None]:
    def answer(send: Send) -> None:
        send(start)
        drip(send, piece)

    return answer


def pouring(start: bytes, piece: bytes) -> Callable[[Send], None]:
    def answer(send: Send) -> None:
        send(start)
        pour(send, piece)

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
def answering(answer: Callable[[Send], None], folder: Path) -> Iterator[Client]:
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
                answer(send)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client = Client(
            Connection.from_kubeconfig(kubeconfig(folder, f"http://127.0.0.1:{server.getsockname()[1]}")), LIMITS
        )
        try:
            yield client
        finally:
            over.set()
            client.close()
            thread.join(10)


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
    answer: Callable[[Send], None], ask: Callable[[Client], object], tmp_path: Path
) -> None:
    """Each read got something in time, so the thread waited for good: of the election, of a reconcile or of a watch."""
    with answering(answer, tmp_path) as client:
        began = time.monotonic()
        with pytest.raises(Unavailable, match=r"took too long|broke off"):
            ask(client)
        assert time.monotonic() - began < LATEST_SECONDS


@pytest.mark.parametrize("ask", [read, write, read_page, watch])
@pytest.mark.parametrize("answer", LONG.values(), ids=LONG.keys())
def test_an_answer_that_would_fill_the_memory_is_not_read_to_its_end(
    answer: Callable[[Send], None], ask: Callable[[Client], object], tmp_path: Path
) -> None:
    with answering(answer, tmp_path) as client, pytest.raises(KubeError, match=r"more than 1[06] MiB") as raised:
        ask(client)
    assert isinstance(raised.value, AnswerTooLong) == (ask is read_page)


def test_a_watch_whose_events_keep_coming_stays_open(tmp_path: Path) -> None:
    """Longer than its head, or one event, may take."""
    event = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}\n'
    count = 20

    def answer(send: Send) -> None:
        send(CHUNKED)
        for _ in range(count):
            send(chunk(event))
            time.sleep(ANSWER_SECONDS / 8)
        send(b"0\r\n\r\n")

    with answering(answer, tmp_path) as client:
        found = watch(client)
    assert isinstance(found, list)
    assert len(found) == count
