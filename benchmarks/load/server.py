"""The API server as a load generator asks it: many threads, whole connections, no client of Ballast's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import urllib3

from tests.testbed.apiserver import ApiServer

JSON = dict[str, Any]

_CONNECT_SECONDS = 10.0
_READ_SECONDS = 60.0
_NOT_FOUND = 404
_WATCH_SECONDS = 3600


class RefusedError(Exception):
    """The API server did not do what the load asked for."""


class Server:
    """Safe for threads."""

    def __init__(self, api: ApiServer, *, connections: int) -> None:
        address = urlsplit(api.url)
        assert address.hostname is not None
        self.connections = connections
        self._closed = False
        self._pool = urllib3.HTTPSConnectionPool(
            address.hostname,
            address.port,
            maxsize=connections + 2,
            ca_certs=str(api.ca),
            cert_file=str(api.client.certificate),
            key_file=str(api.client.key),
            retries=False,
            timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS),
        )

    def get(self, path: str) -> JSON:
        return self._asked("GET", path, None, "application/json")

    def post(self, path: str, body: JSON) -> JSON:
        return self._asked("POST", path, body, "application/json")

    def patch(self, path: str, operations: list[JSON]) -> None:
        self._asked("PATCH", path, operations, "application/json-patch+json")

    def delete(self, path: str) -> None:
        """Also when it is gone already."""
        self._asked("DELETE", path, None, "application/json", and_also=_NOT_FOUND)

    def watch(self, path: str) -> Iterator[bytes]:
        """Lines as they come, until the server ends the watch."""
        joint = "&" if "?" in path else "?"
        url = f"{path}{joint}watch=true&timeoutSeconds={_WATCH_SECONDS}"
        timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=None)
        answer = self._pool.request("GET", url, preload_content=False, timeout=timeout)
        if answer.status != 200:
            raise RefusedError(f"GET {url}: {answer.status} {answer.data[:300]!r}")
        try:
            yield from answer
        except urllib3.exceptions.ProtocolError:
            if not self._closed:
                raise

    def close(self) -> None:
        """Watches that end from now on end silently: the server may go."""
        self._closed = True

    def _asked(self, method: str, path: str, body: object, content: str, *, and_also: int | None = None) -> JSON:
        sent = None if body is None else json.dumps(body).encode()
        answer = self._pool.request(method, path, body=sent, headers={"Content-Type": content})
        if answer.status >= 300 and answer.status != and_also:
            raise RefusedError(f"{method} {path}: {answer.status} {answer.data[:300]!r}")
        found: JSON = json.loads(answer.data)
        return found
