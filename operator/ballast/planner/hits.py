"""How often in a row nodes were part of too wide a gap, as the policy's strategy remembers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ballast.model import LoadUnit, Memory, NodeHits, Policy
from ballast.planner.by_traffic import TrafficState
from ballast.planner.shelf import USAGE, restored
from ballast.shedding.avg_shedder_usage import UsageMemory
from ballast.shedding.strategies import hit_counts


def node_hits(memory: Memory, policy: Policy, nodes: Iterable[str]) -> Mapping[str, NodeHits]:
    """Those of `nodes` that have any. Only AvgShedder counts them node by node."""
    if policy.shedding.strategy != "AvgShedder":
        return {}
    known = set(nodes)
    if policy.shedding.avg_shedder.unit is LoadUnit.USAGE:
        streaks = (restored(memory, USAGE, UsageMemory) or UsageMemory()).streaks
        return {name: NodeHits(each.low, each.high, each.last_at_seconds) for name, each in streaks if name in known}
    state = restored(memory, policy.shedding.strategy, TrafficState) or TrafficState()
    counts = hit_counts(state.text, known).by_node
    return {name: NodeHits(each.low, each.high, state.at) for name, each in counts}
