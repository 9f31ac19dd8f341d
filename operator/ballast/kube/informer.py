"""Keeping a Store up to date: one LIST, then a watch that is resumed where it broke off.

The watch asks for bookmarks, which the API server sends about once a minute: a connection that is silent for longer is
dead, and is opened again. A version that the server no longer has (410 Gone) brings another LIST. So does every
`resync_seconds`, in case an event was lost, and an etcd that was restored from a backup: its versions begin again where
they were then, and a watch from a version that is still to come is silent until it has come.

The client library's `kubernetes.informer` has no read time-out (a connection that goes silent is never noticed), lists
without pages, and costs more memory and CPU: see docs/operations.md.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

import msgspec

from ballast.kube.client import Client
from ballast.kube.document import JSON, decoded, parsed
from ballast.kube.errors import Forbidden, Gone, KubeError, Unavailable
from ballast.kube.objects import Objects, Query
from ballast.kube.stream import Stream

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


_SHORTEST_SECONDS = 1.0
"""A watch that ends sooner was ended by something between us and the API server, which must not be asked at once."""


@dataclass(frozen=True, slots=True)
class Timing:
    connect_seconds: float = 10.0
    silent_seconds: float = 75.0
    """A watch without an event or a bookmark for so long is opened again. Bookmarks come every 60 s."""
    server_seconds: float = 300.0
    """After which the server is asked to end a watch, so that its connections are spread over servers."""
    resync_seconds: float = 1800.0
    first_backoff_seconds: float = 0.5
    longest_backoff_seconds: float = 5.0
    """After an outage of the API server, a watch is behind for as long: less than the longest gate timeout."""
    refused_seconds: float = 60.0
    """Until what there is no right to read is asked for again."""


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


_EVENT = msgspec.json.Decoder(_Event)
"""Built when this module is loaded, as in `document`."""


class Informer(Generic[T]):
    """Runs in its own thread from `start` to `stop`. `monotonic`: seconds that nothing sets back.

    `without`: what happens without the right to read it, which the log then says once; empty if that is an error.
    """

    def __init__(
        self,
        client: Client,
        query: Query,
        store: Store[T],
        *,
        monotonic: Callable[[], float],
        timing: Timing | None = None,
        chance: random.Random | None = None,
        without: str = "",
    ) -> None:
        self._client, self._query, self.store = client, query, store
        self._monotonic, self._timing = monotonic, timing or Timing()
        self._chance = chance or random.Random()  # noqa: S311 -- spreads requests in time
        self._without, self._refused = without, False
        self._version = 0
        """Up to which the store has everything; 0: it has to be listed."""
        self._listed_at = 0.0
        self._heard_at: float | None = None
        self._stopped = threading.Event()
        self._decided = threading.Event()
        """It is synced, or was stopped."""
        self._stream: Stream | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch-{query.kind.plural}", daemon=True)
        self.restarts = 0
        """How often the watch had to be opened again because it broke, or was silent."""
        self.lists = 0
        self._broke = False
        """The last watch did, since when the server may have lost its state."""
        self.last_error = ""
        """Of the watch that is being opened again; not the exception, which would keep the connection open."""

    @property
    def plural(self) -> str:
        return self._query.kind.plural

    @property
    def synced(self) -> bool:
        """Whether the store has held everything once."""
        return self._heard_at is not None

    def await_synced(self, timeout_seconds: float) -> bool:
        """Wait until then, or until the informer is stopped; whether it is synced."""
        self._decided.wait(timeout_seconds)
        return self.synced

    @property
    def age_seconds(self) -> float | None:
        """Since the server was last heard of: the store is as of then, or newer. None before the first list."""
        return None if self._heard_at is None else self._monotonic() - self._heard_at

    def start(self) -> None:
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout_seconds: float) -> None:
        self._thread.join(timeout_seconds)

    def stop(self) -> None:
        """Does not wait for a request that hangs."""
        self._stopped.set()
        self._decided.set()
        stream = self._stream
        if stream is not None:
            stream.close()

    def _run(self) -> None:
        backoff = self._timing.first_backoff_seconds
        while not self._stopped.is_set():
            began, broke = self._monotonic(), True
            try:
                self._turn()
            except Gone as error:
                self._version, self.last_error = 0, str(error)
                _LOG.info("watch of %s expired (410), listing again: %s", self.plural, self.last_error)
                if self._monotonic() - self._listed_at >= _SHORTEST_SECONDS:
                    # Not the answer to what was just listed: pauses that an outage has brought do not matter any more.
                    self.restarts += 1
                    backoff = self._timing.first_backoff_seconds
                    continue
            except KubeError as error:
                self.last_error = str(error)
                if self._without and isinstance(error, Forbidden):
                    self._await_right()
                    continue
                _LOG.warning("watch of %s broke, opening it again: %s", self.plural, self.last_error)
            except Exception:  # noqa: BLE001 -- it is logged
                # Whatever an object of the cluster brings about must not end the watch for good.
                _LOG.exception("watch of %s failed, listing again", self.plural)
                self._version = 0
            else:
                broke, self.last_error = False, ""
            self._broke |= broke
            lasted = self._monotonic() - began
            if lasted >= (self._timing.longest_backoff_seconds if broke else _SHORTEST_SECONDS):
                backoff = self._timing.first_backoff_seconds
                if not broke:
                    continue
            self.restarts += broke
            self._stopped.wait(backoff * self._chance.uniform(0.5, 1.0))
            backoff = min(2 * backoff, self._timing.longest_backoff_seconds)

    def _await_right(self) -> None:
        """The right may be granted later."""
        if not self._refused:
            _LOG.warning("%s: %s", self._without, self.last_error)
        self._refused = True
        self._stopped.wait(self._timing.refused_seconds)

    def _turn(self) -> None:
        """One watch, after a list where one is due. Returns when the server ends the watch, as asked."""
        if self._broke and self._went_back():
            self.store.start_over()
            self._version = 0
        if not self._version or self._is_silent() or self._since(self._listed_at) >= self._timing.resync_seconds:
            self._list()
        self._broke = False
        self._watch()

    def _is_silent(self) -> bool:
        """Bookmarks were due, and nothing has come: something between us and the API server keeps watches back.

        Lists may still come through, and executors would stay gated.
        """
        return self._broke and self._heard_at is not None and self._since(self._heard_at) >= self._timing.silent_seconds

    def _since(self, moment: float) -> float:
        return self._monotonic() - moment

    def _went_back(self) -> bool:
        """Whether the server's newest state is older than what was heard of."""
        parameters = {"limit": "1", "labelSelector": self._query.labels, "fieldSelector": self._query.fields}
        asked = {name: value for name, value in parameters.items() if value}
        page = self._client.get_page(self._query.kind, asked, metadata_only=self._query.metadata_only)
        return 0 < number(page.metadata.resource_version) < self._version

    def _list(self) -> None:
        objects = Objects(self._client, self._query)
        self.lists += 1
        self.store.replace_all(objects)
        self._version = number(objects.resource_version)
        self._listed_at = self._heard_at = self._monotonic()
        self._decided.set()

    def _watch(self) -> None:
        seconds = self._timing.server_seconds * self._chance.uniform(0.8, 1.0)
        parameters = {"allowWatchBookmarks": "true", "resourceVersion": str(self._version)}
        parameters["timeoutSeconds"] = str(max(1, int(seconds)))
        if self._query.labels:
            parameters["labelSelector"] = self._query.labels
        if self._query.fields:
            parameters["fieldSelector"] = self._query.fields
        with self._client.stream(
            self._query.kind,
            parameters,
            metadata_only=self._query.metadata_only,
            connect_seconds=self._timing.connect_seconds,
            read_seconds=self._timing.silent_seconds,
        ) as stream:
            self._stream = stream
            try:
                # `stop` may have come before there was a stream to close.
                if self._stopped.is_set():
                    return
                for line in stream:
                    self._heard(line)
            finally:
                self._stream = None

    def _heard(self, line: bytes) -> None:
        try:
            event = decoded(_EVENT.decode, line)
            body = parsed(event.object)
        except msgspec.DecodeError as error:
            raise Unavailable(f"watch {self.plural}", f"an event is not the API server's: {error}") from error
        metadata = body.get("metadata") or {}
        version = number(metadata.get("resourceVersion"))
        if event.type == "DELETED":
            self.store.remove(metadata["uid"], version)
        elif event.type in ("ADDED", "MODIFIED"):
            self.store.put(body)
        self._version = max(self._version, version)
        self._heard_at = self._monotonic()


