"""Common to all kinds: the base model, the part of ObjectMeta that is read, reading and writing."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import typing
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ballast.api.duration import Duration
from ballast.api.quantity import Quantity
from ballast.api.rule import VALIDATIONS, Rule
from ballast.errors import InvalidField, InvalidResource, file_name, nearest

# The docstrings below the attributes of a class: the descriptions of its fields.
#
# Read from the source when a schema is asked for. pydantic would do it for each class when that is made, which takes a
# tenth of a second in every command.


def descriptions(model: type) -> dict[str, str]:
    """By attribute; those of the bases in the same package too."""
    package = model.__module__.partition(".")[0]
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base.__module__.partition(".")[0] == package:
            found |= _by_class(base.__module__).get(base.__qualname__, {})
    return found


@cache
def _by_class(module: str) -> Mapping[str, Mapping[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {name: dict(_docstrings(definition)) for name, definition in _classes(tree, "")}


def _classes(node: ast.AST, path: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """With their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield path + child.name, child
            yield from _classes(child, f"{path}{child.name}.")
        elif isinstance(child, ast.FunctionDef):
            yield from _classes(child, f"{path}{child.name}.<locals>.")


def _docstrings(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, following in pairwise(definition.body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)


def _alias(attribute: str) -> str:
    return to_camel(attribute.rstrip("_"))


class Model(BaseModel):
    """Base of all parts of a spec: frozen, snake_case in Python and camelCase in YAML, unknown fields refused.

    `RULES` are checked on construction, and by the API server.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=_alias,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,
    )
    RULES: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _obey_rules(self) -> Self:
        for rule in self.RULES:
            rule.check(self)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = handler(schema)
        target = handler.resolve_ref_schema(json_schema)
        for name, description in descriptions(cls).items():
            target["properties"][cls.model_fields[name].alias or name]["description"] = description
        if cls.RULES:
            target[VALIDATIONS] = [rule.as_validation() for rule in cls.RULES]
        return json_schema

    def to_dict(self) -> dict[str, Any]:
        """The object as JSON-able YAML: defaults included, absent fields left out."""
        return self.model_dump(mode="json", exclude_none=True)


class StatusModel(Model):
    """Base of all parts of a status. An unknown field is passed over: a newer operator may have written it."""

    model_config = ConfigDict(extra="ignore")


def nested(model: type[Model]) -> Any:
    """The default of a field whose block may be left out: the block's own defaults, here and on the server.

    Written out, since the server judges a default by the CEL rules before it fills in what lies deeper.
    """

    def add_default(schema: dict[str, Any]) -> None:
        schema["default"] = written(model())

    return Field(default_factory=model, json_schema_extra=add_default)


def written(value: Any) -> Any:
    """A value of a model as YAML has it; absent fields and empty lists are left out."""
    if isinstance(value, BaseModel):
        return written(value.model_dump(mode="json", exclude_none=True))
    if isinstance(value, dict):
        return {name: written(item) for name, item in value.items() if item != []}
    if isinstance(value, list | tuple):
        return [written(item) for item in value]
    if isinstance(value, Duration | Quantity):
        return value.as_written()
    return str(value) if isinstance(value, StrEnum) else value


class ObjectMeta(Model):
    """The part of Kubernetes' ObjectMeta that Ballast reads."""

    model_config = ConfigDict(extra="ignore")

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    generation: int = 0
    resource_version: str | None = None
    labels: Mapping[str, str] = Field(default_factory=dict)
    annotations: Mapping[str, str] = Field(default_factory=dict)
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class Resource(Model):
    """Base of the kinds. A subclass sets `kind` and `api_version` as Literals and adds `spec` and `status`."""

    model_config = ConfigDict(extra="forbid")

    metadata: ObjectMeta

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Read an object as the API server gives it or a user's file holds it.

        Types are taken strictly, as the server does. Raises InvalidResource with every problem found.
        """
        try:
            text = json.dumps(raw, default=_timestamp)
        except (TypeError, ValueError, RecursionError):  # what YAML has, and JSON has not
            wrong = InvalidField("", type(raw).__name__, "write text, numbers, lists and mappings only")
            raise InvalidResource(_named(cls, raw), [wrong]) from None
        try:
            return cls.model_validate_json(text, strict=True)
        except ValidationError as error:
            details = [detail for detail in error.errors(include_url=False) if not _is_echo(detail)]
            raise InvalidResource(_named(cls, raw), [_problem(detail, cls) for detail in details]) from None

    @classmethod
    def of_file(cls, raw: Mapping[str, Any], file: object) -> Self:
        """As `parse`, of an object in a user's file, which the error names. There, it needs a name."""
        try:
            found = cls.parse(raw)
        except InvalidResource as error:
            raise InvalidResource(f"{file_name(file)}: {error.what}", error.problems) from None
        if not found.metadata.name:
            raise InvalidResource(
                f"{file_name(file)}: {cls.__name__}", [InvalidField("metadata.name", "(absent)", "set this field")]
            )
        return found


def _named(kind: type, raw: Mapping[str, Any]) -> str:
    """Kind and name, as far as there is one."""
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return f"{kind.__name__} {name or '?'}"


def _timestamp(value: Any) -> str:
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no place in an object")


def _is_echo(detail: Mapping[str, Any]) -> bool:
    """Whether this only says that a list lacks the items that were refused one by one."""
    return detail["type"] == "too_short" and bool(len(detail["input"]) >= detail["ctx"]["min_length"])


def _problem(detail: Mapping[str, Any], model: type[Model]) -> InvalidField:
    """One of pydantic's errors, worded for users."""
    path = _path(detail["loc"])
    if inner := detail.get("ctx", {}).get("path"):
        path = f"{path}.{inner}" if path else inner
    value = "(absent)" if detail["type"] == "missing" else detail["input"]
    meant = _meant(detail["loc"], model) if detail["type"] == "extra_forbidden" else None
    return InvalidField(path, value, meant or in_plain_words(detail))


def _meant(path: Sequence[str | int], model: type[Model]) -> str | None:
    """Where the unknown field at the end of the path belongs, or how it is probably spelled."""
    *above, key = (step for step in path if isinstance(step, str))
    block: type[Model] | None = model
    for step in above:
        field = fields_of(block).get(step) if block else None
        block = model_of(field.annotation) if field else None
    fields = fields_of(block) if block else {}
    advanced = model_of(fields["advanced"].annotation) if "advanced" in fields else None
    if advanced and key in fields_of(advanced):
        return f"no such field here: write it into advanced, as {'.'.join((*above, 'advanced', str(key)))}"
    near = nearest(str(key), fields, cutoff=0.5)
    return f"no such field: did you mean {near}?" if near else None


def fields_of(model: type[Model]) -> dict[str, FieldInfo]:
    """By name as in YAML."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def model_of(annotation: Any) -> type[Model] | None:
    """The model that a field holds, itself or as items of a list; None if it holds a plain value."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    return next((found for each in typing.get_args(annotation) if (found := model_of(each))), None)


def in_plain_words(detail: Mapping[str, Any]) -> str:
    """What to write instead, by one of pydantic's errors and without the library's words."""
    context = detail.get("ctx", {})
    cause = context.get("error")
    if cause is not None:
        return cause.remedy if isinstance(cause, InvalidField) else str(cause)
    template = _REMEDIES.get(detail["type"])
    if template is not None:
        words = template.format_map({**context, "expected": str(context.get("expected", "")).replace("'", "")})
        return re.sub(r"\b1 (item|character)s", r"1 \1", words)
    message: str = detail["msg"]
    if not message.startswith("Input "):  # one of Rule or map_by
        return message
    return _KINDS.get(detail["type"].partition("_")[0], "write another value")


_REMEDIES = {
    "missing": "set this field",
    "missing_argument": "set this field",
    "extra_forbidden": "no such field: remove it or correct its spelling",
    "unexpected_keyword_argument": "no such field: remove it or correct its spelling",
    "literal_error": "write {expected}",
    "enum": "write {expected}",
    "greater_than": "write a number greater than {gt:g}",
    "greater_than_equal": "write a number greater than or equal to {ge:g}",
    "less_than": "write a number less than {lt:g}",
    "less_than_equal": "write a number less than or equal to {le:g}",
    "multiple_of": "write a multiple of {multiple_of:g}",
    "string_too_short": "write at least {min_length} characters",
    "string_too_long": "write at most {max_length} characters",
    "string_pattern_mismatch": "write text that matches {pattern}",
    "too_short": "write at least {min_length} items",
    "too_long": "write at most {max_length} items",
}
"""By pydantic's name of what is wrong."""
_KINDS = {
    "string": "write text",
    "int": "write a whole number",
    "float": "write a number",
    "finite": "write a finite number",
    "bool": "write true or false",
    "dict": "write a mapping",
    "mapping": "write a mapping",
    "model": "write a mapping",
    "dataclass": "write a mapping",
    "list": "write a list",
    "tuple": "write a list",
    "frozen": "write a list",
    "set": "write a list",
    "datetime": "write a time such as 2026-11-21T08:00:00Z",
    "none": "leave it out",
}
"""By the first word of its other names, which is the kind of value that it expects."""


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif "-" not in step and "[" not in step:  # the names of union branches are no fields
            path += f".{step}" if path else step
    return path
