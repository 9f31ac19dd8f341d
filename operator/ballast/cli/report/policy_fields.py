"""What a policy's profile resolves to: every field with its value, and where the value comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from rich.console import RenderableType
from rich.text import Text

from ballast.api import BalancingPolicy
from ballast.api.meta import written
from ballast.api.policy import PolicySpec
from ballast.api.profile import Budget, Profiled, text
from ballast.cli.access import Access
from ballast.cli.output import heading, table
from ballast.errors import BallastError
from ballast.simulation.policies import in_file


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

    Modes are those that the owner wrote, also while the policy is stopped: they are what `ballast start` starts again.
    The API server stores defaults next to what the user wrote, so a value that equals the default counts as one.
    """
    return list(_fields(spec.as_written(), PolicySpec(), ""))


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


class UnknownPolicyError(BallastError):
    """Neither the cluster nor the file has a policy of that name."""


def policy_named(name: str, file: Path | None, access: Access) -> BalancingPolicy:
    """The file's policy; without a file, the cluster's. Raises UnknownPolicyError with what to do."""
    if file is not None:
        found = {raw["metadata"]["name"]: raw for raw in in_file(file, option="--filename")}
        if name not in found:
            raise UnknownPolicyError(f"{file} has no BalancingPolicy {name}; it has: {', '.join(sorted(found))}")
        return BalancingPolicy.parse(found[name])
    from ballast.controller.cluster_objects import NotInstalledError  # noqa: PLC0415 -- slow to load, unused for a file
    from ballast.kube import kinds  # noqa: PLC0415 -- as above
    from ballast.kube.errors import NotFound  # noqa: PLC0415 -- as above

    client = access.client(access.connect())
    try:
        return BalancingPolicy.parse(client.get(kinds.BALANCING_POLICY, name))
    except NotFound as error:
        if error.of_kind:
            raise NotInstalledError(kinds.BALANCING_POLICY.plural) from None
        raise UnknownPolicyError(f"there is no BalancingPolicy {name}: list them with kubectl get bpol") from None
    finally:
        client.close()
