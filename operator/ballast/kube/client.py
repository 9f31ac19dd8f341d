"""One connection pool to the API server, speaking JSON. Nothing of the HTTP library leaves this module and `stream`."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from threading import BoundedSemaphore
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
import urllib3

from ballast.kube.clock import ServerClock
from ballast.kube.connection import Connection, close
from ballast.kube.deadline import deadline_of
from ballast.kube.document import JSON, PAGE, Page, decoded, parsed
from ballast.kube.errors import AnswerTooLong, KubeError, NotConnected, Unavailable, error_of
from ballast.kube.kinds import Kind
from ballast.kube.names import FIELD_MANAGER
from ballast.kube.stream import LONGEST_EVENT_BYTES, Stream

T = TypeVar("T")
FULL = "application/json"
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_LONGEST_PAUSE_SECONDS = 5.0
_LONGEST_REFUSAL_BYTES = 1 << 16
LONGEST_PAGE_BYTES = 16 << 20
"""Of a list. Any user may create objects of a megabyte and a half: five hundred of them are more than our memory."""
_LONGEST_OBJECT_BYTES = LONGEST_EVENT_BYTES
_LONG_OBJECT_BYTES = 128 << 10
"""A usual pod has a tenth of it."""
_MOST_LONG_OBJECTS = 2
"""Read at once: as an object of ours each takes twenty times as much memory, and any user may create many."""
_PIECE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Limits:
    connections: int = 32
    """Kept open at most; as many requests can be under way at a time without opening more."""
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
        self._pool = connection.pool(self._limits.connections)
        self._timeout = urllib3.Timeout(connect=self._limits.connect_seconds, read=self._limits.read_seconds)
        self._sleep = sleep
        self._long = BoundedSemaphore(_MOST_LONG_OBJECTS)
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
        return self._call(request, lambda data: read(_object(data)))

    def get_page(
        self, kind: Kind, parameters: Mapping[str, str], *, namespace: str | None = None, metadata_only: bool = False
    ) -> Page:
        """Raises AnswerTooLong where it has more than LONGEST_PAGE_BYTES."""
        path = f"{kind.path(namespace=namespace)}?{urlencode(parameters)}"
        headers = {"Accept": METADATA_LIST} if metadata_only else {}
        action = Action.on("list", kind, namespace)
        request = _Request(action, "GET", path, headers, repeatable=True, is_page=True)
        return self._call(request, _page)

    def version(self) -> JSON:
        """The API server's."""
        return self._call(_Request(Action("get", "version"), "GET", "/version", {}, repeatable=True), _object)

    def create_dry(self, kind: Kind, body: Mapping[str, Any], *, namespace: str | None = None) -> JSON:
        """What would be created, after admission. Nothing is stored."""
        action = Action.on("create", kind, namespace, body["metadata"].get("name"))
        path = f"{kind.path(namespace=namespace)}?dryRun=All&fieldManager={FIELD_MANAGER}"
        return self._call(_Request(action, "POST", path, {}, body, repeatable=True), _object)

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
        return self._call(_Request(action, "POST", path, {}, body, repeatable=True, retry_busy=False), _object)

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
        read = _itself if answer else _empty
        return self.patch_as(
            read,
            kind,
            name,
            patch,
            namespace=namespace,
            subresource=subresource,
            answer=answer,
            retry_busy=retry_busy,
        )

    def patch_as(
        self,
        read: Callable[[JSON], T],
        kind: Kind,
        name: str,
        patch: Sequence[JSON] | Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        answer: bool = True,
        retry_busy: bool = True,
    ) -> T:
        """What `read` makes of the patched object, as `get_as`."""
        path = kind.path(namespace=namespace, name=name, subresource=subresource)
        headers = {
            "Content-Type": _MERGE_PATCH if isinstance(patch, Mapping) else _JSON_PATCH,
            "Accept": FULL if answer else METADATA_ONLY,
        }
        action = Action.on("patch", kind, namespace, name, subresource)
        place = f"{path}?fieldManager={FIELD_MANAGER}"
        return self._wrote(kind, _Request(action, "PATCH", place, headers, patch, retry_busy=retry_busy), read)

    def delete(
        self, kind: Kind, name: str, *, namespace: str | None = None, preconditions: Mapping[str, str] | None = None
    ) -> None:
        """`preconditions`: uid and resourceVersion that the object must have."""
        path = kind.path(namespace=namespace, name=name)
        options: JSON = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions:
            options["preconditions"] = dict(preconditions)
        action = Action.on("delete", kind, namespace, name)
        self._call(_Request(action, "DELETE", path, {}, options, repeatable=bool(preconditions)), _nothing)

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
            _check_is_watch(request.action, response)
        except BaseException:
            if response is not None:
                response.close()
            close(pool)
            raise
        return Stream(str(request.action), response, partial(close, pool), silent_seconds=read_seconds)

    def _wrote(self, kind: Kind, request: _Request, read: Callable[[JSON], T]) -> T:
        def heard(data: bytes) -> T:
            written = _object(data)
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
        with ExitStack() as long:
            data = self._read(request, response, long)
            if response.status >= 300:
                raise _refusal(request.action, response.status, data, response.headers)
            try:
                return read(data)
            except msgspec.DecodeError as error:
                why = "the answer is not the API server's: it is no JSON object"
                raise Unavailable(str(request.action), why) from error

    def _read(self, request: _Request, response: urllib3.BaseHTTPResponse, long: ExitStack) -> bytes:
        """`long`: enters what limits long objects, if this is one."""
        deadline_of(response).set(self._limits.answer_seconds)
        data = bytearray()
        try:
            self._read_until(response, data, LONGEST_PAGE_BYTES if request.is_page else _LONG_OBJECT_BYTES)
            if not request.is_page and len(data) > _LONG_OBJECT_BYTES:
                long.enter_context(self._long)
                self._read_until(response, data, _LONGEST_OBJECT_BYTES)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            response.close()
            why = f"no answer from {self._connection.shown}: {_in_plain_words(error)}"
            raise Unavailable(str(request.action), why) from error
        most = LONGEST_PAGE_BYTES if request.is_page else _LONGEST_OBJECT_BYTES
        if len(data) > most:
            response.close()
            kind = AnswerTooLong if request.is_page else Unavailable
            raise kind(str(request.action), f"the answer has more than {most >> 20} MiB")
        return bytes(data)

    @staticmethod
    def _read_until(response: urllib3.BaseHTTPResponse, data: bytearray, most: int) -> None:
        """Append what there is, until it has ended or there is more than `most`.

        Piece by piece: urllib3 would keep as many pieces, which leave the memory of each thread in fragments.
        """
        while len(data) <= most and (piece := response.read(_PIECE_BYTES)):
            data += piece

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
            raise Unavailable(
                str(request.action), f"no answer from {self._connection.shown}: {_in_plain_words(error)}"
            ) from error
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


