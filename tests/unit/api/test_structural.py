from __future__ import annotations

from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field

from ballast.api.crd import KINDS, schema
from ballast.api.meta import Model, StatusModel, nested
from ballast.api.names import DnsLabel
from ballast.api.rule import ATOMIC, Rule, map_by
from ballast.api.structural import NotStructural, structural

FORBIDDEN = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "title", "const", "propertyNames", "uniqueItems"}


class Inner(Model):
    """An inner block."""

    size: Annotated[int, Field(ge=0, le=9)] = 3
    """How large."""


class Outer(Model):
    """An outer block."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(cel="has(self.name)", message="name it", holds=lambda outer: bool(outer.name), path=".name"),
    )

    name: DnsLabel | None = None
    """What it is
    called.
    """
    inner: Inner = nested(Inner)
    """What it holds."""
    share: Annotated[float, Field(gt=0, lt=1)] | None = None
    """How much."""
    items: Annotated[tuple[Inner, ...], Field(max_length=5), map_by("size")] = ()
    """What is in it."""


def every_node(node: Any) -> list[dict[str, Any]]:
    children = [*node.get("properties", {}).values(), *(node[name] for name in ("items",) if name in node)]
    if isinstance(node.get("additionalProperties"), dict):
        children.append(node["additionalProperties"])
    return [node, *(found for child in children for found in every_node(child))]


def test_an_optional_field_is_one_that_may_be_absent() -> None:
    name = structural(Outer)["properties"]["name"]

    assert (name["type"], "default" in name, "nullable" in name) == ("string", False, False)


def test_references_are_replaced_and_the_field_keeps_its_own_description() -> None:
    inner = structural(Outer)["properties"]["inner"]

    assert inner["description"] == "What it holds."
    assert inner["default"] == {"size": 3}
    assert inner["properties"]["size"] == {
        "description": "How large.",
        "type": "integer",
        "default": 3,
        "maximum": 9,
        "minimum": 0,
    }


def test_a_description_is_one_line_per_paragraph() -> None:
    assert structural(Outer)["properties"]["name"]["description"] == "What it is called."


def test_exclusive_bounds_are_written_in_the_older_dialect() -> None:
    share = structural(Outer)["properties"]["share"]

    assert (share["minimum"], share["exclusiveMinimum"]) == (0, True)
    assert (share["maximum"], share["exclusiveMaximum"]) == (1, True)


def test_rules_are_written_with_their_message_and_field() -> None:
    expected = [{"rule": "has(self.name)", "message": "name it", "fieldPath": ".name"}]

    assert structural(Outer)["x-kubernetes-validations"] == expected


def test_a_list_says_how_it_merges_and_has_no_empty_default() -> None:
    items = structural(Outer)["properties"]["items"]

    assert (items["x-kubernetes-list-type"], items["x-kubernetes-list-map-keys"]) == ("map", ["size"])
    assert "default" not in items


def test_a_status_has_no_defaults() -> None:
    class Status(StatusModel):
        """A status."""

        count: Annotated[int, Field(ge=0)] = 0
        """How many."""

    assert "default" not in structural(Status)["properties"]["count"]


def bad_models() -> list[tuple[type[Model], str]]:
    class Unbounded(Model):
        name: str
        """A name."""

    class UnboundedMap(Model):
        labels: dict[str, DnsLabel]
        """Labels."""

    class UnboundedList(Model):
        names: Annotated[tuple[DnsLabel, ...], ATOMIC]
        """Names."""

    class NoListType(Model):
        names: Annotated[tuple[DnsLabel, ...], Field(max_length=3)]
        """Names."""

    class NoMinimum(Model):
        count: int
        """A count."""

    class Union(Model):
        either: Inner | DnsLabel
        """One or the other."""

    class Undescribed(Model):
        count: Annotated[int, Field(ge=0)]

    class Untyped(Model):
        anything: Any
        """Whatever."""

    return [
        (Unbounded, "has no maxLength"),
        (UnboundedMap, "has no maxProperties"),
        (UnboundedList, "has no maxItems"),
        (NoListType, "does not say how it merges"),
        (NoMinimum, "has no minimum"),
        (Union, "is a union"),
        (Undescribed, "has no description"),
        (Untyped, "has no type"),
    ]


@pytest.mark.parametrize(("model", "problem"), bad_models(), ids=lambda value: getattr(value, "__name__", None))
def test_what_the_server_would_refuse_is_found_first(model: type[Model], problem: str) -> None:
    with pytest.raises(NotStructural, match=problem):
        structural(model)


class Nest(Model):
    """A block that holds its own kind."""

    nest: Nest | None = None
    """Another."""


def test_a_model_that_contains_itself_is_refused() -> None:
    with pytest.raises(NotStructural, match="contains itself"):
        structural(Nest)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_our_kinds_use_nothing_that_a_crd_forbids(kind: Any) -> None:
    assert [set(node) & FORBIDDEN for node in every_node(schema(kind)) if set(node) & FORBIDDEN] == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_part_of_our_kinds_keeps_unknown_fields(kind: Any) -> None:
    assert not any("x-kubernetes-preserve-unknown-fields" in node for node in every_node(schema(kind)))
