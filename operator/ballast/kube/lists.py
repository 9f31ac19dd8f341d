"""Reading whole collections, page by page, each object cut down to its value as it comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ballast.kube.client import Client
from ballast.kube.document import JSON
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

    When the server can't continue (410) the list is started anew; Gone is raised if that happens again and again.
    """
    for _ in range(_RESTARTS):
        try:
            return _read_once(client, query, read)
        except Gone:
            continue
    return _read_once(client, query, read)


def _read_once(client: Client, query: Query, read: Callable[[JSON], T]) -> Listing[T]:
    parameters: dict[str, Any] = {"limit": str(query.page)}
    if query.labels:
        parameters["labelSelector"] = query.labels
    if query.fields:
        parameters["fieldSelector"] = query.fields
    found: list[T] = []
    while True:
        page = client.get_page(query.kind, parameters, namespace=query.namespace, metadata_only=query.metadata_only)
        found += [read(item) for item in page.get("items") or ()]
        metadata = page.get("metadata") or {}
        if not metadata.get("continue"):
            return Listing(found, metadata.get("resourceVersion") or "")
        parameters["continue"] = metadata["continue"]
