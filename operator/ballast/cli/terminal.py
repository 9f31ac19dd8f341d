"""What reaches a terminal: text, and no characters that a terminal obeys.

Names, messages and annotations of other people's objects may hold any character. An escape sequence in one of them
could rewrite earlier lines, set the window's title or answer for the user.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""C0 without tab and line feed, C1, and what reverses the direction of text or ends a line."""


def harmless(text: str) -> str:
    return _OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)


@contextmanager
def guarded() -> Iterator[None]:
    """What is printed meanwhile is harmless. A Screen of `output` writes past this guard: it has its own."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", _Guard(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class _Guard:
    """A text stream without its `buffer`, by which typer would write past it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = self.rich_proxied_file = stream
        """By the second name rich looks for the stream behind."""

    def write(self, text: str) -> int:
        return self._stream.write(harmless(text))

    def writelines(self, lines: Iterable[str]) -> None:
        self._stream.writelines(map(harmless, lines))

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self._stream, name)
