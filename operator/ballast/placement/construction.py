"""A first layout: one executor after the other to where it costs least, in the order of proximity needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ballast.model.arrays import BoolArray, FloatArray
from ballast.placement.problem import Layout, Problem

_TIE = 1e-7
"""How much preference weighs next to the largest possible difference in cost."""


def construct(
    layout: Layout, sequence: Sequence[int], *, tightest: bool = False, within: BoolArray | None = None
) -> None:
    """Place groups in the order of `sequence` (one entry per executor); those that fit nowhere stay missing.

    `tightest`: between equals, and before cost, the node that is left with the least room, which wastes least.
    `within`: (K,), the nodes that may be used, every one if None.
    """
    filling = Filling(layout, tightest=tightest, within=within)
    full: set[int] = set()
    position = 0
    while position < len(sequence):
        group = sequence[position]
        run = _run_length(sequence, position)
        position += run
        if group not in full and not filling.place(group, run):
            full.add(group)


def _run_length(sequence: Sequence[int], position: int) -> int:
    end = position + 1
    while end < len(sequence) and sequence[end] == sequence[position]:
        end += 1
    return end - position


def construct_by_zone(layout: Layout, sequence: Sequence[int]) -> None:
    """The same zone by zone, the roomiest first: as much as can be is together where no zone holds everything."""
    problem = layout.problem
    zones, members = np.unique(problem.places[0], return_inverse=True)
    usable = np.flatnonzero(problem.asked)
    admitting: BoolArray = np.logical_or.reduce(problem.allowed)
    room = np.maximum(layout.room, 0.0)[:, usable] * admitting[:, None]
    needed = np.maximum(problem.counts @ problem.demand[:, usable], 1e-9)
    shares = np.stack([np.bincount(members, weights=row, minlength=len(zones)) for row in room.T]) / needed[:, None]
    for zone in np.argsort(-shares.min(axis=0, initial=np.inf), kind="stable").tolist():
        construct(layout, _remaining(layout, sequence), within=members == zone)


def _remaining(layout: Layout, sequence: Sequence[int]) -> list[int]:
    """The last entries of each group, as many as are missing."""
    skip, left = layout.placed.sum(axis=1).tolist(), []
    for group in sequence:
        if skip[group]:
            skip[group] -= 1
        else:
            left.append(group)
    return left


class Filling:
    """A layout to which executors are added, and which nodes are known to be closed: adding opens none again."""

    def __init__(self, layout: Layout, *, tightest: bool = False, within: BoolArray | None = None) -> None:
        problem, self._within = layout.problem, within
        self._layout, self._tightest = layout, tightest
        self._left = left_over(layout)
        self._tie = _TIE * problem.scale
        self._bars: dict[int, FloatArray] = {}
        """By group: minus infinity for each node that can't take it."""
        self._moody = {int(component) for _, members in problem.apart for component in members}
        """Components that other components close places to."""

    def place(self, group: int, run: int) -> bool:
        """Place up to `run` executors of the group, False when they do not all find a node."""
        layout, component = self._layout, int(self._layout.problem.component[group])
        attracts = layout.problem.weights[component, component] > 0
        while run:
            node = self.best(group)
            if node is None:
                return False
            # An executor that draws its own kind stays the best place for the next one until it is full.
            count = min(run, layout.more_at(group, node)) if attracts else 1
            self.add(group, node, count=count)
            run -= count
        return True

    def add(self, group: int, node: int, *, count: int = 1) -> None:
        self._layout.add(group, node, count=count)
        self._left[node] = left_over(self._layout, slice(node, node + 1))[0]

    def best(self, group: int) -> int | None:
        """The node that costs least for one more of the group, None when none can take it."""
        layout, problem = self._layout, self._layout.problem
        component = int(problem.component[group])
        known = group in self._bars and component not in self._moody
        if not known:
            self._close(group)
        if self._tightest:
            value = -self._left
        else:
            value = layout.benefit[component] + self._tie * (problem.preference + self._left)
        node = int(np.argmax(value + self._bars[group]))
        if known and layout.more_at(group, node) == 0:
            self._close(group)
            node = int(np.argmax(value + self._bars[group]))
        return node if self._bars[group][node] == 0.0 else None

    def _close(self, group: int) -> None:
        mask = self._layout.open(group)
        self._bars[group] = np.where(mask if self._within is None else mask & self._within, 0.0, -np.inf)


def left_over(layout: Layout, nodes: slice = slice(None)) -> FloatArray:
    """Room that is left on each node, in shares of the largest node's, summed over the kinds that the set asks for."""
    problem = layout.problem
    result: FloatArray = (layout.room[nodes][:, problem.asked] / problem.largest_room).sum(axis=1)
    return result


def hardest_first(problem: Problem) -> list[int]:
    """A sequence that places what fits in few places before what fits in many."""
    ease = [_ease(problem, group) for group in range(len(problem.counts))]
    order = sorted(range(len(problem.counts)), key=lambda group: (ease[group], group))
    return [group for group in order for _ in range(int(problem.counts[group]))]


def _ease(problem: Problem, group: int) -> float:
    demand = problem.demand[group]
    total = np.maximum(np.where(problem.allowed[group][:, None], problem.room, 0.0).sum(axis=0), 1e-9)
    return -float((demand / total).max(initial=0.0))
