"""Events (events.k8s.io/v1) that users see with `kubectl describe`; the same one twice becomes a series."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from ballast.kube.client import Client
from ballast.kube.document import JSON, micro_text
from ballast.kube.errors import KubeError, NotFound
from ballast.kube.kinds import EVENT, Kind
from ballast.tenancy.allowance import Allowances
from ballast.tenancy.lane import Lane, Rank

CONTROLLER = "ballast.dev/operator"
_NOTE_LIMIT_BYTES = 1024
_LONGEST_NAME_CHARACTERS = 200
"""Of the object, in the Event's own name."""
_KEPT = 4096
_BURST, _REFILL_SECONDS = 25, 1.0


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
class _Posted:
    namespace: str
    name: str
    count: int
    written_at: float


class EventRecorder:
    """Posts notices by the lane, so that nothing waits for an Event. Safe for threads.

    A notice equal to one posted within `quiet_seconds` is only counted; the first one after that writes the count
    into the event's series. Of too many about objects of one namespace, most are dropped: the API server has others to
    serve. client-go's spam filter does so for each object, but a user can create thousands. A lost event is no reason
    to fail, so errors go to `on_error`.

    `instance`: this replica's name. `clock`: seconds since the epoch.
    """

    def __init__(
        self,
        client: Client,
        lane: Lane,
        *,
        instance: str,
        clock: Callable[[], float],
        on_error: Callable[[KubeError], None],
        quiet_seconds: float = 300.0,
    ) -> None:
        self._client, self._lane = client, lane
        self._instance, self._clock, self._on_error = instance[:128], clock, on_error
        self._quiet_seconds = quiet_seconds
        self._posted: OrderedDict[Notice, _Posted] = OrderedDict()
        self._allowances = Allowances(_BURST, _REFILL_SECONDS)
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def post(self, notice: Notice) -> None:
        notice, now = _with_short_note(notice), self._clock()
        namespace = notice.regarding.namespace or ""
        with self._lock:
            posted = self._posted.get(notice)
            if posted is not None:
                posted.count += 1
                if _within(self._quiet_seconds, posted.written_at, now):
                    return
            if not self._allowances.take(namespace, now):
                return
        about = f"{notice.regarding.uid} {notice.reason} {notice.note}"
        self._lane.submit(namespace, f"post {about}", Rank.EVENT, partial(self._send, notice))

    def _send(self, notice: Notice) -> None:
        now, posted = self._clock(), self._posted.get(notice)
        if posted is not None and _within(self._quiet_seconds, posted.written_at, now):
            return
        try:
            if posted is None or not self._extended(posted, now):
                self._create(notice, now)
        except KubeError as error:
            self._on_error(error)

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
