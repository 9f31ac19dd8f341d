"""One set of executors and the nodes it may go to, in arrays.

Executors of one component and template are interchangeable, so a solution is a count per (group, node).
Its cost is Σ over pairs of executors of weight × distance, plus the pull of the fixed ends.
"""

from __future__ import annotations

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
        """A figure of the order of the largest difference in cost between two nodes for one executor."""
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
