"""A store's objects as lists, for tests that build and change a scene."""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.apiserver.store import Store

JSON = dict[str, Any]


class Shelf(MutableSequence[JSON]):
    """Of one plural; what is changed in place is changed in the store, without a version."""

    def __init__(self, store: Store, plural: str) -> None:
        self._store, self._plural = store, plural

    def __len__(self) -> int:
        return len(self._store.all(self._plural))

    def __getitem__(self, index: Any) -> Any:
        return self._store.all(self._plural)[index]

    def __setitem__(self, index: Any, found: Any) -> None:
        del self[index]
        self.insert(index, found)

    def __delitem__(self, index: Any) -> None:
        metadata = self[index]["metadata"]
        self._store.remove(self._plural, metadata["name"], metadata.get("namespace", ""))

    def insert(self, index: int, value: JSON) -> None:
        del index
        self._store.put(self._plural, value)


class Lists:
    def __init__(self, store: Store) -> None:
        self._store = store

    def __getitem__(self, plural: str) -> Shelf:
        return Shelf(self._store, plural)

    def __setitem__(self, plural: str, objects: Iterable[JSON]) -> None:
        """All there is of it from now on."""
        kept = list(objects)
        self[plural].clear()
        self._store.put(plural, *kept)
