"""Resource-aware scheduling: executors in the order of their needs, each to the first node in order that holds it.

Source: Storm's `DefaultResourceAwareStrategy` and `GenericResourceAwareStrategy` (which differ in nothing but the
name), over `BaseResourceAwareStrategy`. Where the first attempt leaves executors over, other orders are tried, and
then a search that takes steps back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np

from ballast.placement.executor_order import ComponentGraph, Id, by_connection_count, by_proximity
from ballast.placement.resource_aware import NodeRule, able_in_order, node_order, with_favorites
from tests.reference.storm.process_packing import ROUNDING, Demand, Packing, ProcessRules, Schedule, Site


@dataclass(frozen=True, slots=True)
class Search(Generic[Id]):
    """One problem: who, where, and by which rules."""

    site: Site
    demands: Mapping[Id, Demand]
    rules: ProcessRules
    rule: NodeRule
    most_states: int

    def packing(self) -> Packing[Id]:
        return Packing(self.site, self.demands, self.rules)

    def nodes_for(self, executor: Id, packing: Packing[Id]) -> list[int]:
        requested = np.asarray(self.demands[executor].amounts > 0)
        order = node_order(self.site.layout, packing.room, requested=requested, rule=self.rule)
        return with_favorites(order, favored=self.site.favored, unfavored=self.site.unfavored)

    def able_nodes(self, executor: Id, packing: Packing[Id]) -> Iterator[int]:
        """The same nodes as far as they have room, worked out as they are asked for."""
        site, able = self.site, packing.wide_enough(executor)
        unfavored = [node for node in site.unfavored if node not in site.favored]
        others = able.copy()
        others[[*site.favored, *unfavored]] = False
        yield from (node for node in site.favored if able[node])
        requested = np.asarray(self.demands[executor].amounts > 0)
        yield from able_in_order(site.layout, packing.room, others, requested=requested, rule=self.rule)
        yield from (node for node in unfavored if able[node])


def resource_aware(
    graph: ComponentGraph[Id],
    demands: Mapping[Id, Demand],
    site: Site,
    *,
    rules: ProcessRules | None = None,
    proximity: bool = False,
    rule: NodeRule = NodeRule.COMMON,
    most_states: int = 2_000,
) -> Schedule[Id]:
    """Places the graph's waiting executors in new processes.

    `proximity` chooses the order of executors by proximity, else it is by connection count. `most_states` bounds the
    steps of the search once no attempt without steps back has placed everyone. If that fails as well, `missing` of
    the result holds those who found no place in the attempt that left the fewest over.
    """
    search = Search(site, demands, rules or ProcessRules(), rule, most_states)
    orders: list[list[Id]] = []
    attempts = []
    for order in _orders(graph, search, proximity=proximity):
        orders.append(order)
        attempts.append(in_one_go(order, search))
        if not attempts[-1].missing:
            return attempts[-1]
    found = (with_steps_back(order, search) for order in (orders[0], orders[-1]) if may_fit(order, search))
    return next((schedule for schedule in found if schedule), min(attempts, key=lambda each: len(each.missing)))


def _orders(graph: ComponentGraph[Id], search: Search[Id], *, proximity: bool) -> Iterator[list[Id]]:
    first, second = (by_proximity, by_connection_count) if proximity else (by_connection_count, by_proximity)
    yield (preferred := first(graph))
    yield second(graph)
    yield largest_first(preferred, search)


def may_fit(executors: Sequence[Id], search: Search[Id]) -> bool:
    """False when they ask for more than there is of anything, so that no search can help."""
    asked = sum(search.demands[executor].amounts for executor in executors)
    return bool((asked <= search.site.room.free.sum(axis=0) + ROUNDING * len(executors)).all())


def largest_first(order: Sequence[Id], search: Search[Id]) -> list[Id]:
    """By the greatest share of what is free of any resource, and otherwise in the given order."""
    free = search.site.room.free.sum(axis=0)

    def share(executor: Id) -> float:
        amounts = search.demands[executor].amounts
        return float(np.divide(amounts, free, out=np.zeros_like(amounts), where=free > 0).max(initial=0.0))

    return sorted(order, key=share, reverse=True)


def in_one_go(order: Sequence[Id], search: Search[Id]) -> Schedule[Id]:
    """Each in turn to the first way there is; who finds none is left over."""
    packing, missing = search.packing(), []
    for executor in order:
        way = next(packing.ways_on(executor, search.able_nodes(executor, packing)), None)
        if way is None:
            missing.append(executor)
        else:
            packing.put(executor, *way)
    return packing.schedule(missing)


def with_steps_back(order: Sequence[Id], search: Search[Id]) -> Schedule[Id] | None:
    """Depth-first over all ways of each in turn; None when there is none within the bound on states."""
    packing = search.packing()
    taken: list[tuple[int, int]] = []
    open_ways: list[Iterator[tuple[int, int]]] = []
    for _ in range(search.most_states):
        if len(taken) == len(order):
            return packing.schedule()
        executor = order[len(taken)]
        if len(open_ways) == len(taken):
            open_ways.append(packing.ways_on(executor, search.nodes_for(executor, packing)))
        way = next(open_ways[-1], None)
        if way is not None:
            packing.put(executor, *way)
            taken.append(way)
        elif not taken:
            return None
        else:
            open_ways.pop()
            packing.take_back(order[len(taken) - 1], *taken.pop())
    return None
