"""Rules on values and objects, written once: evaluated as CEL by the API server, and as Python elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError, core_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue


VALIDATIONS = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What must hold of a value.

    `cel` is the expression over `self` (and `oldSelf`: then only an update can break it, and `holds` is None);
    `holds` says the same in Python over the parsed value. `message` tells the remedy. `path` (like ".settle")
    moves the API server's error from the object to one of its fields.

    A Rule may annotate a type (`Annotated[str, Rule(...)]`) or stand in a model's `RULES`.
    """

    cel: str
    message: str
    holds: Callable[[Any], bool] | None
    path: str | None = None

    def as_validation(self) -> dict[str, str]:
        validation = {"rule": self.cel, "message": self.message}
        if self.path:
            validation["fieldPath"] = self.path
        return validation

    def check(self, value: Any) -> Any:
        """Return `value`; raise a pydantic error with the remedy when the rule is broken."""
        if self.holds is not None and not self.holds(value):
            raise PydanticCustomError(
                "rule", "{message}", {"message": self.message, "path": (self.path or "").lstrip(".")}
            )
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        json_schema = handler(schema)
        validations = [*json_schema.get(VALIDATIONS, []), self.as_validation()]
        return {**json_schema, VALIDATIONS: validations}


def matching(pattern: str, message: str) -> Rule:
    """A rule that a string matches `pattern` as a whole. The pattern must mean the same in RE2 and in Python.

    CEL instead of the schema's `pattern`, because the server's message for the latter shows only the pattern.
    """
    compiled = re.compile(pattern)
    quoted = pattern.replace("\\", "\\\\").replace("'", "\\'")
    return Rule(
        cel=f"self.matches('^(?:{quoted})$')",
        message=message,
        holds=lambda text: compiled.fullmatch(text) is not None,
    )


def only_with_strategy(block: str) -> Rule:
    """A rule that a strategy's block (as in YAML, such as advanced.transferShedder) needs the strategy of its name."""
    name = block.rpartition(".")[2]
    strategy = name[0].upper() + name[1:]
    attribute = attrgetter(re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", block))
    return Rule(
        cel=f"!has(self.{block}) || self.strategy == '{strategy}'",
        message=f"{block} belongs to strategy {strategy}: remove the block or choose that strategy",
        holds=lambda spec: attribute(spec) is None or spec.strategy == strategy,
        path=f".{block}",
    )


# How the API server merges lists: by keys (map), as a set of scalars, or as a whole (atomic).

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
    """A list in which `keys` identify an item."""
    return ListType("map", keys)
