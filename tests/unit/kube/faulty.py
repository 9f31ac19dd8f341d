"""A small API server on loopback for pods, with lists, watches, bookmarks, and the faults that watches meet."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from socket import SHUT_RDWR
from typing import Any

from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from tests.loopback import Handler, Server
from tests.unit.kube.scripted import kubeconfig

JSON = dict[str, Any]

BOOKMARK_SECONDS = 0.2


class Fault(Enum):
    """What happens to every watch that is open, and to the next requests."""

    SILENT = "the connection stays open and nothing comes"
    CUT = "the connection ends"
    HALF = "the connection ends within an event"
    PAGE = "a gateway answers with a page of HTML and status 200"
    EXPIRED = "the version is too old (410)"
    REFUSED = "the server is overloaded (503)"


@dataclass
class FaultyServer:
    """`url` once it serves. Change pods by `put` and `remove`, and break watches by `strike`."""

    url: str = ""
    requests: list[tuple[float, bool]] = field(default_factory=list)
    """Monotonic seconds of each request, and whether a fault met it."""
    _pods: dict[str, JSON] = field(default_factory=dict)
    _log: list[tuple[int, JSON]] = field(default_factory=list)
    """Events with their versions."""
    _version: int = 100
    _oldest: int = 0
    """Watches from before this version are refused with 410."""
    _fault: Fault | None = None
    _strikes: int = 0
    _afflicted: int = 0
    _closed: bool = False
    _news: threading.Condition = field(default_factory=threading.Condition)

    def client(self, folder: Path) -> Client:
        limits = Limits(connect_seconds=2.0, read_seconds=2.0, attempts=1)
        return Client(Connection.from_kubeconfig(kubeconfig(folder, self.url)), limits)

    @property
    def versions(self) -> dict[str, int]:
        """What a complete store has: versions by uid."""
        with self._news:
            return {uid: int(pod["metadata"]["resourceVersion"]) for uid, pod in self._pods.items()}

    def put(self, uid: str) -> None:
        with self._news:
            type_ = "MODIFIED" if uid in self._pods else "ADDED"
            self._version += 1
            metadata = {"uid": uid, "name": uid, "namespace": "ns", "resourceVersion": str(self._version)}
            self._pods[uid] = {"metadata": metadata, "spec": {}}
            self._tell(type_, self._pods[uid])

    def remove(self, uid: str) -> None:
        with self._news:
            pod = self._pods.pop(uid, None)
            if pod is not None:
                self._version += 1
                metadata = {**pod["metadata"], "resourceVersion": str(self._version)}
                self._tell("DELETED", {**pod, "metadata": metadata})

    def strike(self, fault: Fault, *, further: int) -> None:
        """Break every open watch, and as many of the next requests."""
        with self._news:
            self._fault, self._afflicted = fault, further
            self._strikes += 1
            if fault is Fault.EXPIRED:
                self._oldest = self._version
            self._news.notify_all()

    def close(self) -> None:
        with self._news:
            self._closed = True
            self._news.notify_all()

    def _tell(self, type_: str, pod: JSON) -> None:
        self._log.append((self._version, {"type": type_, "object": pod}))
        self._news.notify_all()

    def answer(self, handler: _Handler) -> None:
        query = handler.fields()
        watching = query.get("watch") == "true"
        with self._news:
            fault = self._fault if self._afflicted else None
            self._afflicted = max(0, self._afflicted - 1)
            self.requests.append((time.monotonic(), fault is not None))
        if fault is not None and fault is not Fault.EXPIRED:
            self._refuse(handler, fault, watching=watching)
        elif watching:
            self._watch(handler, int(query["resourceVersion"]))
        else:
            self._list(handler)

    def _list(self, handler: _Handler) -> None:
        with self._news:
            page = {"metadata": {"resourceVersion": str(self._version)}, "items": list(self._pods.values())}
        handler.reply(json.dumps(page).encode())

    def _refuse(self, handler: _Handler, fault: Fault, *, watching: bool) -> None:
        if fault is Fault.PAGE:
            handler.reply(b"<html>sign in</html>", content_type="text/html")
        elif fault is Fault.REFUSED:
            handler.reply(b'{"message": "overloaded"}', status=503)
        elif fault is Fault.SILENT and watching:
            handler.begin()
            self._stay()
        else:
            handler.hang_up()

    def _watch(self, handler: _Handler, position: int) -> None:
        with self._news:
            strikes = self._strikes
            expired = position < self._oldest
        handler.begin()
        if expired:
            self._break(handler, Fault.EXPIRED)
            return
        while (events := self._next(position, strikes)) is not None:
            for version, event in events:
                handler.send(json.dumps(event).encode() + b"\n")
                position = version
        if not self._closed and self._fault is not None:
            self._break(handler, self._fault)

    def _next(self, position: int, strikes: int) -> list[tuple[int, JSON]] | None:
        """Events after `position`, or a bookmark; None when the watch is broken."""
        with self._news:
            self._news.wait_for(
                lambda: self._broken(strikes) or (self._log and self._log[-1][0] > position), BOOKMARK_SECONDS
            )
            if self._broken(strikes):
                return None
            events = [entry for entry in self._log if entry[0] > position]
            metadata = {"resourceVersion": str(max(position, self._version))}
            return events or [(self._version, {"type": "BOOKMARK", "object": {"metadata": metadata}})]

    def _broken(self, strikes: int) -> bool:
        return self._closed or self._strikes != strikes

    def _break(self, handler: _Handler, fault: Fault) -> None:
        if fault is Fault.SILENT:
            self._stay()
        elif fault is Fault.HALF:
            handler.send(b'{"type":"ADDED","object":{"meta')
            handler.hang_up()
        elif fault is Fault.PAGE:
            handler.send(b"<html>sign in</html>\n")
            handler.end()
        elif fault is Fault.EXPIRED:
            handler.send(b'{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}\n')
            handler.end()
        elif fault is Fault.REFUSED:
            handler.end()
        else:
            handler.hang_up()

    def _stay(self) -> None:
        with self._news:
            self._news.wait_for(lambda: self._closed)


class _Handler(Handler):
    protocol_version = "HTTP/1.1"
    served: FaultyServer

    def answer(self) -> None:
        with suppress(OSError):
            self.served.answer(self)

    def begin(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def send(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def end(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(SHUT_RDWR)


@contextmanager
def faulty_server() -> Iterator[FaultyServer]:
    served = FaultyServer()
    handler = type("Handler", (_Handler,), {"served": served})
    with Server(handler) as server:
        served.url = server.url
        try:
            yield served
        finally:
            served.close()
