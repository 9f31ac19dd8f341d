"""The pool as a pass saw it, for status and for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import hypot, sqrt

from ballast.model import LoadUnit, Memory, NodeHits, NodeView, Phase, Policy, PoolView, Snapshot
from ballast.moves.score import Scores
from ballast.planner.strategy_state import USAGE, restored
from ballast.planner.traffic_leveling import TrafficState
from ballast.shedding.avg_shedder_usage import UsageMemory
from ballast.shedding.strategies import hit_counts

# How often in a row nodes were part of too wide a gap, as the policy's strategy remembers it.


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


Pair = tuple[str, str, float]
"""Hot node, cold node, difference in points."""


def pool_view(
    snapshot: Snapshot,
    *,
    hits: Mapping[str, NodeHits],
    measured: Scores,
    projected: Mapping[str, float],
    pairs: Sequence[Pair],
    low_threshold: float,
) -> PoolView:
    """Figures over the nodes with a score; `balanced` is None while no two of them have one."""
    executors = Counter(e.node for e in snapshot.executors if e.phase in (Phase.RUNNING, Phase.PENDING))
    partner = _partners(pairs)
    nodes = tuple(
        NodeView(
            name=node.name,
            location=node.location,
            score=measured.by_node.get(node.name),
            projected=projected.get(node.name),
            executors=executors.get(node.name, 0),
            pair=partner.get(node.name),
            low_hits=hits.get(node.name, _NO_HITS).low,
            high_hits=hits.get(node.name, _NO_HITS).high,
        )
        for node in snapshot.nodes
    )
    return replace(_with_figures(nodes, measured.by_node, pairs, low_threshold), dropped=measured.dropped)


_NO_HITS = NodeHits()


def _partners(pairs: Sequence[Pair]) -> dict[str, str]:
    partner: dict[str, str] = {}
    for hot, cold, _ in pairs:
        partner[hot], partner[cold] = cold, hot
    return partner


def _with_figures(
    nodes: tuple[NodeView, ...], measured: Mapping[str, float], pairs: Sequence[Pair], low_threshold: float
) -> PoolView:
    ranked = sorted(measured.items(), key=lambda item: (item[1], item[0]))
    count = len(ranked)
    mean = sum(score for _, score in ranked) / count if count else None
    deviation = hypot(*(score - mean for _, score in ranked)) / sqrt(count) if mean is not None else None
    gap = ranked[-1][1] - ranked[0][1] if count > 1 else None
    return PoolView(
        nodes=nodes,
        total=len(nodes),
        eligible=count,
        stale=len(nodes) - count,
        mean=mean,
        std_dev=deviation,
        hottest=ranked[-1][0] if count else None,
        coldest=ranked[0][0] if count else None,
        pairs=tuple(pairs),
        balanced=None if gap is None else gap < low_threshold,
    )
