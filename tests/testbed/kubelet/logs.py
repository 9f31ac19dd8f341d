"""Containers' logs as the kubelet serves them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

CHUNK_BYTES = 65_536
FOLLOW_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which part of a log. `tail_lines`: None for all of it."""

    follow: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None


def tail_offset(path: Path, lines: int) -> int:
    """Where the last `lines` lines of a file begin."""
    size = path.stat().st_size
    if lines <= 0:
        return size
    wanted, position, tail = lines, size, b""
    with path.open("rb") as stream:
        while position > 0:
            step = min(CHUNK_BYTES, position)
            position -= step
            stream.seek(position)
            tail = stream.read(step) + tail
            body = tail.removesuffix(b"\n")
            if body.count(b"\n") >= wanted:
                kept = body.rsplit(b"\n", wanted)[1:]
                return size - len(b"\n".join(kept)) - (len(tail) - len(body))
    return 0


async def read(path: Path, query: LogQuery, ended: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
    """A log's bytes. Following goes on until `ended`, and then to the end of the file."""
    left = query.limit_bytes
    with path.open("rb") as stream:
        if query.tail_lines is not None:
            stream.seek(tail_offset(path, query.tail_lines))
        while True:
            over = not query.follow or await ended()
            while chunk := stream.read(CHUNK_BYTES if left is None else min(CHUNK_BYTES, left)):
                left = None if left is None else left - len(chunk)
                yield chunk
            if over or left == 0:
                return
            await asyncio.sleep(FOLLOW_SECONDS)
