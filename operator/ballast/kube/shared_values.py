"""Values that are read once and shared by all pods that say the same, within a bound of memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from ballast.kube.document import LONGEST_KEPT_BYTES

T = TypeVar("T")
LONGEST_KEY_BYTES = LONGEST_KEPT_BYTES
"""Of real pod templates a twentieth of it is usual. What is read is several times as long."""
MOST_BYTES = 4 << 20
"""Of all keys together; then all are forgotten. Pods that come and go must not fill the memory."""


class SharedValues(Generic[T]):
    """By the bytes that they were read from. Not safe for threads.

    Sharing saves memory, no more: equal values need not be one, since all may have been forgotten between them.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, T] = {}
        self._bytes = 0

    def of(self, key: bytes, read: Callable[[], T]) -> T:
        """What was read of an equal key, else what `read` returns now."""
        known = self._known.get(key)
        if known is not None:
            return known
        value = read()
        if len(key) <= LONGEST_KEY_BYTES:
            if self._bytes + len(key) > MOST_BYTES:
                self._known.clear()
                self._bytes = 0
            self._known[key] = value
            self._bytes += len(key)
        return value
