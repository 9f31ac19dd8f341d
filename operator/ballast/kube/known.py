"""What was read of objects the last time, so that those that have not changed since need not be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Generic, TypeVar

import msgspec

from ballast.kube.document import JSON
from ballast.kube.page import parsed

T = TypeVar("T")

_DIGEST_BYTES = 16


class Known(Generic[T]):
    """Values of one list's objects, known by all of their bytes: the slightest change makes another value.

    `read` must depend on nothing but the object. Not safe for threads.
    """

    def __init__(self, read: Callable[[JSON], T]) -> None:
        self._read = read
        self._values: dict[bytes, T] = {}

    def __len__(self) -> int:
        return len(self._values)

    def of(self, objects: Iterable[msgspec.Raw]) -> list[T]:
        """The values of these objects, which are all there are: those of others are forgotten."""
        values: dict[bytes, T] = {}
        for raw in objects:
            key = blake2b(raw, digest_size=_DIGEST_BYTES).digest()
            values[key] = self._values[key] if key in self._values else self._read(parsed(raw))
        self._values = values
        return list(values.values())
