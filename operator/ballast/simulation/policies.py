"""Policies to run a scenario under: a user's file, or strategies by their names on top of what the scenario says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from ballast.api import BalancingPolicy
from ballast.api.policy_placement import PlacementStrategy
from ballast.api.policy_shedding import LoadUnit, SheddingStrategy
from ballast.errors import InvalidField
from ballast.model import MovesMode, PlacementMode, Policy
from ballast.model.from_api import policy_from
from ballast.simulation.document import document
from ballast.simulation.scenario import Scenario


def from_file(path: Path, scenario: Scenario) -> Policy:
    """A BalancingPolicy's file; the scenario's nodes are its pool. Raises InvalidResource or InvalidField."""
    raw = document(path, field="policy", remedy="name a file or a strategy")
    if not isinstance(raw, dict) or raw.get("kind") != "BalancingPolicy":
        raise InvalidField("policy", str(path), "name a file with one BalancingPolicy in it, or a strategy")
    return _policy(BalancingPolicy.parse(raw), scenario)


def from_name(name: str, scenario: Scenario) -> Policy:
    """`SHEDDING`, `SHEDDING/UNIT`, or either with `+PLACEMENT`, such as `AvgShedder/Traffic+RoundRobin`.

    Figures are those of the scenario's `policy`, the rest as by default; everything is enforced. Raises InvalidField.
    """
    first, _, placement = name.partition("+")
    shedding, _, unit = first.partition("/")
    spec = dict(scenario.spec.policy)
    spec["shedding"] = _shedding(_block(spec, "shedding"), shedding, unit)
    spec["placement"] = _placement(_block(spec, "placement"), placement)
    spec["moves"] = {**_block(spec, "moves"), "mode": "Enforce"}
    return by_spec(spec, scenario, name=name)


def by_spec(spec: Mapping[str, Any], scenario: Scenario, *, name: str) -> Policy:
    """The policy of a spec without a node selector. Raises InvalidResource."""
    raw = {"metadata": {"name": name}, "spec": {**spec, "nodeSelector": {}}}
    return _policy(BalancingPolicy.parse(raw), scenario)


def enforced(policy: Policy) -> Policy:
    """The policy as if it were trusted: what it only recommends, or asks approval for, is done. Off stays off."""
    placement, moves = policy.placement, policy.moves
    if placement.mode is not PlacementMode.OFF:
        placement = replace(placement, mode=PlacementMode.ENFORCE)
    if moves.mode is not MovesMode.OFF:
        moves = replace(moves, mode=MovesMode.ENFORCE)
    return replace(policy, placement=placement, moves=moves)


def _policy(resource: BalancingPolicy, scenario: Scenario) -> Policy:
    hosts = {name: {"kubernetes.io/hostname": name} for each in scenario.spec.nodes for name in each.names}
    return policy_from(resource, hosts)


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
    return _own_block_only(spec, strategy, SheddingStrategy)


def _placement(spec: dict[str, Any], strategy: str) -> dict[str, Any]:
    spec["mode"] = "Enforce"
    if strategy:
        spec["strategy"] = _known("placement.strategy", strategy, PlacementStrategy)
    return _own_block_only(spec, strategy or spec.get("strategy", "Proximity"), PlacementStrategy)


def _known(field: str, value: str, words: type[StrEnum]) -> str:
    if value not in set(words):
        raise InvalidField(field, value, f"choose one of {', '.join(words)}, or name a policy's file")
    return value


def _own_block_only(spec: dict[str, Any], strategy: str, words: type[StrEnum]) -> dict[str, Any]:
    """A scenario may give figures for several strategies; a policy has those of its own only."""
    others = {_key(word) for word in words} - {_key(strategy)}
    return {key: value for key, value in spec.items() if key not in others}


def _key(strategy: str) -> str:
    return strategy[0].lower() + strategy[1:]
