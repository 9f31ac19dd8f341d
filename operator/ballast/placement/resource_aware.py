"""Strategy ResourceAware: to the first node that can take the executor, in Storm's order of nodes.

From zone to rack to node, the place that already runs most of its topology, then the one with the largest part of what
is free there. Extended resources (GPUs) attract those that ask for them and repel all others.
Source: Storm's node order (`node_order`) under its rule COMMON.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ballast.model import Executor, Phase
from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.node_order import Availability, Layout, able_in_order
from ballast.placement.placement_view import PlacementView, Pool
from ballast.placement.room import Room
from ballast.placement.strategy import Seats, one_by_one

_PODS = 2
"""Column of a room; how many pods a node may run is no resource that speaks for it."""
_ORDINARY = 2
"""CPU and memory, the first columns, which count for all."""


class ResourceAware:
    def __init__(self, pool: Pool) -> None:
        self._layout = Layout(pool.locations.paths())
        offered = Counter(name for node in pool.locations.nodes for name, _ in node.allocatable.extended)
        # A GPU also repels if no executor in this pass asks for one; what all nodes have (ephemeral storage) does not.
        rare = {name for name, count in offered.items() if count < len(pool.locations.nodes)}
        self._whole = Room(pool.locations, ("cpu", "memory", "pods", *sorted(rare.union(pool.room.kinds[3:]))))
        columns = [kind for kind in self._whole.kinds if kind != "pods"]
        self._rare = np.array([kind in rare for kind in columns])
        self._common = ~self._rare
        self._common[:_ORDINARY] = False
        self._sent: dict[str, Counter[int]] = defaultdict(Counter)

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        demands = [self._whole.vector(view.workload.groups[int(group)].requests) for group in view.groups]
        demand = np.delete(np.array(demands), _PODS, axis=1)
        left = Availability(
            free=np.maximum(self._free(view.pool.room), 0.0),
            placed=self._placed(view),
            rare=self._rare,
        )

        latest = (-1, -1)

        def choose(able: IntArray, row: int) -> int:
            nonlocal latest
            node = latest[1]
            # The last executor has made its places the fullest at every level: they stay the first for equal ones.
            if row != latest[0] or not _holds(able, node):
                mask = np.zeros(len(left.placed), dtype=np.bool_)
                mask[able] = True
                seen = self._seen(left, demand[row])
                node = next(able_in_order(self._layout, seen, mask, requested=demand[row] > 0))
            latest = (row, node)
            left.free[node] = np.maximum(left.free[node] - demand[row], 0.0)
            left.placed[node] += 1
            return node

        return one_by_one(view, turns, choose)

    def _seen(self, left: Availability, demand: FloatArray) -> Availability:
        """What counts for that demand: of what all nodes have, only what it asks for."""
        unasked = self._common & (demand <= 0)
        return replace(left, free=np.where(unasked, 0.0, left.free)) if unasked.any() else left

    def took(self, executor: Executor, node: int) -> None:
        """Only those that were sent before and are not bound yet: all others are present in their workload."""
        if executor.phase is Phase.PENDING:
            self._sent[executor.topology][node] += 1

    def _free(self, space: Room) -> FloatArray:
        """(nodes, kinds except for pods)"""
        free = self._whole.free.copy()
        free[:, [self._whole.kinds.index(kind) for kind in space.kinds]] = space.free
        return np.delete(free, _PODS, axis=1)

    def _placed(self, view: PlacementView) -> IntArray:
        """(nodes,): executors of the topology that are there, or will be."""
        placed: IntArray = view.workload.present.sum(axis=0)
        for node, count in self._sent[view.workload.topology.key].items():
            placed[node] += count
        return placed


def _holds(ascending: IntArray, value: int) -> bool:
    at = int(np.searchsorted(ascending, value))
    return at < len(ascending) and int(ascending[at]) == value
