"""Which policy rules over which nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ballast.api import BalancingPolicy
from ballast.controller.survey import Read
from ballast.kube.nodes import NodeFacts
from ballast.model import ConditionReason
from ballast.model.from_api import defect


@dataclass(frozen=True, slots=True)
class Pools:
    """Nodes by policy name. Pools must not overlap: of two that do, the younger policy is `stalled`, with why."""

    nodes: Mapping[str, frozenset[str]]
    stalled: Mapping[str, str]


def pools_of(policies: Sequence[Read[BalancingPolicy]], nodes: Sequence[NodeFacts]) -> Pools:
    """`policies`: the oldest first."""
    owned: dict[str, frozenset[str]] = {}
    stalled: dict[str, str] = {}
    for read in policies:
        policy = read.resource
        name = policy.metadata.name
        mine = frozenset(node.name for node in nodes if policy.spec.node_selector.matches(node.labels))
        clash = next((other for other, theirs in owned.items() if theirs & mine), None)
        if clash is None:
            owned[name] = mine
        else:
            shared = sorted(owned[clash] & mine)
            stalled[name] = (
                f"its nodes overlap with those of the older policy {clash} ({', '.join(shared[:3])}); "
                "change spec.nodeSelector of one of them"
            )
    return Pools(owned, stalled)


class Blocked(NamedTuple):
    """As the policy's condition has it."""

    reason: ConditionReason
    message: str


def blocked(policy: BalancingPolicy, pools: Pools) -> Blocked | None:
    """None where a pass over the policy's pool makes sense."""
    overlap = pools.stalled.get(policy.metadata.name)
    if overlap is not None:
        return Blocked(ConditionReason.POOLS_OVERLAP, overlap)
    wrong = defect(policy)
    return None if wrong is None else Blocked(ConditionReason.INVALID_SPEC, str(wrong))
