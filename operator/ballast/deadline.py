"""Connections on which an answer as a whole has a deadline.

http.client's timeout is for each read. A gateway that sends a byte now and then, headers or `100 Continue` without end
never reaches it, and the thread that waits for the answer would wait for good.
"""

from __future__ import annotations

import io
import time
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any

import urllib3

if TYPE_CHECKING:
    from socket import SocketIO, socket

    from _typeshed import WriteableBuffer


class Deadline:
    """Of the answer that is read: seconds of `time.monotonic`."""

    def __init__(self) -> None:
        self._at = float("inf")

    def set(self, seconds: float | None) -> None:
        """From now on; None: never."""
        self._at = float("inf") if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """Seconds, more than none; None without end. Raises TimeoutError when it has passed."""
        if self._at == float("inf"):
            return None
        seconds = self._at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("timed out")
        return seconds


def with_deadlines(manager: urllib3.PoolManager) -> urllib3.PoolManager:
    """Make its connections such that reading the head of an answer takes no longer than the timeout of one read, and
    its body no longer than the `Deadline` of the connection.
    """
    manager.pool_classes_by_scheme = {
        scheme: _timed_pool(pool) for scheme, pool in manager.pool_classes_by_scheme.items()
    }
    return manager


def deadline_of(response: urllib3.BaseHTTPResponse) -> Deadline:
    """That of the connection from which the answer is read."""
    original = getattr(response, "_original_response", None)
    return original.deadline if isinstance(original, _Answer) else Deadline()


class _Answer(HTTPResponse):
    def __init__(self, sock: socket, *arguments: Any, deadline: Deadline, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.deadline = deadline
        buffered: io.BufferedReader = self.fp
        self.fp = io.BufferedReader(_Reading(buffered.detach(), sock, deadline))  # type: ignore[arg-type]


class _Reading(io.RawIOBase):
    """Each read gets the time that is left."""

    def __init__(self, raw: SocketIO, sock: socket, deadline: Deadline) -> None:
        self._raw, self._sock, self._deadline = raw, sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        self._sock.settimeout(self._deadline.left())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _timed_pool(pool: Any) -> Any:
    return type(pool.__name__, (pool,), {"ConnectionCls": _timed(pool.ConnectionCls)})


def _timed(connection: Any) -> Any:
    class Timed(connection):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.deadline = Deadline()

        def connect(self) -> None:
            self.deadline.set(self.timeout)
            super().connect()

        def response_class(self, *arguments: Any, **options: Any) -> _Answer:
            return _Answer(*arguments, deadline=self.deadline, **options)

        def getresponse(self) -> Any:
            self.deadline.set(self.timeout)
            return super().getresponse()

    return Timed
