"""What a policy's profile resolves to: every field with its value, and where the value comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import yaml
from pydantic import BaseModel
from rich.console import RenderableType
from rich.text import Text

from ballast.api import BalancingPolicy
from ballast.api.budget import Budget
from ballast.api.meta import written
from ballast.api.policy import PolicySpec
from ballast.api.profile import Profiled, text
from ballast.cli.output import heading, table


class Origin(StrEnum):
    """Where a field's value comes from."""

    SPEC = "spec"
    PROFILE = "profile"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class FieldValue:
    field: str
    value: Any
    """As in YAML."""
    shown: str
    origin: Origin


def field_values(spec: PolicySpec) -> list[FieldValue]:
    """Every field that has a value, in the order of the reference.

    The API server stores defaults next to what the user wrote, so a value that equals the default counts as one.
    """
    return list(_fields(spec, PolicySpec(), ""))


def _fields(block: BaseModel, usual: BaseModel | None, path: str) -> Iterator[FieldValue]:
    left = set(block.left_to_profile()) if isinstance(block, Profiled) else set()
    for name, info in type(block).model_fields.items():
        value = getattr(block, name)
        default = getattr(usual, name, None)
        here = f"{path}.{info.alias or name}".removeprefix(".")
        if isinstance(value, BaseModel) and not _is_selector(value):
            yield from _fields(value, default if isinstance(default, BaseModel) else None, here)
        elif value is not None:
            yield FieldValue(here, written(value), _shown(value), _origin(name, block, left, same=value == default))


def _origin(name: str, block: BaseModel, left: set[str], *, same: bool) -> Origin:
    if name in left:
        return Origin.PROFILE
    if isinstance(block, Profiled) and name in type(block).settings():
        return Origin.SPEC
    return Origin.DEFAULT if same else Origin.SPEC


def _is_selector(value: BaseModel) -> bool:
    return "match_labels" in type(value).model_fields


def _shown(value: Any) -> str:
    if isinstance(value, BaseModel):
        return _flow(written(value)) if any(written(value).values()) else "all"
    if isinstance(value, tuple) and not all(isinstance(each, Budget) for each in value):
        return _flow(written(value))
    return str(written(value)).lower() if isinstance(value, bool) else text(value)


def _flow(document: Any) -> str:
    return yaml.safe_dump(document, default_flow_style=True, sort_keys=False, width=10_000).strip()


def policy_document(resource: BalancingPolicy) -> dict[str, Any]:
    """For programs."""
    return {
        "policy": resource.metadata.name,
        "profile": resource.spec.profile.value,
        "fields": [
            {"field": each.field, "value": each.value, "origin": each.origin.value}
            for each in field_values(resource.spec)
        ],
    }


def policy_report(resource: BalancingPolicy) -> list[RenderableType]:
    """For people."""
    rows = [[each.field, each.origin.value, each.shown] for each in field_values(resource.spec)]
    return [
        Text.assemble("BalancingPolicy ", (resource.metadata.name, "bold"), f"  profile {resource.spec.profile}"),
        heading("Fields"),
        table(["field", "from", "value"], rows, wrap=["value"]),
    ]
