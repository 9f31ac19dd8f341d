"""HTTP servers on loopback, for what tests let stand in another server's place."""

from __future__ import annotations

import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

EXPOSITION = "text/plain; version=0.0.4"
"""The content type of Prometheus' text format."""


class Server(ThreadingHTTPServer):
    """Serves inside a `with` block, which ends though clients keep connections open: each has a daemon thread."""

    request_queue_size = 128
    """With the default of five, connections made at once may be dropped, and are tried again a second later."""

    def __init__(
        self, handler: type[Handler], *, address: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__((address, port), handler)
        self.url = f"{'https' if tls else 'http'}://{address}:{self.server_port}"
        self.ended = threading.Event()
        """The block ends: for handlers that wait."""
        if tls is not None:
            # Each connection's thread does its handshake: the one that accepts waits for no client.
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self._accepting = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.shutdown()
        self._accepting.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may hang up, or refuse the certificate: that is no error of the test."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """`answer` meets requests of every method. Nothing is logged."""

    server: Server

    def answer(self) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        self.answer()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 -- http.server's names

    def content(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def fields(self) -> dict[str, str]:
        """Those of the query and of a form that is posted."""
        return dict(parse_qsl(f"{urlsplit(self.path).query}&{self.content().decode()}"))

    def reply(self, body: bytes, *, status: int = 200, content_type: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Tests print what failed."""
