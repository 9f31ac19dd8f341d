"""What no layout of a set can cost less than: a layout that costs no more needs no further search."""

from __future__ import annotations

from math import inf

import numpy as np

from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.placement_view import PlacementView


def least_cost(view: PlacementView) -> float:
    """As `Layout.cost` counts it, of layouts with no executor missing. Minus infinity where nothing is known.

    Known of one group: its executors stand as closely together as the rooms of places allow at each level by itself,
    and each where it is cheapest for it, whatever the others do.
    """
    if len(view.groups) != 1 or view.apart:
        return -inf
    count, component = int(view.counts[0]), int(view.component[0])
    nodes = np.flatnonzero(view.capacity[0])
    capacity = view.capacity[0, nodes]
    if int(capacity.sum()) < count:
        return -inf
    row = int(np.searchsorted(view.involved, component))
    alone = view.pull(nodes)[component] + towards(view, view.workload.present[view.involved], nodes)[row]
    return _least_sum(alone, capacity, count) + float(view.weights[component, component]) * _least_apart(view, nodes)


def _least_sum(cost: FloatArray, capacity: IntArray, count: int) -> float:
    cheapest = np.argsort(cost, kind="stable")
    return float(cost[cheapest] @ _filled(capacity[cheapest], count))


def _least_apart(view: PlacementView, nodes: IntArray) -> float:
    """Σ of distances over pairs of executors, if each level had to do with itself alone."""
    locations, count = view.pool.locations, int(view.counts[0])
    result = 0.0
    for level, step in enumerate(locations.steps.tolist()):
        places, size = locations.codes[level][nodes], locations.sizes[level]
        holds = np.bincount(places, weights=view.capacity[0, nodes], minlength=size).astype(np.int64)
        if level == 0:
            holds = np.minimum(holds, view.zone_limit[int(view.component[0])])
        # Pairs in one place are most where the largest places are full.
        together = _filled(-np.sort(-holds), count).astype(np.float64)
        result += step * 0.5 * (count**2 - float(together @ together))
    return result


def _filled(capacity: IntArray, count: int) -> IntArray:
    """How many of `count` each takes if the first ones are filled first."""
    result: IntArray = np.diff(np.minimum(np.cumsum(capacity), count), prepend=0)
    return result


def towards(view: PlacementView, present: IntArray, nodes: IntArray) -> FloatArray:
    """(C, K): what `present`, executors of the components involved on each node of the pool, cost one on `nodes`."""
    locations = view.pool.locations
    result = np.zeros((len(present), len(nodes)))
    if not present.any():
        return result
    there = present.astype(np.float64)
    total = there.sum(axis=1)
    for level, step in enumerate(locations.steps):
        same = np.stack(
            [np.bincount(locations.codes[level], weights=row, minlength=locations.sizes[level]) for row in there]
        )
        result += step * (total[:, None] - same[:, locations.codes[level][nodes]])
    partners: FloatArray = view.weights[view.involved][:, view.involved] @ result
    return partners
