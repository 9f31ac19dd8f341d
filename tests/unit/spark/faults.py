"""A server that answers as it is told, for the faults that a real Prometheus can't be brought to show."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, slots=True)
class Answer:
    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    promised_bytes: int | None = None
    """Said to be the length, where it is not the true one."""
    never: bool = False
    drips: bool = False
    """The body comes byte by byte, again and again."""


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    path: str
    fields: Mapping[str, str]
    headers: Mapping[str, str]


def matrix(*series: Mapping[str, Any], **more: Any) -> Answer:
    document = {"status": "success", "data": {"resultType": "matrix", "result": list(series)}, **more}
    return Answer(json.dumps(document, separators=(",", ":")).encode())


def failure(status: int, kind: str, words: str, **headers: str) -> Answer:
    body = json.dumps({"status": "error", "errorType": kind, "error": words}).encode()
    return Answer(body, status, headers)


class FaultyServer(ThreadingHTTPServer):
    """Gives its answers one after the other, the last one for ever."""

    daemon_threads = True

    def __init__(self, answers: Sequence[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.answers = list(answers)
        self.asked: list[Asked] = []
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next_answer(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class _Answering(BaseHTTPRequestHandler):
    server: FaultyServer

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        form = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        fields = dict(parse_qsl(parts.query) + parse_qsl(form))
        self.server.asked.append(Asked(self.command, parts.path, fields, dict(self.headers)))
        answer = self.server.next_answer()
        if answer.never:
            self.server.ended.wait()
            return
        self.send_response(answer.status)
        length = len(answer.body) if answer.promised_bytes is None else answer.promised_bytes
        for name, value in {"Content-Length": str(length), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        while answer.drips and not self.server.ended.wait(0.02):
            self.wfile.write(b" ")
        self.wfile.write(answer.body)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- its name there
        """Nothing: the tests say what was asked."""


@contextmanager
def serving(*answers: Answer) -> Iterator[FaultyServer]:
    server = FaultyServer(answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
