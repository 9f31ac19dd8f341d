"""Which policy rules over which nodes, and which executors it may place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ballast.api import BalancingPolicy
from ballast.controller.survey import Read
from ballast.kube.nodes import NodeFacts
from ballast.model import Executor, Phase


@dataclass(frozen=True, slots=True)
class Territories:
    """Nodes by policy name. Pools must not overlap: of two that do, the younger policy is `stalled`, with why."""

    nodes: Mapping[str, frozenset[str]]
    stalled: Mapping[str, str]


def territories(policies: Sequence[Read[BalancingPolicy]], nodes: Sequence[NodeFacts]) -> Territories:
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
    return Territories(owned, stalled)


def for_another(
    executor: Executor, policy: str, pools: Mapping[str, frozenset[str]], nodes: Mapping[str, NodeFacts]
) -> bool:
    """Whether a gated executor fits no node of this policy's pool, but some of another's: that one places it."""
    if executor.phase is not Phase.GATED or len(pools) < 2:
        return False

    def admits(names: frozenset[str]) -> bool:
        return any(executor.constraints.selects(nodes[name].labels, name) for name in names)

    return not admits(pools[policy]) and any(admits(names) for other, names in pools.items() if other != policy)
