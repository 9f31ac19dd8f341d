"""The objects of one kind as they were last heard of, in memory: what client-go calls a cache."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from ballast.kube.document import JSON, parsed
from ballast.kube.lists import Objects

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_MOST_DELETED = 10_000


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Identity(msgspec.Struct, frozen=True):
    """As much of an object as tells whether it has to be read."""

    metadata: _Metadata


class Store(Generic[T]):
    """Values by uid; an older version of an object never replaces a newer one, whichever way it came.

    `read`: makes the value of an object; it is called by one thread at a time. An object that it can't read is left
    out, and the log says so: one bad object must not hide the others. It is not read again before it changes.
    `changed`: called with the value before and the value after (None: there is none), by one thread at a time, while
    nothing else can change the store. It must not call the store.

    Safe for threads. Versions are compared as numbers, as Kubernetes guarantees since 1.35 and etcd always did.
    """

    def __init__(self, read: Callable[[JSON], T], changed: Callable[[T | None, T | None], None]) -> None:
        self._read, self._changed = read, changed
        self._values: dict[str, T] = {}
        self._versions: dict[str, int] = {}
        self._deleted: dict[str, int] = {}
        """Versions of objects that were deleted: an answer to a write that comes late must not bring one back."""
        self.lock = threading.RLock()
        """Hold it to see the store and what `changed` keeps at one moment."""

    def __len__(self) -> int:
        return len(self._values)

    def get(self, uid: str) -> T | None:
        return self._values.get(uid)

    def version(self, uid: str) -> int:
        """0 for an object that is not there."""
        return self._versions.get(uid, 0)

    def uids(self) -> frozenset[str]:
        """Also of objects that can't be read."""
        with self.lock:
            return frozenset(self._versions)

    def values(self) -> list[T]:
        with self.lock:
            return list(self._values.values())

    def put(self, raw: JSON) -> None:
        """An object as an event, or the answer to a write, has it."""
        metadata = raw["metadata"]
        uid, version = metadata["uid"], number(metadata.get("resourceVersion"))
        with self.lock:
            if version <= max(self.version(uid), self._deleted.get(uid, 0)):
                return
            try:
                value = self._read(raw)
            except Exception as error:  # noqa: BLE001 -- whatever is in an object
                _LOG.warning("left out %s/%s: %r", metadata.get("namespace") or "", metadata.get("name"), error)
                self._drop(uid)
                self._versions[uid] = version
            else:
                self._keep(uid, version, value)

    def amend(self, uid: str, version: int, change: Callable[[T], T]) -> None:
        """Change the value of an object that a write of ours brought to `version`, until the event of that write."""
        with self.lock:
            before = self._values.get(uid)
            if before is not None and version > self.version(uid):
                self._keep(uid, version - 1, change(before))

    def remove(self, uid: str, version: int) -> None:
        """An object that was deleted at this version."""
        with self.lock:
            if version < self.version(uid):
                return
            self._deleted[uid] = max(version, self._deleted.get(uid, 0))
            while len(self._deleted) > _MOST_DELETED:
                del self._deleted[next(iter(self._deleted))]
            self._drop(uid)

    def replace_all(self, listed: Objects) -> frozenset[str]:
        """Take over a whole list, reading only objects whose version is not known.

        Returns the uids of those that were not as listed.
        """
        differing, there = set(), set()
        for raw in listed:
            metadata = msgspec.json.decode(raw, type=_Identity).metadata
            there.add(metadata.uid)
            if number(metadata.resource_version) > self.version(metadata.uid):
                differing.add(metadata.uid)
                self.put(parsed(raw))
        version = number(listed.resource_version)
        with self.lock:
            gone = [uid for uid in self._versions.keys() - there if self.version(uid) <= version]
            for uid in gone:
                self._drop(uid)
        return frozenset(differing.union(gone))

    def _keep(self, uid: str, version: int, value: T) -> None:
        before = self._values.get(uid)
        self._values[uid], self._versions[uid] = value, version
        self._changed(before, value)

    def _drop(self, uid: str) -> None:
        before = self._values.pop(uid, None)
        self._versions.pop(uid, None)
        if before is not None:
            self._changed(before, None)


def number(resource_version: str | None) -> int:
    """A resource version to compare by; 0 for none, or one of another form than etcd's."""
    return int(resource_version) if resource_version and resource_version.isdigit() else 0
