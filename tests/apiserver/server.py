"""The fake API server: it answers from its store, or as a test has it answer, over HTTP or inside the process."""

from __future__ import annotations

import io
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import SHUT_RDWR
from typing import Any

import urllib3
import yaml

from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from tests.apiserver.discovery import DISCOVERY
from tests.apiserver.exchange import Answer, Asked, Refusal
from tests.apiserver.store import Store
from tests.apiserver.strict import objections
from tests.apiserver.watch import Broken, Fault, Watch
from tests.loopback import Handler, Server

JSON = dict[str, Any]
RESET = Answer(hang_up=True)
STALL = Answer(stall=True)
BUSY = Answer(429, {"message": "too many requests"}, {"Retry-After": "1"})
OVERLOADED = Answer(503, {"message": "overloaded"})
PAGE = Answer(text="<html>Sign in</html>", headers={"Content-Type": "text/html"})
_AFTER = {Fault.PAGE: PAGE, Fault.REFUSED: OVERLOADED, Fault.SILENT: STALL, Fault.CUT: RESET, Fault.HALF: RESET}
"""What requests are answered while a fault lasts that breaks watches."""
Through = Callable[[Asked, Callable[[], Answer | Watch]], Answer | Watch]
"""Lets a request through, or what happens in its place."""


