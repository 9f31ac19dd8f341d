"""A model's schema in the form that the API server demands of a CRD: structural, inlined and bounded.

Structural schemas have no references, no `type` inside unions, no null, a type for every field. That CEL rules be
cheap enough, everything that can grow must have a bound: this is checked here, before the server complains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema

from ballast.api.meta import StatusModel, written
from ballast.api.rule import LIST_TYPE
from ballast.errors import BallastError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic_core import core_schema

    from ballast.api.meta import Model

Schema = dict[str, Any]
_DROPPED = ("title", "propertyNames", "const")
_TIME = r"^[12][0-9]{3}(-[0-9]{2}){2}T([0-9]{2}:){2}[0-9]{2}(\.[0-9]{1,9})?(Z|[+-](0[0-9]|1[0-4]):[0-9]{2})$"
"""The server's own date-time takes the year 0, and offsets of days, which no datetime of Python's can be."""
_GOES_FIRST = ("description", "type", "format", "default", "enum")


class NotStructural(BallastError):  # noqa: N818 -- reads well when raised
    """A model's schema would be refused by the API server: which field, and what it lacks."""


class _Generator(GenerateJsonSchema):
    """pydantic's schema, with "absent" where pydantic has null."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> Schema:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Schema:
        if schema.get("default", ...) in (None, ()):  # an absent list says the same, and users need not see it
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def encode_default(self, dft: Any) -> Any:
        return written(dft)


def structural(model: type[Model]) -> Schema:
    """The structural schema of `model`; a status gets no defaults, since only its writer fills it.

    Raises NotStructural for a field that can't be expressed or has no bound.
    """
    raw = model.model_json_schema(schema_generator=_Generator)
    definitions = raw.pop("$defs", {})
    schema = _convert(raw, definitions, ())
    if issubclass(model, StatusModel):
        schema = _without_defaults(schema)
    for path, problem in _problems(schema, model.__name__):
        raise NotStructural(f"{path}: {problem}")
    return schema


def _convert(node: Mapping[str, Any], definitions: Mapping[str, Any], open_: tuple[str, ...]) -> Schema:
    """`node` with references replaced by what they refer to, and every keyword in the server's dialect."""
    node = _inline(node, definitions, open_)
    open_ = (*open_, *node.pop("$inlined", ()))
    for name in _DROPPED:
        node.pop(name, None)
    if node.get("additionalProperties") is False:
        del node["additionalProperties"]
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if exclusive in node:
            node |= {limit: node[exclusive], exclusive: True}
    if node.get("format") == "date-time":
        node["pattern"] = _TIME
    if "description" in node:
        node["description"] = _plain(node["description"])
    if "properties" in node:
        node["properties"] = {name: _convert(child, definitions, open_) for name, child in node["properties"].items()}
    for name in ("items", "additionalProperties"):
        if name in node:
            node[name] = _convert(node[name], definitions, open_)
            node[name].pop("description", None)
    return {name: node[name] for name in sorted(node, key=_rank)}


def _inline(node: Mapping[str, Any], definitions: Mapping[str, Any], open_: tuple[str, ...]) -> Schema:
    """Replace a reference; what stands next to it (the field's own description and default) wins."""
    if "$ref" not in node:
        return dict(node)
    name = node["$ref"].removeprefix("#/$defs/")
    if name in open_:
        raise NotStructural(f"{name}: contains itself, which a CRD can't express")
    siblings = {key: value for key, value in node.items() if key != "$ref"}
    return {**definitions[name], **siblings, "$inlined": (name,)}


def _without_defaults(node: Schema) -> Schema:
    """`node` without defaults at any depth; a property that is called default stays."""
    kept = {name: child for name, child in node.items() if name != "default"}
    if "properties" in kept:
        kept["properties"] = {name: _without_defaults(child) for name, child in kept["properties"].items()}
    for name in ("items", "additionalProperties"):
        if name in kept:
            kept[name] = _without_defaults(kept[name])
    return kept


def _rank(name: str) -> tuple[int, str]:
    return (_GOES_FIRST.index(name) if name in _GOES_FIRST else len(_GOES_FIRST), name)


def _plain(text: str) -> str:
    """Paragraphs stay, line breaks within them go."""
    return "\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _problems(node: Schema, path: str) -> Iterator[tuple[str, str]]:
    problem = _problem(node)
    if problem:
        yield path, problem
    for name, child in node.get("properties", {}).items():
        if not child.get("description"):
            yield f"{path}.{name}", "has no description: give the attribute a docstring"
        yield from _problems(child, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in node:
            yield from _problems(node[name], f"{path}.{name}")


_BOUNDS = {"array": "maxItems", "object": "maxProperties", "string": "maxLength"}
_UNIONS = ("anyOf", "oneOf", "allOf", "not", "prefixItems", "uniqueItems")


def _problem(node: Schema) -> str | None:
    kind = node.get("type")
    if any(name in node for name in _UNIONS):
        return "is a union or tuple, which a CRD can't express: use one field per branch"
    if kind is None:
        return None if node.get("x-kubernetes-int-or-string") else "has no type"
    if kind == "array" and LIST_TYPE not in node:
        return "does not say how it merges: annotate it with ATOMIC, SET or map_by"
    return _missing_bound(node, kind)


def _missing_bound(node: Schema, kind: str) -> str | None:
    bound = _BOUNDS.get(kind)
    if kind in {"integer", "number"} and "minimum" not in node:
        return "has no minimum"
    if bound and not any(name in node for name in (bound, "properties", "enum", "format")):
        return f"has no {bound}"
    return None
