"""Breaking near-ties: executors of one application spread over the nodes of each rack that they are in.

Where it is not declared what an application exchanges, it is not known that a node is worth staying within, and what a
shuffle saves there is little; but the loss of a node costs every executor on it. So the racks stay as they were chosen,
and within each as many nodes are used as are equally good.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ballast.model.arrays import IntArray
from ballast.placement.problem import Layout

_NEAR_TIE = 0.05
"""Of leaving the node with all of one's traffic: so much more may a node cost, as a hotter one does."""

Share = Callable[[IntArray, IntArray], IntArray]
"""How many executors each of these nodes gets, of those that have just been taken from them, so many from each."""


def spread(layout: Layout, node_distance: float) -> None:
    """Even out, rack by rack, what each group has placed; components of several templates stay as they are.

    `node_distance`: the cost of leaving a node within its rack.
    """
    problem = layout.problem
    groups = np.flatnonzero(layout.placed.any(axis=1))
    for group in groups.tolist():
        component = int(problem.component[group])
        if not problem.apart and (problem.component == component).sum() == 1:
            rearrange(layout, group, partial(_evened, layout, group), worst=near_tie(layout, group, node_distance))


def near_tie(layout: Layout, group: int, node_distance: float) -> float:
    """How much more than another node a node may cost an executor of the group, and still be as good."""
    weights = layout.problem.weights[int(layout.problem.component[group])]
    return _NEAR_TIE * node_distance * float((weights * layout.present.sum(axis=1)).sum())


def rearrange(layout: Layout, group: int, share: Share, *, worst: float) -> None:
    """Share out again, rack by rack, what the group has placed, over nodes that cost at most `worst` more."""
    problem = layout.problem
    pull, racks = problem.pull[int(problem.component[group])], _racks(problem.places)
    for rack in np.unique(racks[layout.placed[group] > 0]).tolist():
        members = np.flatnonzero(racks == rack)
        used = members[layout.placed[group, members] > 0]
        good = members[pull[members] <= pull[used].max() + worst]
        before = layout.placed[group, good].copy()
        put(layout, group, good, -before)
        put(layout, group, good, share(good, before))


def put(layout: Layout, group: int, nodes: IntArray, counts: IntArray) -> None:
    """Add executors of the group to each of the nodes; negative counts take them away."""
    for node, count in zip(nodes.tolist(), counts.tolist(), strict=True):
        if count:
            layout.add(group, node, count=count)


def _evened(layout: Layout, group: int, nodes: IntArray, before: IntArray) -> IntArray:
    """A `Share` that leaves as many executors of the component on each node."""
    held = layout.present[int(layout.problem.component[group]), nodes]
    return leveled(held, layout.capacity(group)[nodes], int(before.sum()))


def _racks(places: IntArray) -> IntArray:
    """(K,): which nodes share every place but their own."""
    if len(places) == 1:
        return np.zeros(places.shape[1], dtype=np.int64)
    _, codes = np.unique(places[:-1], axis=1, return_inverse=True)
    return codes.reshape(-1)


def leveled(held: IntArray, room: IntArray, count: int) -> IntArray:
    """How many of `count` each node gets, so that the most that any node holds is least; the first nodes get the rest.

    `held`: what is there; `room`: how many more fit, `count` in total at least.
    """
    low, high = 0, int((held + room).max(initial=0))
    while low < high:
        level = (low + high) // 2
        if np.clip(level - held, 0, room).sum() >= count:
            high = level
        else:
            low = level + 1
    given: IntArray = np.clip(low - held, 0, room)
    spare = int(given.sum()) - count
    top = np.flatnonzero((held + given == low) & (given > 0))
    if spare:
        # Roomy nodes keep theirs: of those that are filled to the level, the tightest give back first.
        given[top[np.argsort((room - given)[top], kind="stable")[:spare]]] -= 1
    return given
