"""Reading whole collections, page by page, each object cut down to its value as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec import Raw

from ballast.kube.client import Client
from ballast.kube.document import JSON, parsed
from ballast.kube.errors import Gone
from ballast.kube.kinds import Kind

T = TypeVar("T")
PAGE = 500
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
        """Of the whole list, once all of it was taken."""

    def __iter__(self) -> Iterator[Raw]:
        query = self._query
        parameters = {"limit": str(query.page)}
        if query.labels:
            parameters["labelSelector"] = query.labels
        if query.fields:
            parameters["fieldSelector"] = query.fields
        while True:
            page = self._client.get_page(
                query.kind, parameters, namespace=query.namespace, metadata_only=query.metadata_only
            )
            yield from page.items or ()
            if not page.metadata.continue_:
                self.resource_version = page.metadata.resource_version
                return
            parameters["continue"] = page.metadata.continue_