_MOST_DELETED = 10_000


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Identity(msgspec.Struct, frozen=True):
    """As much of an object as tells whether it has to be read."""

    metadata: _Metadata


_IDENTITY = msgspec.json.Decoder(_Identity)


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
        self._newest = 0
        """The highest version of all that came."""
        self.restorations = 0
        """How often etcd was restored from a backup."""
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
            self._newest = max(self._newest, version)
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
            self._newest = max(self._newest, version)
            if version < self.version(uid):
                return
            self._bury(uid, version)

    def forget(self, uid: str) -> None:
        """Have it read again by the next list."""
        with self.lock:
            self._drop(uid)

    def replace_all(self, listed: Objects) -> frozenset[str]:
        """Take over a whole list, reading only objects whose version is not known.

        Returns the uids of those that were not as listed.
        """
        differing, there = set(), set()
        newest = self._newest
        items = iter(listed)
        first = next(items, None)
        if 0 < number(listed.resource_version) < newest:
            # It was asked for afterwards, and a list without a resource version is the newest state that there is.
            self.start_over()
        version = number(listed.resource_version)
        for raw in chain(() if first is None else (first,), items):
            metadata = decoded(_IDENTITY.decode, raw).metadata
            there.add(metadata.uid)
            there_now, known = number(metadata.resource_version), self.version(metadata.uid)
            # One that is older than what is known, in a list that is newer than it, is what there is: something between
            # us and the API server has told of another.
            if there_now > known or there_now < known < version:
                differing.add(metadata.uid)
                self._take(parsed(raw), version)
        with self.lock:
            self._newest = max(self._newest, version)
            gone = [uid for uid in self._versions.keys() - there if self.version(uid) <= version]
            for uid in gone:
                self._bury(uid, version)
        return frozenset(differing.union(gone))

    def _take(self, raw: JSON, listed: int) -> None:
        """An object of a list of this version."""
        uid = raw["metadata"]["uid"]
        with self.lock:
            if self.version(uid) < listed:
                self._versions.pop(uid, None)
            if self._deleted.get(uid, 0) < listed:
                self._deleted.pop(uid, None)
            self.put(raw)

    def start_over(self) -> None:
        """The API server, restored from a backup, gives versions that came until now again, to others."""
        _LOG.warning("the API server's state is older than it was (was etcd restored?): all objects are read again")
        with self.lock:
            self.restorations += 1
            self._versions = dict.fromkeys(self._versions, 0)
            self._deleted.clear()
            self._newest = 0

    def _bury(self, uid: str, version: int) -> None:
        self._deleted[uid] = max(version, self._deleted.get(uid, 0))
        while len(self._deleted) > _MOST_DELETED:
            del self._deleted[next(iter(self._deleted))]
        self._drop(uid)

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