def _itself(written: JSON) -> JSON:
    return written


def _empty(written: JSON) -> JSON:
    del written
    return {}


def _object(data: bytes) -> JSON:
    return parsed(data) if data else {}


def _page(data: bytes) -> Page:
    return decoded(PAGE.decode, data)


class _Unread(msgspec.Struct):
    """Any object: its fields are skipped."""


_UNREAD = msgspec.json.Decoder(_Unread)
"""Built when this module is loaded, as in `document`."""


def _nothing(data: bytes) -> JSON:
    if data:
        decoded(_UNREAD.decode, data)
    return {}


def _in_plain_words(error: Exception) -> str:
    """Why there was no answer, without the HTTP library's words."""
    if isinstance(error, urllib3.exceptions.NameResolutionError):
        return "its name can't be resolved"
    if isinstance(error, urllib3.exceptions.TimeoutError) and not isinstance(
        error, urllib3.exceptions.NewConnectionError
    ):
        return "it took too long"
    if isinstance(error, urllib3.exceptions.ProxyError):
        return "the proxy gave none"
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return f"TLS fails: {(cause.reason or 'unknown').replace('_', ' ').lower()}"
    system = next((cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror), None)
    return system.lower() if system else "the connection was closed"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and those that it came from; urllib3 keeps some of them in its arguments."""
    while error is not None:
        yield error
        nested = next((each for each in error.args if isinstance(each, BaseException)), None)
        error = error.__cause__ or nested or error.__context__


def _may_repeat(request: _Request, error: Unavailable) -> bool:
    if error.status == 429:
        return request.retry_busy
    return request.repeatable and (error.status != 500 or request.retry_busy)


def _check_is_watch(action: Action, response: urllib3.BaseHTTPResponse) -> None:
    if response.status >= 300:
        try:
            data = response.read(_LONGEST_REFUSAL_BYTES)
        except (urllib3.exceptions.HTTPError, OSError):
            data = b""
        response.close()
        raise _refusal(action, response.status, data, response.headers)
    content_type = response.headers.get("Content-Type", "")
    if not content_type.startswith(FULL):
        response.close()
        raise Unavailable(str(action), f"the answer is not the API server's: its type is {content_type!r}")


def _refusal(action: Action, status: int, data: bytes, headers: Mapping[str, str]) -> KubeError:
    try:
        body = _object(data)
    except msgspec.DecodeError:
        text = data.decode(errors="replace")[:500]
        body = {"message": f"HTTP {status} with a web page: not the API server's" if text.startswith("<") else text}
    error = error_of(str(action), status, body)
    if isinstance(error, Unavailable):
        error.retry_after_seconds = _seconds(headers.get("Retry-After"))
    return error


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdigit() else None
