"""An HTTP server on loopback that gives prepared answers, and a client for it."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from tests.loopback import Handler, Server
from tests.unit.kube.strict import objections

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 200
    body: JSON = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    text: str = ""
    """Sent instead of the body."""
    hang_up: bool = False
    """Close the connection instead of answering."""


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Scripted:
    """Answers in turn, the last one again and again; or by what is asked."""

    answers: list[Answer]
    by: Callable[[Asked], Answer] | None = None
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    @property
    def writes(self) -> list[Asked]:
        """What was asked that changes something."""
        return [asked for asked in self.asked if asked.method != "GET"]

    objections: list[str] = field(default_factory=list)
    """What a real API server would have against these writes."""

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        self.objections += objections(asked)
        if self.by is not None:
            return self.by(asked)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def client(self, folder: Path, limits: Limits | None = None) -> Client:
        connection = Connection.from_kubeconfig(kubeconfig(folder, self.url))
        return Client(connection, limits or Limits(), sleep=self.slept.append)


def kubeconfig(folder: Path, url: str, *, namespace: str = "analytics") -> Path:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [
            {"name": "first", "context": {"cluster": "c", "user": "u", "namespace": namespace}},
            {"name": "second", "context": {"cluster": "c", "user": "u"}},
        ],
        "current-context": "first",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


@contextmanager
def scripted(*answers: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    script = Scripted(list(answers))

    class Answering(Handler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        """Head and body in one packet: two of them wait for each other's acknowledgment, 40 ms an answer."""

        def answer(self) -> None:
            content = self.content()
            body = json.loads(content) if content else None
            given = script.answer(Asked(self.command, self.path, dict(self.headers), body))
            if given.hang_up:
                self.close_connection = True
                return
            data = given.text.encode() or json.dumps(given.body).encode()
            self.send_response(given.status)
            for name, value in {"Content-Length": str(len(data)), **given.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    with Server(Answering, tls=tls) as server:
        script.url = server.url
        yield script
    assert not script.objections, "\n".join(script.objections)
