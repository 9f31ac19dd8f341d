"""Events (events.k8s.io/v1) that users see with `kubectl describe`; the same one twice becomes a series."""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from ballast.kube.bulkhead import Bulkhead
from ballast.kube.client import Client
from ballast.kube.document import JSON, micro_text
from ballast.kube.errors import KubeError, NotFound
from ballast.kube.kinds import EVENT, Kind

_LOG = logging.getLogger(__name__)

CONTROLLER = "ballast.dev/operator"
_NOTE_LIMIT_BYTES = 1024
_LONGEST_NAME_CHARACTERS = 200
"""Of the object, in the Event's own name."""
_KEPT = 4096
_MOST_WAITING = 2048
"""Notices that wait to be posted."""
_MOST_OF_ONE = 256
"""Of these, about objects of one namespace: each pass may post one about each of a user's thousands of objects."""
_BURST, _REFILL_SECONDS = 25, 1.0
"""Events that the objects of one namespace may bring about at once, and until they may bring about one more."""
_MOST_ALLOWANCES = 10_000
_HUSH_SECONDS = 10.0
"""Nothing is posted for so long after the server had no time for an event: executors wait while it is asked."""
_PATIENCE_SECONDS = 0.5
"""How long Events about other namespaces wait behind one whose answer is late: a webhook may be slow."""


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object that an event is about."""

    kind: Kind
    name: str
    uid: str
    namespace: str | None = None

    def reference(self) -> JSON:
        found = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "name": self.name, "uid": self.uid}
        return {**found, "namespace": self.namespace} if self.namespace else found


@dataclass(frozen=True, slots=True)
class Notice:
    regarding: Regarding
    reason: str
    """One stable word."""
    action: str
    """What was done or not done, one word: Place, Move, Release, Refuse."""
    note: str
    warning: bool = False
    related: Regarding | None = None


@dataclass(slots=True)
class _Allowance:
    """A token bucket."""

    left: float
    at: float

    def take(self, now: float) -> bool:
        # The wall clock may have stepped backwards.
        self.left = min(float(_BURST), self.left + max(0.0, now - self.at) / _REFILL_SECONDS)
        self.at = now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


@dataclass(slots=True)
class _Posted:
    namespace: str
    name: str
    count: int
    written_at: float


class EventRecorder:
    """Posts notices. A lost event is no reason to fail or to wait, so errors go to `on_error`. Safe for threads.

    A notice equal to one posted within `quiet_seconds` is only counted; the first one after that writes the count
    into the event's series. Of too many about objects of one namespace, most are dropped: the API server has others to
    serve. client-go's spam filter does so for each object, but a user can create thousands.

    `instance`: this replica's name. `clock`: seconds since the epoch.
    """

    def __init__(
        self,
        client: Client,
        *,
        instance: str,
        clock: Callable[[], float],
        on_error: Callable[[KubeError], None],
        quiet_seconds: float = 300.0,
    ) -> None:
        self._client, self._instance, self._clock, self._on_error = client, instance[:128], clock, on_error
        self._quiet_seconds = quiet_seconds
        self._posted: OrderedDict[Notice, _Posted] = OrderedDict()
        self._allowances: OrderedDict[str, _Allowance] = OrderedDict()
        self._numbers = itertools.count()
        self._hushed_at: float | None = None
        self._lock = threading.Lock()

    def post(self, notice: Notice) -> None:
        notice, now = _with_short_note(notice), self._clock()
        with self._lock:
            posted = self._posted.get(notice)
            if posted is not None:
                posted.count += 1
                if _within(self._quiet_seconds, posted.written_at, now):
                    return
            if _within(_HUSH_SECONDS, self._hushed_at, now) or not self._allowed(notice.regarding.namespace or "", now):
                return
        try:
            if posted is None or not self._extended(posted, now):
                self._create(notice, now)
        except KubeError as error:
            if error.of_server:
                self._hushed_at = now
            self._on_error(error)

    def _allowed(self, namespace: str, now: float) -> bool:
        allowance = self._allowances.setdefault(namespace, _Allowance(float(_BURST), now))
        self._allowances.move_to_end(namespace)
        while len(self._allowances) > _MOST_ALLOWANCES:
            self._allowances.popitem(last=False)
        return allowance.take(now)

    def _create(self, notice: Notice, now: float) -> None:
        namespace = notice.regarding.namespace or "default"
        # No part of a name may end with `-` or `.`, also where it is cut.
        about = notice.regarding.name[:_LONGEST_NAME_CHARACTERS].rstrip("-.")
        name = f"{about}.{int(now * 1e6):x}-{next(self._numbers):x}"
        body = _event(notice, namespace=namespace, name=name, now=now, instance=self._instance)
        self._client.create(EVENT, body, namespace=namespace, retry_busy=False)
        with self._lock:
            self._posted[notice] = _Posted(namespace, name, 1, now)
            self._posted.move_to_end(notice)
            while len(self._posted) > _KEPT:
                self._posted.popitem(last=False)

    def _extended(self, posted: _Posted, now: float) -> bool:
        """False when the event is gone: the server forgets events after an hour."""
        again = {"series": {"count": posted.count, "lastObservedTime": micro_text(now)}}
        try:
            self._client.patch(EVENT, posted.name, again, namespace=posted.namespace, answer=False, retry_busy=False)
        except NotFound:
            return False
        posted.written_at = now
        return True


class QueuedEventRecorder(EventRecorder):
    """Posts in its own thread: no reconcile waits for an Event. When too many wait, new ones are dropped."""

    def __init__(
        self, client: Client, *, instance: str, clock: Callable[[], float], on_error: Callable[[KubeError], None]
    ) -> None:
        super().__init__(client, instance=instance, clock=clock, on_error=on_error)
        self._waiting: queue.Queue[Notice | None] = queue.Queue(_MOST_WAITING)
        self._queued: Counter[str] = Counter()
        """How many wait, by namespace."""
        self._counting = threading.Lock()
        self._bulkhead = Bulkhead(1, seconds=_PATIENCE_SECONDS)
        self._thread = threading.Thread(target=self._drain, name="events", daemon=True)
        self._thread.start()

    def post(self, notice: Notice) -> None:
        namespace = notice.regarding.namespace or ""
        with self._counting, suppress(queue.Full):
            if self._queued[namespace] < _MOST_OF_ONE:
                self._waiting.put_nowait(_with_short_note(notice))
                self._queued[namespace] += 1

    def close(self, *, within_seconds: float = 1.0) -> None:
        """Post what waits, as far as that is done in time."""
        with suppress(queue.Full):
            self._waiting.put_nowait(None)
        self._thread.join(within_seconds)

    def _drain(self) -> None:
        for number in itertools.count():
            if (notice := self._waiting.get()) is None:
                return
            namespace = notice.regarding.namespace or ""
            with self._counting:
                self._queued -= Counter((namespace,))
            self._bulkhead.one(partial(self._posted_or_lost, notice), key=str(number), namespace=namespace)

    def _posted_or_lost(self, notice: Notice) -> None:
        try:
            super().post(notice)
        except Exception:  # noqa: BLE001 -- it is logged, and the thread goes on with the next notice
            _LOG.exception("an event was lost")


def _within(seconds: float, since: float | None, now: float) -> bool:
    """A time that lies ahead counts as long past: the wall clock stepped backwards."""
    return since is not None and 0 <= now - since < seconds


def _event(notice: Notice, *, namespace: str, name: str, now: float, instance: str) -> JSON:
    body: JSON = {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {"namespace": namespace, "name": name},
        "eventTime": micro_text(now),
        "reportingController": CONTROLLER,
        "reportingInstance": instance or CONTROLLER,
        "action": notice.action,
        "reason": notice.reason,
        "regarding": notice.regarding.reference(),
        "note": notice.note,
        "type": "Warning" if notice.warning else "Normal",
    }
    if notice.related is not None:
        body["related"] = notice.related.reference()
    return body


def _with_short_note(notice: Notice) -> Notice:
    """With a note no longer than an Event's may be: thousands are remembered, and users' objects make notes long."""
    note = _shortened(notice.note)
    return notice if note == notice.note else replace(notice, note=note)


def _shortened(note: str) -> str:
    raw = note.encode()
    if len(raw) <= _NOTE_LIMIT_BYTES:
        return note
    return raw[: _NOTE_LIMIT_BYTES - 3].decode(errors="ignore") + "…"
