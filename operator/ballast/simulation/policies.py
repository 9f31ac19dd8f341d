"""Policies to run a scenario under: a user's file, or strategies by their names on top of what the scenario says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from ballast.api import BalancingPolicy
from ballast.api.policy_placement import PlacementStrategy
from ballast.api.policy_shedding import LoadUnit, SheddingStrategy
from ballast.api.version import API_VERSION
from ballast.errors import InvalidField, InvalidResource
from ballast.model import MovesMode, PlacementMode, Policy
from ballast.model.from_api import policy_from
from ballast.planner.defects import defect
from ballast.simulation.scenario import Scenario, documents

FILES = (".yaml", ".yml", ".json")
"""What tells a policy's file from a strategy's name."""


def in_file(path: Path) -> list[dict[str, Any]]:
    """The BalancingPolicies of a file, one or several, as they stand there. Raises InvalidResource or InvalidField."""
    found = documents(path, field="policy", remedy="name a file or a strategy")
    for raw in found or [None]:
        if not isinstance(raw, dict) or raw.get("kind") != "BalancingPolicy":
            raise InvalidField(
                "policy", str(path), "name a file with BalancingPolicies and nothing else, or a strategy"
            )
        _sound(raw)
    return found


def by_name(name: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    """`SHEDDING`, `SHEDDING/UNIT`, or either with `+PLACEMENT`, such as `AvgShedder/Traffic+RoundRobin`.

    `figures`: fields of a spec that differ from the defaults. Everything is enforced. Raises InvalidField.
    """
    first, _, placement = name.partition("+")
    shedding, _, unit = first.partition("/")
    spec = dict(figures)
    spec["shedding"] = _shedding(_block(spec, "shedding"), shedding, unit)
    spec["placement"] = _placement(_block(spec, "placement"), placement)
    spec["moves"] = {**_block(spec, "moves"), "mode": "Enforce"}
    return _document(re.sub("[^a-z0-9]+", "-", name.lower()), spec)


def from_name(name: str, scenario: Scenario) -> Policy:
    """The same, with the figures of the scenario's `policy`. Raises InvalidField or InvalidResource."""
    found = _sound(by_name(name, scenario.spec.policy))
    return replace(policy_in(found, scenario), name=name)


def _sound(raw: dict[str, Any]) -> BalancingPolicy:
    """One that can be followed. Raises InvalidResource."""
    found = BalancingPolicy.parse(raw)
    wrong = defect(found)
    if wrong is not None:
        raise InvalidResource(f"BalancingPolicy {found.metadata.name}", [wrong])
    return found


def policy_in(resource: BalancingPolicy, scenario: Scenario) -> Policy:
    """A policy whose pool is the scenario's nodes."""
    hosts = {name: {"kubernetes.io/hostname": name} for each in scenario.spec.nodes for name in each.names}
    return policy_from(resource, hosts)


def enforced(policy: Policy) -> Policy:
    """The policy as if it were trusted: what it only recommends, or asks approval for, is done; nothing disabled is."""
    placement, moves = policy.placement, policy.moves
    if placement.mode is not PlacementMode.DISABLED:
        placement = replace(placement, mode=PlacementMode.ENFORCE)
    if moves.mode is not MovesMode.DISABLED:
        moves = replace(moves, mode=MovesMode.ENFORCE)
    return replace(policy, placement=placement, moves=moves)


def own_block_only(spec: Mapping[str, Any], strategy: str, words: type[StrEnum]) -> dict[str, Any]:
    """`spec` without the blocks of other strategies, because a policy's own strategy reads only its own."""
    others = {block_of(word) for word in words} - {block_of(strategy)}
    return {key: value for key, value in spec.items() if key not in others}


def block_of(strategy: str) -> str:
    """The key of the strategy's own figures."""
    return strategy[0].lower() + strategy[1:]


def _document(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "BalancingPolicy",
        "metadata": {"name": name},
        "spec": {"nodeSelector": {}, **spec},
    }


def _block(spec: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = spec.get(key, {})
    return dict(found) if isinstance(found, Mapping) else {}


def _shedding(spec: dict[str, Any], strategy: str, unit: str) -> dict[str, Any]:
    spec["strategy"] = _known("shedding.strategy", strategy, SheddingStrategy)
    if unit:
        if strategy != SheddingStrategy.AVG_SHEDDER:
            raise InvalidField("shedding.strategy", f"{strategy}/{unit}", "only AvgShedder has units")
        chosen = _known("shedding.avgShedder.unit", unit, LoadUnit)
        spec["avgShedder"] = {**_block(spec, "avgShedder"), "unit": chosen}
    return own_block_only(spec, strategy, SheddingStrategy)


def _placement(spec: dict[str, Any], strategy: str) -> dict[str, Any]:
    spec["mode"] = "Enforce"
    if strategy:
        spec["strategy"] = _known("placement.strategy", strategy, PlacementStrategy)
    return own_block_only(spec, strategy or spec.get("strategy", "Proximity"), PlacementStrategy)


def _known(field: str, value: str, words: type[StrEnum]) -> str:
    if value not in set(words):
        raise InvalidField(field, value, f"choose one of {', '.join(words)}, or name a policy's file")
    return value
