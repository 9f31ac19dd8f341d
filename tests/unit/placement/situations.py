"""A pool and a crew of one topology, as a pass finds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ballast.model import Executor, Memory, Node, Phase, PlacementPolicy, SheddingPolicy
from ballast.placement.admission import Admission
from ballast.placement.crew import Crew, crews
from ballast.placement.grid import grid
from ballast.placement.heat import would_be_unloaded
from ballast.placement.outlook import Outlook, Pool, outlook
from ballast.placement.room import room
from tests.builders import a_policy, a_snapshot


def situation(
    *executors: Executor,
    nodes: tuple[Node, ...],
    policy: PlacementPolicy | None = None,
    scores: Mapping[str, float] | None = None,
    memory: Memory | None = None,
    **changes: Any,
) -> tuple[Pool, Crew]:
    """Of the gated executors, with the others around them; all of one topology."""
    waiting = [executor for executor in executors if executor.phase is Phase.GATED]
    snapshot = a_snapshot(*nodes, executors=executors, **changes)
    rules = a_policy(placement=policy or PlacementPolicy(), shedding=SheddingPolicy())
    places = grid(nodes, rules.levels)
    admission = Admission(places.nodes)
    space = room(snapshot, places, gated=waiting, scores=scores or {}, reserved={})
    pool = Pool(places, space, admission, rules.placement, would_be_unloaded(space.scores, rules.shedding))
    return pool, next(crews(snapshot, places, memory or Memory(), gated=waiting, bound={}, sticky=True, loads={}))


def the_outlook(*executors: Executor, tier: int = 0, **changes: Any) -> Outlook:
    """Of all groups of the crew."""
    pool, crew = situation(*executors, **changes)
    return outlook(pool, crew, {index: len(group.executors) for index, group in enumerate(crew.groups)}, tier)
