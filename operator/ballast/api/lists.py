"""How the API server merges lists: by keys (map), as a set of scalars, or as a whole (atomic)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError, core_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"


@dataclass(frozen=True, slots=True)
class ListType:
    """Annotates a tuple of items. `keys` are attributes in Python and, by alias, properties in YAML.

    Items of a map differ in their keys, items of a set differ; both refuse duplicates, here and on the server.
    """

    name: str
    keys: tuple[str, ...] = ()

    def identity(self, item: Any) -> Any:
        return tuple(getattr(item, key) for key in self.keys) if self.keys else item

    def check(self, items: Sequence[Any]) -> Sequence[Any]:
        seen: set[Any] = set()
        for item in items:
            identity = self.identity(item)
            if identity in seen:
                shown = ", ".join(map(str, identity)) if self.keys else str(item)
                raise PydanticCustomError("duplicate", "{message}", {"message": f"{shown} stands here twice: keep one"})
            seen.add(identity)
        return items

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        inner = handler(source)
        if self.name == "atomic":
            return inner
        return core_schema.no_info_after_validator_function(self.check, inner)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        json_schema = {**handler(schema), LIST_TYPE: self.name}
        if self.keys:
            json_schema[LIST_KEYS] = [key.rstrip("_") for key in self.keys]
        return json_schema


ATOMIC = ListType("atomic")
SET = ListType("set")


def map_by(*keys: str) -> ListType:
    """A list whose items are told apart by `keys`."""
    return ListType("map", keys)
