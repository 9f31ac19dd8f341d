"""The events of one watch, as they come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec
import urllib3

from ballast.deadline import deadline_of
from ballast.kube.document import parsed
from ballast.kube.errors import KubeError, Unavailable, error_of

_READ_BYTES = 1 << 16
_TYPE_BYTES = 40
"""The server writes an event's type first."""
LONGEST_EVENT_BYTES = 10 << 20
"""An object is a megabyte and a half in etcd, and six times as long in JSON at the most. A line without an end would
fill the memory.
"""


class Stream:
    """Iterate over it in one thread, once; close it from any.

    Each item is one event as the server sent it: `{"type": "ADDED", "object": {...}}` as bytes, not yet decoded.
    The iteration ends when the server ends the watch (`timeoutSeconds`), and soon after `close`, also if it is waiting
    for an event. It raises
    - Gone when the resource version is too old (410): list again, then watch from there;
    - another KubeError for any other error that the server sends as an event;
    - Unavailable when no event came for too long, the connection broke, or what comes is not an API server's.
    """

    def __init__(
        self, action: str, response: urllib3.BaseHTTPResponse, release: Callable[[], None], *, silent_seconds: float
    ) -> None:
        """`silent_seconds`: the longest time without a whole event."""
        self._action, self._response, self._release = action, response, release
        self._deadline, self._silent_seconds = deadline_of(response), silent_seconds
        self._lock = threading.Lock()
        self._reading = self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if not self._reading:
                self._end()
                return
        with suppress(OSError, ValueError, RuntimeError):  # the connection may have ended by itself
            self._response.shutdown()  # closing would wait for the thread that reads

    def __iter__(self) -> Iterator[bytes]:
        with self._lock:
            if self._closed:
                return
            self._reading = True
        try:
            for line in self._lines():
                if line:
                    yield self._checked(line)
        finally:
            with self._lock:
                self._reading, self._closed = False, True
                self._end()

    def _lines(self) -> Iterator[bytes]:
        begun = bytearray()
        self._deadline.set(self._silent_seconds)
        while data := self._read():
            first, *others = data.split(b"\n")
            begun += first
            if len(begun) > LONGEST_EVENT_BYTES:
                raise Unavailable(self._action, f"an event has more than {LONGEST_EVENT_BYTES >> 20} MiB")
            if others:
                yield bytes(begun)
                yield from others[:-1]
                begun = bytearray(others[-1])
                self._deadline.set(self._silent_seconds)
        if begun and not self._closed:
            raise Unavailable(self._action, "the answer broke off in the middle of an event")

    def _read(self) -> bytes:
        """What there is, at least a byte; nothing at the end."""
        try:
            return b"" if self._closed else self._response.read1(_READ_BYTES)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            if self._closed:
                return b""
            raise Unavailable(self._action, f"the watch broke off: {error}") from error

    def _checked(self, line: bytes) -> bytes:
        if b'"ERROR"' in line[:_TYPE_BYTES]:
            raise self._error(line)
        if not line.startswith(b"{"):
            raise Unavailable(self._action, f"the answer is not the API server's: {line[:100]!r}")
        return line

    def _error(self, line: bytes) -> KubeError:
        try:
            status = parsed(line)["object"]
            return error_of(self._action, int(status.get("code") or 500), status)
        except (msgspec.DecodeError, KeyError, AttributeError, TypeError, ValueError):
            return Unavailable(self._action, f"the answer is not the API server's: {line[:100]!r}")

    def _end(self) -> None:
        self._response.close()
        self._release()
