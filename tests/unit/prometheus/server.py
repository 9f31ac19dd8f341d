"""A server on loopback that speaks Prometheus' HTTP API and remembers what it was sent."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

from tests.testbed.pki import KeyPair

EMPTY = json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}})


class Server(ThreadingHTTPServer):
    """Answers by query: `slow` never does, `bad` is refused in Prometheus' words, others find nothing."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server_port}"
        self.ended = threading.Event()
        self.headers: list[dict[str, str]] = []
        """Of every request, in their order."""
        self.queries: list[str] = []
        self.said = EMPTY
        """To queries other than those two."""
        self.said_to: dict[str, str] = {}
        """To this query instead of that."""

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that doesn't trust the certificate hangs up, which is what it should do."""
        del request, client_address

    def sent(self, name: str) -> set[str | None]:
        """Every value that this header had."""
        return {headers.get(name) for headers in self.headers}


class _Answering(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self._answer(urlparse(self.path).query)

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

    def _answer(self, fields: str) -> None:
        self.server.headers.append(dict(self.headers))
        query = parse_qs(fields)["query"][0]
        self.server.queries.append(query)
        if query == "slow":
            self.server.ended.wait(30)
            return
        refused = json.dumps({"status": "error", "error": "parse error: unexpected end of input"})
        self.send_response(400 if query == "bad" else 200)
        self.end_headers()
        self.wfile.write((refused if query == "bad" else self.server.said_to.get(query, self.server.said)).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the library's name
        del format, args


@contextmanager
def serving(certificate: KeyPair | None = None) -> Iterator[Server]:
    """Over TLS when there is a certificate."""
    server = Server(_tls(certificate) if certificate else None)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _tls(certificate: KeyPair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    return context
