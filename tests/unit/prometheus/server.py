"""A server on loopback that speaks Prometheus' HTTP API and remembers what it was sent."""

from __future__ import annotations

import json
import ssl

from tests import loopback
from tests.testbed.pki import KeyPair

EMPTY = json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}})


class Server(loopback.Server):
    """Answers by query: `slow` never does, `cut` ends the connection, `bad` is refused, others find nothing."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        super().__init__(_Answering, tls=tls)
        self.headers: list[dict[str, str]] = []
        """Of every request, in their order."""
        self.queries: list[str] = []
        self.said = EMPTY
        """To queries other than those two."""
        self.said_to: dict[str, str] = {}
        """To this query instead of that."""

    def sent(self, name: str) -> set[str | None]:
        """Every value that this header had."""
        return {headers.get(name) for headers in self.headers}


class _Answering(loopback.Handler):
    server: Server

    def answer(self) -> None:
        self.server.headers.append(dict(self.headers))
        query = self.fields()["query"]
        self.server.queries.append(query)
        if query == "slow":
            self.server.ended.wait(30)
        if query in ("slow", "cut"):
            return
        refused = json.dumps({"status": "error", "error": "parse error: unexpected end of input"})
        self.send_response(400 if query == "bad" else 200)
        self.end_headers()
        self.wfile.write((refused if query == "bad" else self.server.said_to.get(query, self.server.said)).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the library's name
        del format, args


def serving(certificate: KeyPair | None = None) -> Server:
    """Over TLS when there is a certificate."""
    return Server(certificate.server_context() if certificate else None)
