"""One watch of the fake API server, and what may happen to it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING

from tests.apiserver.exchange import JSON, Asked, failure
from tests.apiserver.store import Change, selection

if TYPE_CHECKING:
    from tests.apiserver.server import ApiServer


class Fault(Enum):
    """What happens to watches that are open."""

    SILENT = "the connection stays open and nothing comes"
    CUT = "the connection ends"
    HALF = "the connection ends within an event"
    PAGE = "a gateway answers with a page of HTML and status 200"
    EXPIRED = "the version is too old (410)"
    REFUSED = "the server is overloaded (503)"


class Broken(Exception):  # noqa: N818 -- what happens to the connection
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.value)
        self.fault = fault


class Watch:
    """Iterate over it: each item is a line. Raises Broken where the connection breaks."""

    def __init__(self, server: ApiServer, asked: Asked) -> None:
        self.asked, self.parameters = asked, asked.query
        self._server, self._wanted = server, selection(asked.place, asked.query)
        self._plural = asked.place.plural
        self._closed = False
        self._fault: Fault | None = None
        self._sent = 0
        self._raw: list[bytes] = []
        """Of the server's changes."""

    def strike(self, fault: Fault) -> None:
        with self._server.news:
            self._fault = fault
            self._server.news.notify_all()

    def send_raw(self, line: bytes) -> None:
        """What no API server would send."""
        with self._server.news:
            self._raw.append(line)
            self._server.news.notify_all()

    def end(self) -> None:
        """As the server does when the time is up that it was asked for; or the client hung up."""
        with self._server.news:
            self._closed = True
            self._server.news.notify_all()

    def __iter__(self) -> Iterator[bytes]:
        server, query = self._server, self.parameters
        from_version = int(query.get("resourceVersion") or 0)
        over = time.monotonic() + float(query.get("timeoutSeconds") or 3600)
        if from_version and from_version < server.oldest:
            yield _expired(from_version, server.oldest)
            return
        with server.news:
            there = [] if from_version else sorted(server.objects.items(), key=lambda item: item[0])
            initial = [each for key, each in there if key[0] == self._plural and self._wanted(each)]
            self._sent = next(
                (at for at, each in enumerate(server.changes) if from_version and each.version > from_version),
                len(server.changes),
            )
        for each in initial:
            yield self._line("ADDED", each)
        while True:
            lines = self._next(over)
            yield from lines
            if not lines:
                return

    def _next(self, over: float) -> list[bytes]:
        """What is new, or a bookmark; nothing at the end."""
        server = self._server
        with server.news:
            bookmark_at = time.monotonic() + server.bookmark_seconds
            while True:
                if self._fault is Fault.EXPIRED:
                    self._fault, self._closed = None, True
                    return [_expired(0, server.version)]
                if self._fault is not None:
                    raise Broken(self._fault)
                if lines := self._news():
                    return lines
                now = time.monotonic()
                if self._closed or server.ended or now >= over:
                    return []
                if now < bookmark_at:
                    server.news.wait(min(bookmark_at, over) - now)
                elif self.parameters.get("allowWatchBookmarks") == "true":
                    return [self._line("BOOKMARK", {"metadata": {"resourceVersion": str(server.version)}})]
                else:
                    bookmark_at = over

    def _news(self) -> list[bytes]:
        changes = self._server.changes[self._sent :]
        self._sent += len(changes)
        events = [event for each in changes if (event := self._event(each)) is not None]
        raw, self._raw = self._raw, []
        return [*raw, *(self._line(event["type"], event["object"]) for event in events)]

    def _event(self, change: Change) -> JSON | None:
        return change.event(self._wanted) if change.key[0] == self._plural else None

    def _line(self, kind: str, found: JSON) -> bytes:
        if kind == "BOOKMARK" or "PartialObjectMetadata" not in self.asked.headers.get("Accept", ""):
            return json.dumps({"type": kind, "object": found}).encode() + b"\n"
        return json.dumps({"type": kind, "object": {"metadata": found["metadata"]}}).encode() + b"\n"


def _expired(version: int, oldest: int) -> bytes:
    status = failure(410, "Expired", f"too old resource version: {version} ({oldest})").body
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
