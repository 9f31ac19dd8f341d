"""Reading and writing Ballast's own objects: never a write without a change, never over another client's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from msgspec import Raw

from ballast.kube.answer import LONGEST_PAGE_BYTES
from ballast.kube.client import Client
from ballast.kube.document import JSON, Page, ReadOnlyJSON, parsed
from ballast.kube.errors import AlreadyExists, AnswerTooLong, Conflict, Gone, Invalid, NotFound
from ballast.kube.kinds import EXECUTOR_MOVE, GATE_SWITCH, Kind

SWITCH = "ballast"
"""Name of the one GateSwitch."""


def difference(old: ReadOnlyJSON, new: ReadOnlyJSON) -> JSON:
    """The merge patch (RFC 7386) from `old` to `new`; empty when they are equal. Lists are replaced whole."""
    changes: JSON = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := difference(before, value):
                changes[key] = inner
        elif key not in old or before != value:
            changes[key] = value
    return changes


def write_status(
    client: Client, kind: Kind, seen: ReadOnlyJSON, status: ReadOnlyJSON, *, tries: int = 4
) -> JSON | None:
    """Make `status` the object's whole status, if it differs from that of `seen`, the object as it was read.

    Returns the object as it is now, or None when there was nothing to write. Raises NotFound when it is gone, and
    Conflict when its spec, its status or its deletion was changed since it was read. After any other change it is
    written again, up to `tries` times: a user who changes labels without end must not keep a status from being written.
    """
    changes = difference(seen.get("status") or {}, status)
    if not changes:
        return None
    metadata = seen["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace")
    guarded = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": changes}
    try:
        return client.patch(kind, name, guarded, namespace=namespace, subresource="status")
    except Conflict:
        now = client.get(kind, name, namespace=namespace)
        if tries <= 1 or _substance(now) != _substance(seen):
            raise
    return write_status(client, kind, now, status, tries=tries - 1)


def _substance(read: ReadOnlyJSON) -> tuple[object, ...]:
    """What a status depends on."""
    metadata = read["metadata"]
    known = (metadata.get(each) for each in ("uid", "generation", "deletionTimestamp"))
    return (*known, read.get("status") or {})


def ensure_created(client: Client, kind: Kind, body: ReadOnlyJSON) -> tuple[JSON, bool]:
    """Create the object, or take the one of this name that is there. Also returns whether it was created now."""
    metadata = body["metadata"]
    try:
        return client.create(kind, body, namespace=metadata.get("namespace")), True
    except AlreadyExists:
        return client.get(kind, metadata["name"], namespace=metadata.get("namespace")), False


def delete_object(client: Client, kind: Kind, seen: ReadOnlyJSON) -> bool:
    """Delete exactly the object that was read; False when it is gone already."""
    metadata = seen["metadata"]
    try:
        client.delete(
            kind, metadata["name"], namespace=metadata.get("namespace"), preconditions={"uid": metadata["uid"]}
        )
    except NotFound:
        return False
    return True


def approve_move(client: Client, *, namespace: str, name: str, uid: str) -> JSON:
    """Let this proposed ExecutorMove begin, and no namesake that has taken its place. Doing it twice changes nothing.

    Its spec can't be changed otherwise. Raises Conflict if it is another one.
    """
    patch = {"metadata": {"uid": uid}, "spec": {"approved": True}}
    try:
        return client.patch(EXECUTOR_MOVE, name, patch, namespace=namespace)
    except Invalid as error:
        if any(cause.get("field") == "metadata.uid" for cause in error.causes):
            raise Conflict(error.action, "it is another one of the same name", status=error.status) from error
        raise


def gate_switch(client: Client, name: str = SWITCH) -> JSON | None:
    """The switch as it is; None when there is none, which means off."""
    try:
        return client.get(GATE_SWITCH, name)
    except NotFound:
        return None


def set_gate_switch(
    client: Client,
    spec: Mapping[str, Any],
    *,
    status: ReadOnlyJSON | None = None,
    name: str = SWITCH,
    seen: JSON | None = None,
) -> JSON:
    """Make `spec` (gating, allNamespaces, namespaces) and, if given, `status` the switch's, creating it if need be.

    Written only where something differs. Raises Conflict when another client has written it since it was read as
    `seen`, from which these were worked out. It is read now if that is None.
    """
    seen = seen or gate_switch(client, name)
    if seen is None:
        body = {
            "apiVersion": GATE_SWITCH.api_version,
            "kind": GATE_SWITCH.kind,
            "metadata": {"name": name},
            "spec": dict(spec),
        }
        seen, _ = ensure_created(client, GATE_SWITCH, body)
    changes = difference(seen.get("spec") or {}, spec)
    if changes:
        guarded = {"metadata": {"resourceVersion": seen["metadata"]["resourceVersion"]}, "spec": changes}
        seen = client.patch(GATE_SWITCH, name, guarded)
    return seen if status is None else write_status(client, GATE_SWITCH, seen, status) or seen


# Reading whole collections, page by page, each object cut down to its value as it comes.

T = TypeVar("T")
PAGE = 500
_SHORTER = 8
"""After a page that is too long, the next one has so many times fewer objects."""
_GROWTH = 4
"""After a page that would be short enough with so many times more objects, the next one has them; PAGE at the most."""
_RESTARTS = 3


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    items: list[T]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Query:
    """Which objects. No resource version is given, so the server answers with the newest state there is."""

    kind: Kind
    namespace: str | None = None
    """None: of all namespaces."""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    page: int = PAGE


def read_list(client: Client, query: Query, read: Callable[[JSON], T]) -> Listing[T]:
    """Every object of one consistent state, read by `read`.

    When the server can't continue (410) the list is started again; Gone is raised if that happens again and again.
    """
    for _ in range(_RESTARTS):
        try:
            return _read_once(client, query, read)
        except Gone:
            continue
    return _read_once(client, query, read)


def _read_once(client: Client, query: Query, read: Callable[[JSON], T]) -> Listing[T]:
    objects = Objects(client, query)
    items = [read(parsed(raw)) for raw in objects]
    return Listing(items, objects.resource_version)


class Objects:
    """A list's objects, fetched page by page as they are taken."""

    def __init__(self, client: Client, query: Query) -> None:
        self._client, self._query = client, query
        self.resource_version = ""
        """Of the whole list, from its first page on."""

    def __iter__(self) -> Iterator[Raw]:
        limit, position = self._query.page, ""
        while True:
            try:
                page = self._page(limit, position)
            except AnswerTooLong:
                if limit == 1:
                    raise
                limit = max(1, limit // _SHORTER)
                continue
            self.resource_version = page.metadata.resource_version
            items = page.items or ()
            if _GROWTH * sum(memoryview(item).nbytes for item in items) <= LONGEST_PAGE_BYTES:
                limit = min(self._query.page, _GROWTH * limit)
            yield from items
            position = page.metadata.continue_
            if not position:
                return
            # Two pages at once would be twice as much memory.
            del page, items

    def _page(self, limit: int, position: str) -> Page:
        """`position`: where the page before ended; empty for the first one."""
        query = self._query
        asked = {
            "limit": str(limit),
            "labelSelector": query.labels,
            "fieldSelector": query.fields,
            "continue": position,
        }
        parameters = {name: value for name, value in asked.items() if value}
        return self._client.get_page(
            query.kind, parameters, namespace=query.namespace, metadata_only=query.metadata_only
        )
