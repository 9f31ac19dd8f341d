"""A server that says whatever bytes a test gives it, as slowly as the test likes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

OK = b"HTTP/1.1 200 OK\r\n"


@dataclass
class Liar:
    url: str
    requests: list[bytes] = field(default_factory=list)
    """The first bytes of each."""


@contextmanager
def lying(pieces: Iterable[bytes], *, pause_seconds: float = 0.0) -> Iterator[Liar]:
    """Sends the pieces to whatever connects, one connection after another, with a pause after each piece."""
    said = tuple(pieces)
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)
        liar = Liar(f"http://127.0.0.1:{listening.getsockname()[1]}")

        def serve() -> None:
            while not ended.is_set():
                with suppress(OSError):
                    connection, _ = listening.accept()
                    with connection:
                        liar.requests.append(connection.recv(65536))
                        for piece in said:
                            connection.sendall(piece)
                            if ended.wait(pause_seconds):
                                return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield liar
        finally:
            ended.set()
            thread.join()
