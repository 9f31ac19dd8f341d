"""One connection pool to the API server, speaking JSON.

Nothing of the HTTP library leaves this module, `answer` and `stream`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

import urllib3

from ballast.kube.answer import FULL, AnswerReader, as_nothing, as_object, as_page, check_is_watch, no_answer
from ballast.kube.clock import ServerClock
from ballast.kube.connection import Connection, close
from ballast.kube.document import JSON, Page
from ballast.kube.errors import NotConnected, Unavailable
from ballast.kube.kinds import Kind
from ballast.kube.names import FIELD_MANAGER
from ballast.kube.stream import Stream

T = TypeVar("T")
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_LONGEST_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    connections: int = 32
    """Requests of a kind that callers send at once; twice as many connections are kept open."""
    connect_seconds: float = 5.0
    read_seconds: float | None = 30.0
    """Until the head of the answer is there. None waits without end."""
    answer_seconds: float | None = 60.0
    """Until all of it is there, from its head on: pages of lists are long. None waits without end."""
    attempts: int = 4
    """Of a request that may safely be repeated."""
    first_pause_seconds: float = 0.2
    """Before the second attempt; doubles with each."""


@dataclass(frozen=True, slots=True)
class Action:
    """What is asked of the API server, in the words of its access rules."""

    verb: str
    resource: str
    """With the subresource, as in `pods/eviction`."""
    place: str = ""
    """Namespace and name, as far as there are any."""

    @classmethod
    def on(
        cls, verb: str, kind: Kind, namespace: str | None, name: str | None = None, subresource: str | None = None
    ) -> Action:
        resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
        return cls(verb, resource, "/".join(part for part in (namespace, name) if part))

    def __str__(self) -> str:
        return f"{self.verb} {self.resource} {self.place}".strip()


Observer = Callable[[Action, int], object]
"""Called after each request with the HTTP status, 0 if no answer came. Called in the thread that asked."""


def _unheeded(kind: Kind, written: JSON) -> None:
    del kind, written


def _ignore(action: Action, status: int) -> None:
    del action, status


@dataclass(frozen=True, slots=True)
class _Request:
    action: Action
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any = None
    repeatable: bool = False
    """Doing it twice is doing it once, so it may be sent again when no answer came."""
    is_page: bool = False
    """Of a list. One that is too long is no error: fewer objects are to be asked for."""
    retry_busy: bool = True
    """Try again on 429 and 500; off where these are answers (eviction: budgets), or where no caller may wait."""


class Client:
    """Safe for threads. Every method raises a KubeError when the server does not do what it is asked."""

    def __init__(
        self,
        connection: Connection,
        limits: Limits | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        observer: Observer = _ignore,
        clock: ServerClock | None = None,
    ) -> None:
        """`clock`: hears of every answer."""
        self._limits = limits or Limits()
        self._connection, self._observer, self._clock = connection, observer, clock
        # Those that are late, and the gate timeout's, come on top; a new connection costs the API server a handshake.
        self._pool = connection.pool(2 * self._limits.connections)
        self._timeout = urllib3.Timeout(connect=self._limits.connect_seconds, read=self._limits.read_seconds)
        self._sleep = sleep
        self._answers = AnswerReader(connection.shown, within_seconds=self._limits.answer_seconds)
        self.written: Callable[[Kind, JSON], None] = _unheeded
        """Called with every object that the server sent back after a write; without `answer`, with its metadata."""

    @property
    def connections(self) -> int:
        return self._limits.connections

    def close(self) -> None:
        close(self._pool)

    def get(self, kind: Kind, name: str, *, namespace: str | None = None) -> JSON:
        return self.get_as(_itself, kind, name, namespace=namespace)

    def get_as(self, read: Callable[[JSON], T], kind: Kind, name: str, *, namespace: str | None = None) -> T:
        """What `read` makes of the object. Of long objects few are there at a time, for as long as `read` takes."""
        path = kind.path(namespace=namespace, name=name)
        request = _Request(Action.on("get", kind, namespace, name), "GET", path, {}, repeatable=True)
        return self._call(request, lambda data: read(as_object(data)))

    def get_page(
        self, kind: Kind, parameters: Mapping[str, str], *, namespace: str | None = None, metadata_only: bool = False
    ) -> Page:
        """Raises AnswerTooLong where it has more than LONGEST_PAGE_BYTES."""
        path = f"{kind.path(namespace=namespace)}?{urlencode(parameters)}"
        headers = {"Accept": METADATA_LIST} if metadata_only else {}
        action = Action.on("list", kind, namespace)
        request = _Request(action, "GET", path, headers, repeatable=True, is_page=True)
        return self._call(request, as_page)

    def version(self) -> JSON:
        """The API server's."""
        return self._call(_Request(Action("get", "version"), "GET", "/version", {}, repeatable=True), as_object)

    def create_dry(self, kind: Kind, body: Mapping[str, Any], *, namespace: str | None = None) -> JSON:
        """What would be created, after admission. Nothing is stored."""
        action = Action.on("create", kind, namespace, body["metadata"].get("name"))
        path = f"{kind.path(namespace=namespace)}?dryRun=All&fieldManager={FIELD_MANAGER}"
        return self._call(_Request(action, "POST", path, {}, body, repeatable=True), as_object)

    def patch_dry(
        self, kind: Kind, name: str, patch: Sequence[JSON] | Mapping[str, Any], *, namespace: str | None = None
    ) -> JSON:
        """What the patched object would be, after admission. Nothing is stored."""
        asked = _patching(kind, name, patch, namespace=namespace, subresource=None, accept=FULL)
        return self._call(replace(asked, path=f"{asked.path}&dryRun=All", repeatable=True), as_object)

    def create(
        self, kind: Kind, body: Mapping[str, Any], *, namespace: str | None = None, retry_busy: bool = True
    ) -> JSON:
        action = Action.on("create", kind, namespace, body["metadata"].get("name"))
        path = f"{kind.path(namespace=namespace)}?fieldManager={FIELD_MANAGER}"
        return self._wrote(kind, _Request(action, "POST", path, {}, body, retry_busy=retry_busy), _itself)

    def act(self, kind: Kind, name: str, *, subresource: str, body: Mapping[str, Any], namespace: str) -> JSON:
        """Post to a subresource that acts, such as `eviction`; 429 is its answer and is not tried again."""
        action = Action.on("create", kind, namespace, name, subresource)
        path = kind.path(namespace=namespace, name=name, subresource=subresource)
        return self._call(_Request(action, "POST", path, {}, body, repeatable=True, retry_busy=False), as_object)

    def replace(self, kind: Kind, name: str, body: Mapping[str, Any], *, namespace: str | None = None) -> JSON:
        """Put an object that carries the resource version it was read at."""
        path = f"{kind.path(namespace=namespace, name=name)}?fieldManager={FIELD_MANAGER}"
        return self._wrote(kind, _Request(Action.on("update", kind, namespace, name), "PUT", path, {}, body), _itself)

    def patch(
        self,
        kind: Kind,
        name: str,
        patch: Sequence[JSON] | Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        answer: bool = True,
        retry_busy: bool = True,
    ) -> JSON:
        """A list is an RFC 6902 patch, a mapping a merge patch. Without `answer` the object is not sent back."""
        accept = FULL if answer else METADATA_ONLY
        request = _patching(kind, name, patch, namespace=namespace, subresource=subresource, accept=accept)
        return self._wrote(kind, replace(request, retry_busy=retry_busy), _itself if answer else _empty)

    def patch_as(
        self,
        read: Callable[[JSON], T],
        kind: Kind,
        name: str,
        patch: Sequence[JSON] | Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> T:
        """What `read` makes of the patched object, as `get_as`."""
        return self._wrote(
            kind, _patching(kind, name, patch, namespace=namespace, subresource=subresource, accept=FULL), read
        )

    def delete(
        self, kind: Kind, name: str, *, namespace: str | None = None, preconditions: Mapping[str, str] | None = None
    ) -> None:
        """`preconditions`: uid and resourceVersion that the object must have."""
        path = kind.path(namespace=namespace, name=name)
        options: JSON = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions:
            options["preconditions"] = dict(preconditions)
        action = Action.on("delete", kind, namespace, name)
        self._call(_Request(action, "DELETE", path, {}, options, repeatable=bool(preconditions)), as_nothing)

    def stream(
        self,
        kind: Kind,
        parameters: Mapping[str, str],
        *,
        namespace: str | None = None,
        metadata_only: bool = False,
        connect_seconds: float,
        read_seconds: float,
    ) -> Stream:
        """Watch a kind, over its own connection. One attempt: the caller decides when to try again.

        `parameters` as in get_page, with `resourceVersion`, `allowWatchBookmarks`, `timeoutSeconds`. The server has
        `connect_seconds` to accept the connection, and as long to begin its answer. `read_seconds` is the longest
        silence afterwards: choose more than the time between bookmarks (about a minute).
        """
        place = f"{kind.path(namespace=namespace)}?{urlencode({**parameters, 'watch': 'true'})}"
        headers = {"Accept": METADATA_ONLY} if metadata_only else {}
        request = _Request(Action.on("watch", kind, namespace), "GET", place, headers)
        pool = self._connection.pool(1)
        timeout = urllib3.Timeout(connect=connect_seconds, read=connect_seconds)
        response = None
        try:
            response = self._send(pool, request, timeout)
            check_is_watch(str(request.action), response)
        except BaseException:
            if response is not None:
                response.close()
            close(pool)
            raise
        return Stream(str(request.action), response, partial(close, pool), silent_seconds=read_seconds)

    def _wrote(self, kind: Kind, request: _Request, read: Callable[[JSON], T]) -> T:
        def heard(data: bytes) -> T:
            written = as_object(data)
            if (written.get("metadata") or {}).get("uid"):
                self.written(kind, written)
            return read(written)

        return self._call(request, heard)

    def _call(self, request: _Request, read: Callable[[bytes], T]) -> T:
        pause, attempts_left = self._limits.first_pause_seconds, self._limits.attempts
        while True:
            attempts_left -= 1
            try:
                return self._once(request, read)
            except Unavailable as error:
                if attempts_left <= 0 or not _may_repeat(request, error):
                    raise
                self._sleep(min(error.retry_after_seconds or pause, _LONGEST_PAUSE_SECONDS))
                pause *= 2

    def _once(self, request: _Request, read: Callable[[bytes], T]) -> T:
        response = self._send(self._pool, request, self._timeout)
        return self._answers.read(response, read, action=str(request.action), is_page=request.is_page)

    def _send(self, pool: urllib3.PoolManager, request: _Request, timeout: urllib3.Timeout) -> urllib3.BaseHTTPResponse:
        """Its body is still to be read."""
        server, status = self._connection.server, 0
        asked_at = self._clock() if self._clock else 0.0
        try:
            response = pool.request(
                request.method,
                f"{server}{request.path}",
                headers=self._headers(request),
                body=None if request.body is None else json.dumps(request.body),
                timeout=timeout,
                redirect=False,
                preload_content=False,
            )
            status = response.status
            if self._clock is not None:
                self._clock.heard(response.headers, asked_at=asked_at)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise no_answer(str(request.action), self._connection.shown, error) from error
        finally:
            self._observer(request.action, status)
        return response

    def _headers(self, request: _Request) -> dict[str, str]:
        headers = {"Accept": FULL, "Content-Type": FULL, "User-Agent": FIELD_MANAGER, **request.headers}
        more = {
            "Authorization": self._connection.authorization(),
            "Impersonate-User": self._connection.impersonated,
        }
        for name, value in more.items():
            # The HTTP library would refuse it with the value in its message, and the log would have the token.
            if value and not (value.isascii() and value.isprintable()):
                raise NotConnected(str(request.action), f"{name} can't be sent: it holds a line break or no ASCII")
        return headers | {name: value for name, value in more.items() if value}


def _patching(
    kind: Kind,
    name: str,
    patch: Sequence[JSON] | Mapping[str, Any],
    *,
    namespace: str | None,
    subresource: str | None,
    accept: str,
) -> _Request:
    path = kind.path(namespace=namespace, name=name, subresource=subresource)
    headers = {"Content-Type": _MERGE_PATCH if isinstance(patch, Mapping) else _JSON_PATCH, "Accept": accept}
    action = Action.on("patch", kind, namespace, name, subresource)
    return _Request(action, "PATCH", f"{path}?fieldManager={FIELD_MANAGER}", headers, patch)


def _itself(written: JSON) -> JSON:
    return written


def _empty(written: JSON) -> JSON:
    del written
    return {}


def _may_repeat(request: _Request, error: Unavailable) -> bool:
    if error.status == 429:
        return request.retry_busy
    return request.repeatable and (error.status != 500 or request.retry_busy)