@dataclass
class ApiServer(Store):
    """`answers`: given in turn, the last one again and again. `by`: else answers; by itself from the store."""

    answers: list[Answer] = field(default_factory=list)
    by: Callable[[Asked], Answer | Watch] = field(default=lambda _: Answer(404))
    refusals: dict[str, Answer] = field(default_factory=dict)
    """What is answered instead: by the end of the path, after `PATCH ` or another method if it is for that alone."""
    url: str = ""
    """While it serves HTTP."""
    asked: list[Asked] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    """Pauses of its clients, which they did not make."""
    objections: list[str] = field(default_factory=list)
    """What a real API server would have against the writes."""
    watches: list[Watch] = field(default_factory=list)
    """All that were opened."""
    bookmark_seconds: float = 60.0
    lag: int = 0
    """Reads show the objects before so many changes."""
    ended: bool = False
    _fault: Fault | None = None
    _afflicted: int = 0
    """So many requests more are met by the fault."""

    def __post_init__(self) -> None:
        self.by = self._prepared if self.answers else self.respond

    @property
    def writes(self) -> list[Asked]:
        """What was asked that changes something."""
        return [asked for asked in self.asked if asked.method != "GET"]

    def strike(self, fault: Fault, *, further: int = 0) -> None:
        """Break every open watch, and as many of the next requests."""
        with self.news:
            self._fault, self._afflicted = fault, further
            if fault is Fault.EXPIRED:
                self.compact()
            for watch in self.watches:
                watch.strike(fault)

    def next_watch(self, number: int = 1) -> Watch:
        """The watch that is opened so manyth, once it is."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.watches) >= number, 30), f"{len(self.watches)} watches"
            return self.watches[number - 1]

    def end(self) -> None:
        with self.news:
            self.ended = True
            self.news.notify_all()

    def answer(self, asked: Asked) -> Answer | Watch:
        with self.news:
            self.asked.append(asked)
            fault = self._fault if self._afflicted else None
            self._afflicted = max(0, self._afflicted - 1)
        self.objections += objections(asked)
        if fault in _AFTER:
            return _AFTER[fault] if "watch" in asked.query or fault is not Fault.SILENT else RESET
        for ending, refusal in self.refusals.items():
            method, _, path = ending.rpartition(" ")
            if asked.route.endswith(path) and method in ("", asked.method):
                return refusal
        return self.by(asked)

    def _prepared(self, _: Asked) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def respond(self, asked: Asked) -> Answer | Watch:
        """From the store."""
        if asked.route in DISCOVERY:
            return Answer(body=DISCOVERY[asked.route])
        try:
            return self._responded(asked)
        except Refusal as refusal:
            return refusal.answer

    def _responded(self, asked: Asked) -> Answer | Watch:
        if asked.query.get("watch") == "true":
            return self._watched(asked)
        place, body, status = asked.place, asked.body, 200
        match asked.method:
            case "GET":
                found = self._seen().read(place) if place.name else self._seen().page(asked)
            case "POST" if place.subresource == "eviction":
                self.evict(place, body)
                found, status = {"kind": "Status", "status": "Success", "metadata": {}}, 201
            case "POST":
                found, status = self.create(place, body), 201
            case "PUT":
                found = self.replace(place, body)
            case "PATCH":
                found = self.patch(place, body, asked.query.get("fieldManager", ""))
            case _:
                found = self.delete(place, body or {})
        return _shown(asked, found, status)

    def _seen(self) -> Store:
        return Store(self.version, self.oldest, self.past(self.lag), self.changes) if self.lag else self

    def _watched(self, asked: Asked) -> Watch:
        watch = Watch(self, asked)
        with self.news:
            self.watches.append(watch)
            self.news.notify_all()
        return watch

    # Clients

    def client(
        self, folder: Path | None = None, limits: Limits | None = None, *, through: Through | None = None
    ) -> Client:
        """Over HTTP with a folder for its kubeconfig; else inside the process, which is quicker."""
        if folder is not None:
            connection = Connection.from_kubeconfig(kubeconfig(folder, self.url))
        else:
            connection = _Inside("http://inside", "default", lambda: None)
            object.__setattr__(connection, "exchange", _exchange(self, through))
        return Client(connection, limits or Limits(), sleep=self.slept.append)


def _shown(asked: Asked, found: JSON, status: int = 200) -> Answer:
    if "PartialObjectMetadata" not in asked.headers.get("Accept", ""):
        return Answer(status, found)
    if "items" in found:
        return Answer(status, {**found, "items": [{"metadata": each["metadata"]} for each in found["items"]]})
    return Answer(status, {"metadata": found["metadata"]})


def _exchange(server: ApiServer, through: Through | None) -> Callable[[Asked], Answer | Watch]:
    if through is None:
        return server.answer
    return lambda asked: through(asked, lambda: server.answer(asked))


class _Inside(Connection):
    """To a server in this process."""

    exchange: Callable[[Asked], Answer | Watch]

    def pool(self, connections: int) -> Any:
        del connections
        return _Pool(self.exchange)


class _Pool:
    """In place of a urllib3.PoolManager."""

    pools: Mapping[str, Any] = {}

    def __init__(self, exchange: Callable[[Asked], Answer | Watch]) -> None:
        self._exchange = exchange

    def clear(self) -> None:
        """Nothing is open."""

    def request(self, method: str, url: str, *, headers: dict[str, str], body: str | None, **options: Any) -> Any:
        del options
        path = "/" + url.split("/", 3)[3]
        given = self._exchange(Asked(method, path, headers, json.loads(body) if body else None))
        if isinstance(given, Watch):
            return _WatchedInside(given)
        if given.hang_up:
            raise urllib3.exceptions.ProtocolError("Connection aborted.", ConnectionResetError())
        if given.stall:
            raise _timeout()
        data = given.text.encode() or json.dumps(given.body).encode()
        sent = {"Content-Type": "application/json", "Content-Length": str(len(data)), **given.headers}
        return urllib3.HTTPResponse(io.BytesIO(data), sent, given.status, preload_content=False)


def _timeout() -> Exception:
    return urllib3.exceptions.ReadTimeoutError("inside", "inside", "Read timed out.")  # type: ignore[arg-type]


class _WatchedInside:
    """In place of a urllib3 response."""

    status = 200
    headers: Mapping[str, str] = {"Content-Type": "application/json"}

    def __init__(self, watch: Watch) -> None:
        self._watch, self._lines = watch, iter(watch)

    def read1(self, _: int) -> bytes:
        try:
            return next(self._lines, b"")
        except Broken as broken:
            self._lines = iter(())
            if broken.fault is Fault.SILENT:
                raise _timeout() from broken
            if broken.fault is Fault.CUT:
                raise urllib3.exceptions.ProtocolError("Connection broken") from broken
            return _LAST.get(broken.fault, b"")

    def shutdown(self) -> None:
        self._watch.end()

    close = shutdown


_LAST = {Fault.HALF: b'{"type":"ADDED","object":{"meta', Fault.PAGE: b"<html>sign in</html>\n"}


class _Handler(Handler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    """Head and body in one packet: two of them wait for each other's acknowledgment, 40 ms an answer."""
    served: ApiServer

    def answer(self) -> None:
        content = self.content()
        body = json.loads(content) if content else None
        given = self.served.answer(Asked(self.command, self.path, dict(self.headers), body))
        if isinstance(given, Watch):
            with suppress(OSError):
                self._watched(given)
            given.end()
        elif given.stall:
            self.server.ended.wait()
        elif given.hang_up:
            self.close_connection = True
        else:
            self._reply(given)

    def _reply(self, given: Answer) -> None:
        data = given.text.encode() or json.dumps(given.body).encode()
        self.send_response(given.status)
        for name, value in {"Content-Length": str(len(data)), **self._typed(given), **given.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _typed(self, given: Answer) -> dict[str, str]:
        """A prepared answer has the headers that its test gives it."""
        prepared = self.served.answers or given.text
        return {} if prepared else {"Content-Type": "application/json"}

    def _watched(self, watch: Watch) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        try:
            for line in watch:
                self._send(line)
        except Broken as broken:
            self._break(broken.fault)
        else:
            self._send(b"")

    def _send(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.flush()

    def _break(self, fault: Fault) -> None:
        if fault is Fault.SILENT:
            self.server.ended.wait()
        if last := _LAST.get(fault):
            self._send(last)
        if fault in (Fault.PAGE, Fault.REFUSED):
            self._send(b"")
            return
        self.close_connection = True
        self.connection.shutdown(SHUT_RDWR)


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
def serving(served: ApiServer, *, tls: ssl.SSLContext | None = None) -> Iterator[ApiServer]:
    """Over HTTP. What a real API server would have against a write fails the test."""
    with Server(type("Handler", (_Handler,), {"served": served}), tls=tls) as server:
        served.url = server.url
        try:
            yield served
        finally:
            served.end()
    assert not served.objections, "\n".join(served.objections)


@contextmanager
def scripted(*answers: Answer, tls: ssl.SSLContext | None = None) -> Iterator[ApiServer]:
    """A server of prepared answers."""
    with serving(ApiServer(answers=list(answers)), tls=tls) as server:
        yield server
