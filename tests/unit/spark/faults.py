"""A server that answers as it is told, for the faults that a real Prometheus can't be brought to show."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.loopback import Handler, Server


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


class FaultyServer(Server):
    """Gives its answers one after the other, the last one for ever."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        super().__init__(_Answering)
        self.answers = list(answers)
        self.asked: list[Asked] = []

    def next_answer(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class _Answering(Handler):
    server: FaultyServer

    def answer(self) -> None:
        self.server.asked.append(Asked(self.command, urlsplit(self.path).path, self.fields(), dict(self.headers)))
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


def serving(*answers: Answer) -> FaultyServer:
    return FaultyServer(answers)
