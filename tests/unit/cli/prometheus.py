"""A Prometheus on loopback with a value of each of some applications, by what a query is about."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

Values = Callable[[str], Mapping[str, object]]
"""Of a query: by application."""


@contextmanager
def answering(values: Values, labels: Callable[[str], Mapping[str, str]] = lambda _: {}) -> Iterator[str]:
    """Its URL. `labels`: those of a series in addition to the application's, by application."""

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def do_GET(self) -> None:
            self._answer(urlparse(self.path).query)

        def _answer(self, fields: str) -> None:
            found = values(parse_qs(fields)["query"][0])
            result: list[dict[str, object]] = [
                {"metric": {**labels(each), "application_id": each}, "value": [1.0, str(value)]}
                for each, value in found.items()
            ]
            body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the library's name
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
