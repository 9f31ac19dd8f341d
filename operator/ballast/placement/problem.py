"""One set of executors and the nodes it may go to, in arrays, and a first layout of it.

Executors of one component and template are interchangeable, so a solution is a count per (group, node).
Its cost is Σ over pairs of executors of weight × distance, plus the pull of the fixed ends. The first layout puts one
executor after the other where it costs least, in the order of proximity needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor

import numpy as np

from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.placement.room import counts_that_fit, fits


@dataclass(frozen=True)
class Problem:
    """C components, G groups (of one component and template each), K nodes, R kinds of resources.

    Without slots: what every step of a search asks for is worked out once.
    """

    nodes: IntArray
    """(K,): positions in the locations."""
    places: IntArray
    """(levels, K): place of each node, far to near, numbered within the problem."""
    near: FloatArray
    """(K, K): distance between the farthest ends, less the distance of the two nodes."""
    weights: FloatArray
    """(C, C): weight of each unordered pair of executors."""
    pull: FloatArray
    """(C, K): what an executor of the component costs on the node, whatever the others do."""
    settled: IntArray
    """(C, K): executors that are there already."""
    component: IntArray
    """(G,)"""
    counts: IntArray
    """(G,): executors to place."""
    demand: FloatArray
    """(G, R)"""
    allowed: BoolArray
    """(G, K): admitted by the node, whatever the room."""
    room: FloatArray
    """(K, R)"""
    slack: FloatArray
    """(R,): what is forgiven in rounding."""
    node_limit: IntArray
    """(C, K): executors of the component that the node may still take."""
    zone_limit: IntArray
    """(C, zones): the same for a zone."""
    apart: tuple[tuple[int, IntArray], ...]
    """Level, components that must not share a place of that level."""
    preference: FloatArray
    """(K,): decides between nodes of equal cost; higher is better."""

    @cached_property
    def farthest(self) -> float:
        return float(self.near.max()) if self.near.size else 0.0

    @cached_property
    def distance(self) -> FloatArray:
        return self.farthest - self.near

    @cached_property
    def partners(self) -> list[IntArray]:
        """Per component, those that it exchanges anything with."""
        return [np.flatnonzero(row) for row in self.weights]

    @cached_property
    def asked(self) -> BoolArray:
        """(R,): kinds of resources that any group asks for."""
        result: BoolArray = self.demand.max(axis=0) > 0
        return result

    @cached_property
    def largest_room(self) -> FloatArray:
        """Of each kind that is asked for, what the node with most of it has."""
        result: FloatArray = np.maximum(self.room[:, self.asked].max(axis=0), 1e-9)
        return result

    @cached_property
    def scale(self) -> float:
        """A number of the order of the largest difference in cost between two nodes for one executor."""
        largest = max(
            float(np.abs(self.weights).max(initial=0.0)) * self.farthest,
            float(np.ptp(self.pull, axis=1).max(initial=0.0)) if self.pull.size else 0.0,
        )
        return largest or 1.0


class Layout:
    """A partial or complete solution; changes in place."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.placed = np.zeros(problem.allowed.shape, dtype=np.int64)
        self.room = problem.room.copy()
        self.node_left = problem.node_limit.copy()
        self.zone_left = problem.zone_limit.copy()
        self.present = problem.settled.copy()
        self.benefit = -problem.pull
        if problem.settled.any():
            self.benefit += problem.weights @ (problem.settled @ problem.near)
        """(C, K): nearness gained by one more executor of the component on the node."""

    @property
    def missing(self) -> IntArray:
        """(G,): executors not placed yet."""
        result: IntArray = self.problem.counts - self.placed.sum(axis=1)
        return result

    def cost(self) -> float:
        """What the executors placed so far add to the cost of those that were there."""
        problem = self.problem
        new = self.present - problem.settled
        meetings = (self.present + problem.settled) @ problem.distance @ new.T
        return float(0.5 * (problem.weights * meetings).sum() + (problem.pull * new).sum())

    def open(self, group: int) -> BoolArray:
        """(K,): nodes that could take one more executor of the group."""
        problem = self.problem
        component = int(problem.component[group])
        mask: BoolArray = problem.allowed[group] & fits(self.room, problem.demand[group], problem.slack)
        mask &= self.node_left[component] > 0
        mask &= self.zone_left[component][problem.places[0]] > 0
        return mask & ~self.blocked(component) if problem.apart else mask

    def capacity(self, group: int) -> IntArray:
        """(K,): how many more of the group each node could take, each node taken alone."""
        problem = self.problem
        component = int(problem.component[group])
        count = counts_that_fit(self.room, problem.demand[group], problem.slack)
        count = np.minimum(count, self.node_left[component])
        count = np.minimum(count, self.zone_left[component][problem.places[0]])
        allowed = problem.allowed[group]
        if problem.apart:
            allowed = allowed & ~self.blocked(component)
        return np.where(allowed, np.maximum(count, 0), 0)

    def more_at(self, group: int, node: int) -> int:
        """The same for one node that is open to the group."""
        problem = self.problem
        component, demand = int(problem.component[group]), problem.demand[group]
        count = min(int(self.node_left[component, node]), int(self.zone_left[component, problem.places[0, node]]))
        for amount, free, slack in zip(demand.tolist(), self.room[node].tolist(), problem.slack.tolist(), strict=True):
            if amount > 0:
                count = min(count, floor((free + slack) / amount))
        return max(0, count)

    def blocked(self, component: int) -> BoolArray:
        """(K,): nodes in a place that holds a component which must be apart from this one."""
        problem = self.problem
        mask = np.zeros(len(problem.nodes), dtype=np.bool_)
        for level, members in problem.apart:
            if component in members:
                others = members[members != component]
                places = problem.places[level]
                held = np.zeros(int(places.max(initial=0)) + 1, dtype=np.bool_)
                held[places[self.present[others].any(axis=0)]] = True
                mask |= held[places]
        return mask

    def add(self, group: int, node: int, *, count: int = 1) -> None:
        """Place `count` executors of the group on the node; a negative count takes them away."""
        problem = self.problem
        component = int(problem.component[group])
        self.placed[group, node] += count
        self.present[component, node] += count
        self.room[node] -= problem.demand[group] * count
        self.node_left[component, node] -= count
        self.zone_left[component, problem.places[0, node]] -= count
        partners = problem.partners[component]
        if len(partners) == len(self.benefit):
            self.benefit += np.outer(problem.weights[component] * count, problem.near[node])
        else:
            self.benefit[partners] += np.outer(problem.weights[component, partners] * count, problem.near[node])

    def copy(self) -> Layout:
        other = object.__new__(Layout)
        other.problem = self.problem
        for name in ("placed", "room", "node_left", "zone_left", "present", "benefit"):
            setattr(other, name, getattr(self, name).copy())
        return other


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
    zones, members = np.unique(layout.problem.places[0], return_inverse=True)
    shares = _zone_shares(layout, members, len(zones))
    for zone in np.argsort(-shares, kind="stable").tolist():
        construct(layout, _remaining(layout, sequence), within=members == zone)


def _zone_shares(layout: Layout, members: IntArray, size: int) -> FloatArray:
    """(size,): which share of the set each zone holds: of all groups together by amounts, of each by what nodes take.

    `members`: each node's zone.
    """
    problem = layout.problem
    usable = np.flatnonzero(problem.asked)
    admitting: BoolArray = np.logical_or.reduce(problem.allowed)
    room = np.maximum(layout.room, 0.0)[:, usable] * admitting[:, None]
    needed = np.maximum(problem.counts @ problem.demand[:, usable], 1e-9)
    groups = np.flatnonzero(problem.counts)
    taken = [layout.capacity(group) / problem.counts[group] for group in groups.tolist()]
    rows = [*(room / needed).T, *taken]
    result: FloatArray = np.stack([np.bincount(members, weights=row, minlength=size) for row in rows]).min(axis=0)
    return result


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
