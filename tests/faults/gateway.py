"""What stands between the operator and the API server, and does to requests what gateways do on a bad day."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests import loopback
from tests.testbed.pki import create_pki
from tests.testbed.testbed import Testbed

JSON = dict[str, Any]
UPSTREAM_SECONDS = 60.0
SLOW_SECONDS = 2.0
DRIP_SECONDS = 0.1


class Fault(Enum):
    """What happens to every request while it lasts, and once to every watch that is open when it begins."""

    PAGE = "a page of HTML with status 200"
    BUSY = "429 with Retry-After"
    ERROR = "500"
    OVERLOADED = "503"
    TRUNCATED = "bodies and watches that end in the middle; writes take effect"
    DROPPED = "connections that are closed without an answer"
    EXPIRED = "410 to every watch"
    STALLED = "nothing is answered until the fault ends"
    STALE = "reads are answered as they were before"
    SLOW = "lists take seconds"
    UNAUTHORIZED = "401: the token has expired"
    CONFLICT = "409 to every write of something that exists"
    READ_ONLY = "500 to every write, as when etcd's space is used up"
    DRIPPING = "answers that come byte by byte until the fault ends"
    ENDLESS = "answers that go on until the fault ends, faster than they can be read"
    REPEATED = "lists whose last page names another one"
    INVENTED = "watches that tell of what is no object, and of versions that are far ahead"


_STATUS = {
    Fault.BUSY: (429, "TooManyRequests"),
    Fault.ERROR: (500, "InternalError"),
    Fault.OVERLOADED: (503, "ServiceUnavailable"),
    Fault.UNAUTHORIZED: (401, "Unauthorized"),
    Fault.CONFLICT: (409, "Conflict"),
    Fault.READ_ONLY: (500, "InternalError"),
}
_MET = {Fault.CONFLICT: ("PUT", "PATCH"), Fault.READ_ONLY: ("POST", "PUT", "PATCH", "DELETE")}
"""Methods that a fault meets, where it does not meet all."""
_FAR_AHEAD = 10**15
_NO_OBJECTS: tuple[Any, ...] = (
    *({}, [], None, "x", {"metadata": None}, {"metadata": []}),
    {"metadata": {"uid": 5, "name": 7, "resourceVersion": 9}},
    {"metadata": {"uid": "", "name": "", "resourceVersion": "-3"}},
    {"kind": "Secret", "metadata": {"uid": "s", "name": "s", "namespace": "n", "resourceVersion": "5"}},
    {"kind": "Pod", "metadata": {"uid": "p", "name": "p", "namespace": "n", "resourceVersion": "1"}, "status": []},
)
_HOP_HEADERS = frozenset({"host", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-encoding"})


@dataclass
class Gateway:
    """`url` once it serves, with a certificate of its own authority, which is in the file `ca`."""

    target: str
    trusted: ssl.SSLContext
    folder: Path
    url: str = ""
    hits: int = 0
    """Requests that a fault met."""
    _fault: Fault | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _closed: bool = False
    _rotations: int = 0
    _certificate: ssl.SSLContext | None = None
    _watches: set[_Handler] = field(default_factory=set)
    _connections: set[socket.socket] = field(default_factory=set)
    _remembered: dict[str, _Answer] = field(default_factory=dict)

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def fault(self) -> Fault | None:
        return self._fault

    @property
    def closed(self) -> bool:
        return self._closed

    def kubeconfig(self, token: str, *, namespace: str) -> Path:
        """Names files for token and authority, as a pod has them, so that both can be rotated."""
        (self.folder / "token").write_text(token)
        config = {
            "clusters": [{"name": "c", "cluster": {"server": self.url, "certificate-authority": str(self.ca)}}],
            "users": [{"name": "u", "user": {"tokenFile": str(self.folder / "token")}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
            "current-context": "x",
        }
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    @contextmanager
    def failing(self, fault: Fault) -> Iterator[None]:
        """Every request fails so inside the block."""
        self._set(fault)
        try:
            yield
        finally:
            self._set(None)

    def rotate(self) -> None:
        """Another authority signs the certificate from now on, and connections that are open end."""
        self._rotations += 1
        folder = self.folder / f"pki-{self._rotations}"
        pki = create_pki(folder, control_hosts=["127.0.0.1"], node_hosts=["127.0.0.1"])
        shutil.copy(folder / "ca.crt", self.folder / "ca.new")
        (self.folder / "ca.new").rename(self.ca)
        with self._changed:
            self._certificate = pki.apiserver.server_context()
            for connection in list(self._connections):
                _hang_up(connection)

    def _set(self, fault: Fault | None) -> None:
        with self._changed:
            self._fault = fault
            if fault not in (None, Fault.STALLED, Fault.STALE, Fault.SLOW, *_MET):
                for watch in list(self._watches):
                    watch.interrupt()
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            for watch in list(self._watches):
                watch.interrupt()
            for connection in list(self._connections):
                _hang_up(connection)
            self._changed.notify_all()

    def wait_out(self, fault: Fault) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._fault is not fault)

    def enter(self, watch: _Handler) -> None:
        with self._changed:
            self._watches.add(watch)

    def leave(self, watch: _Handler) -> None:
        with self._changed:
            self._watches.discard(watch)

    def accept(self, plain: socket.socket) -> ssl.SSLSocket:
        assert self._certificate is not None
        secured = self._certificate.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        with self._changed:
            self._connections.add(secured)
        return secured

    def forget(self, connection: socket.socket) -> None:
        with self._changed:
            self._connections.discard(connection)

    def count(self) -> None:
        with self._changed:
            self.hits += 1

    def remember(self, path: str, answer: _Answer) -> None:
        with self._changed:
            self._remembered[path] = answer

    def remembered(self, path: str) -> _Answer | None:
        with self._changed:
            return self._remembered.get(path)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class _Handler(loopback.Handler):
    protocol_version = "HTTP/1.1"
    gateway: Gateway
    _upstream: http.client.HTTPSConnection | None = None
    _watched: http.client.HTTPResponse | None = None

    def setup(self) -> None:
        super().setup()
        with suppress(OSError):
            self.request.do_handshake()

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()
        if self._upstream is not None:
            self._upstream.close()
        self.gateway.forget(self.request)

    def interrupt(self) -> None:
        """From another thread: the watch that this connection carries ends."""
        upstream = self._upstream
        if upstream is not None and upstream.sock is not None:
            _hang_up(upstream.sock)

    def answer(self) -> None:
        body = self.content()
        try:
            self._answer(body)
        except (OSError, http.client.HTTPException):
            self._drop()

    def _answer(self, body: bytes) -> None:
        watching = self.command == "GET" and "watch=true" in self.path
        fault = self.gateway.fault
        if fault is not None:
            self.gateway.count()
        if fault is Fault.STALLED:
            self.gateway.wait_out(fault)
        elif fault is Fault.DROPPED:
            self._drop()
            return
        elif fault is Fault.PAGE:
            self._reply(_Answer(200, (("Content-Type", "text/html"),), b"<html>sign in</html>"))
            return
        elif fault in (Fault.DRIPPING, Fault.ENDLESS):
            self._go_on(fault)
            return
        elif fault is Fault.INVENTED and watching:
            self._invent()
            return
        elif fault is Fault.SLOW and self.command == "GET" and not watching:
            time.sleep(SLOW_SECONDS)
        elif fault is Fault.EXPIRED and watching:
            self._begin()
            self._send(
                b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'
            )
            self._send(b"")
            return
        elif fault in _STATUS and self.command in _MET.get(fault, (self.command,)):
            self._refuse(*_STATUS[fault])
            return
        self._forward(body, fault, watching=watching)

    def _forward(self, body: bytes, fault: Fault | None, *, watching: bool) -> None:
        reading = self.command == "GET" and not watching
        if fault is Fault.STALE and reading and (old := self.gateway.remembered(self.path)) is not None:
            self._reply(old)
            return
        response = self._ask(body)
        if watching and response.status == 200:
            self._watch(response)
            return
        headers = tuple((name, value) for name, value in response.getheaders() if name.lower() not in _HOP_HEADERS)
        found = _Answer(response.status, headers, response.read())
        if fault is Fault.REPEATED and reading and response.status == 200 and b'"items"' in found.body:
            listed = json.loads(found.body)
            listed["metadata"]["continue"] = "again"
            found = _Answer(response.status, headers, json.dumps(listed).encode())
        if reading and fault is None:
            self.gateway.remember(self.path, found)
        self._reply(found, cut=fault is Fault.TRUNCATED)

    def _ask(self, body: bytes) -> http.client.HTTPResponse:
        if self._upstream is None:
            address = urlsplit(self.gateway.target)
            self._upstream = http.client.HTTPSConnection(
                address.hostname or "", address.port, context=self.gateway.trusted, timeout=UPSTREAM_SECONDS
            )
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_HEADERS}
        self._upstream.request(self.command, self.path, body or None, headers)
        return self._upstream.getresponse()

    def _watch(self, response: http.client.HTTPResponse) -> None:
        upstream = self._upstream
        assert upstream is not None
        if upstream.sock is not None:
            upstream.sock.settimeout(None)
        self._begin()
        self.gateway.enter(self)
        # A watch that is interrupted breaks off.
        with suppress(OSError, http.client.HTTPException):
            while piece := response.read1(1 << 16):
                self.gateway.wait_out(Fault.STALLED)
                self._send(piece)
        self.gateway.leave(self)
        self.close_connection = True
        if self.gateway.fault is Fault.TRUNCATED:
            self._send(b'{"type":"ADDED","object":{"meta')
            self._drop()
        elif self.gateway.fault is Fault.EXPIRED:
            self._send(b'{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}\n')
            self._send(b"")
        elif self.gateway.fault is None:
            self._send(b"")
        else:
            self._drop()

    def _go_on(self, fault: Fault) -> None:
        piece = b" " if fault is Fault.DRIPPING else b" " * (1 << 16)
        self._begin()
        while self._lasts(fault):
            self._send(piece)
            if fault is Fault.DRIPPING:
                time.sleep(DRIP_SECONDS)
        self._drop()

    def _invent(self) -> None:
        """Versions far ahead, without anything that is no object, to those who watch pods."""
        self._begin()
        ahead = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(_FAR_AHEAD)}}}
        kinds = () if "/pods" in self.path else ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "FOO", None)
        for event in (ahead, *({"type": kind, "object": body} for kind in kinds for body in _NO_OBJECTS)):
            self._send(json.dumps(event).encode() + b"\n")
        while self._lasts(Fault.INVENTED):
            time.sleep(DRIP_SECONDS)
        self._drop()

    def _lasts(self, fault: Fault) -> bool:
        return self.gateway.fault is fault and not self.gateway.closed

    def _refuse(self, code: int, reason: str) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
        more = (("Retry-After", "1"),) if code == 429 else ()
        headers = (("Content-Type", "application/json"), *more)
        self._reply(_Answer(code, headers, json.dumps({**status, "message": f"injected {reason}"}).encode()))

    def _reply(self, answer: _Answer, *, cut: bool = False) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body[: len(answer.body) // 2] if cut else answer.body)
        if cut:
            self._drop()

    def _begin(self) -> None:
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def _send(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def _drop(self) -> None:
        self.close_connection = True
        _hang_up(self.request)


def _hang_up(connection: socket.socket) -> None:
    """The connection itself: to end TLS in order, another thread would have to be waited for."""
    with suppress(OSError, ValueError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


class _Server(loopback.Server):
    gateway: Gateway

    def get_request(self) -> tuple[socket.socket, Any]:
        plain, address = super().get_request()
        return self.gateway.accept(plain), address

    def shutdown_request(self, request: Any) -> None:
        _hang_up(request)
        self.close_request(request)


@contextmanager
def gateway(testbed: Testbed, folder: Path) -> Iterator[Gateway]:
    """Passes on every request as it is until a fault is chosen."""
    found = Gateway(testbed.url, ssl.create_default_context(cafile=str(testbed.ca)), folder)
    found.rotate()
    handler = type("Handler", (_Handler,), {"gateway": found})
    with _Server(handler) as server:
        server.gateway = found
        found.url = f"https://127.0.0.1:{server.server_port}"
        try:
            yield found
        finally:
            found.close()
