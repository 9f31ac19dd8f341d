"""Round robin: each component's executors one node after the other, so that it spreads as far as it can.

Source: Storm's `RoundRobinResourceAwareStrategy`, which however leaves out every node that runs anything else, gives
up on an executor that only nodes already passed could hold, and never packs what can't be spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ballast.placement.executor_order import ComponentGraph, Id, by_connection_count, by_proximity
from ballast.placement.resource_aware import NodeRule, node_order, with_favorites
from tests.reference.storm.process_packing import Demand, Packing, ProcessRules, Schedule, Site
from tests.reference.storm.resource_aware import resource_aware


def round_robin(
    graph: ComponentGraph[Id],
    demands: Mapping[Id, Demand],
    site: Site,
    *,
    rules: ProcessRules | None = None,
    proximity: bool = False,
    most_states: int = 2_000,
) -> Schedule[Id]:
    """Places the graph's waiting executors in new processes; the arguments mean what they do in `resource_aware`.

    The nodes are ordered once, for nobody in particular. If spreading leaves anyone over, the whole set is packed by
    `resource_aware` instead, when that places more of it.
    """
    rules = rules or ProcessRules()
    order = (by_proximity if proximity else by_connection_count)(graph)
    spread = _spread(order, _nodes(site), demands, Packing(site, demands, rules))
    if not spread.missing:
        return spread
    packed = resource_aware(graph, demands, site, rules=rules, proximity=proximity, most_states=most_states)
    return min(spread, packed, key=lambda each: len(each.missing))


def _nodes(site: Site) -> list[int]:
    order = node_order(site.layout, site.room, requested=None, rule=NodeRule.COMMON)
    return with_favorites(order, favored=site.favored, unfavored=site.unfavored)


def _spread(
    order: Sequence[Id], nodes: Sequence[int], demands: Mapping[Id, Demand], packing: Packing[Id]
) -> Schedule[Id]:
    """Each to the next node that has a way for it, from the first node again with each change of component."""
    missing = []
    component, start = None, 0
    for executor in order:
        if demands[executor].component != component:
            component, start = demands[executor].component, 0
        turn = [*nodes[start:], *nodes[:start]]
        way = next(packing.ways_on(executor, turn), None)
        if way is None:
            missing.append(executor)
        else:
            packing.put(executor, *way)
            start = (nodes.index(way[0]) + 1) % len(nodes)
    return packing.schedule(missing)
