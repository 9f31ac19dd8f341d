"""A pool and a workload of one topology, as a pass finds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ballast.model import Executor, Memory, Node, Phase, PlacementPolicy, SheddingPolicy
from ballast.placement.admission import Admission
from ballast.placement.node_locations import node_locations
from ballast.placement.placement_view import PlacementView, Pool, placement_view, would_be_unloaded
from ballast.placement.room import room
from ballast.placement.workload import TopologyWorkload, workloads
from tests.builders import a_policy, a_snapshot


def situation(
    *executors: Executor,
    nodes: tuple[Node, ...],
    policy: PlacementPolicy | None = None,
    scores: Mapping[str, float] | None = None,
    memory: Memory | None = None,
    **changes: Any,
) -> tuple[Pool, TopologyWorkload]:
    """Of the gated executors, with the others around them; all of one topology."""
    waiting = [executor for executor in executors if executor.phase is Phase.GATED]
    snapshot = a_snapshot(*nodes, executors=executors, **changes)
    rules = a_policy(placement=policy or PlacementPolicy(), shedding=SheddingPolicy())
    places = node_locations(nodes, rules.levels)
    admission = Admission(places.nodes)
    space = room(snapshot, places, gated=waiting, scores=scores or {}, reserved={})
    pool = Pool(places, space, admission, rules.placement, would_be_unloaded(space.scores, rules.shedding))
    return pool, next(workloads(snapshot, places, memory or Memory(), gated=waiting, bound={}, sticky=True, loads={}))


def the_view(*executors: Executor, tier: int = 0, **changes: Any) -> PlacementView:
    """Of all groups of the workload."""
    pool, workload = situation(*executors, **changes)
    return placement_view(
        pool, workload, {index: len(group.executors) for index, group in enumerate(workload.groups)}, tier
    )
