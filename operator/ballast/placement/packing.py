"""The opposite of spreading: of equally near nodes the fullest is filled first, so that others become empty.

As MostAllocated of kube-scheduler does, but only within the racks that locality has chosen, and only as far as a node
stays below the score from which it would be unloaded again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np

from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.problem import Layout
from ballast.placement.spreading import near_tie, rearrange

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Fill:
    """What the nodes of a layout hold; K nodes, G groups."""

    offered: FloatArray
    """(K, 2): allocatable CPU and memory."""
    spare: FloatArray
    """(K,): CPU cores until the node is hot, before the layout's executors."""
    load_cores: FloatArray
    """(G,): of one executor."""


def pack(layout: Layout, fill: Fill) -> Layout:
    """Fill, rack by rack, the fullest node first, as long as the layout does not cost more; it may be changed.

    If it would, because the set would be on more nodes, try the nodes alone that can take as many as one has now.
    """
    for group in np.flatnonzero(layout.placed.any(axis=1)).tolist():
        counts = layout.placed[group]
        for least in (1, int(counts[counts > 0].min())):
            trial = layout.copy()
            rearrange(trial, group, partial(_filled, trial, fill, group, least=least), worst=inf)
            if trial.cost() <= layout.cost() + _ROUNDING * layout.problem.scale:
                layout = trial
                break
    return layout


def pack_freely(layout: Layout, fill: Fill, node_distance: float) -> None:
    """The same where nodes of a rack count as equally near, as `spread` has it."""
    for group in np.flatnonzero(layout.placed.any(axis=1)).tolist():
        worst = near_tie(layout, group, node_distance)
        rearrange(layout, group, partial(_filled, layout, fill, group), worst=worst)


def _filled(layout: Layout, fill: Fill, group: int, nodes: IntArray, before: IntArray, *, least: int = 1) -> IntArray:
    """The fullest nodes that can take `least` get what they can take; as `before` where that would make a node hot."""
    room, count = np.minimum(layout.capacity(group)[nodes], _until_hot(layout, fill, group)[nodes]), int(before.sum())
    room[room < least] = 0
    if room.sum() < count:
        return before
    with np.errstate(invalid="ignore", divide="ignore"):
        free = np.nan_to_num(layout.room[nodes, :2] / fill.offered[nodes]).mean(axis=1)
    order = np.argsort(np.round(free, 9), kind="stable")
    taken = np.cumsum(room[order]) - room[order]
    given = np.zeros(len(nodes), dtype=np.int64)
    given[order] = np.clip(count - taken, 0, room[order])
    return given


def _until_hot(layout: Layout, fill: Fill, group: int) -> IntArray:
    """(K,): how many more of the group each node takes before it is hot."""
    left = fill.spare - fill.load_cores @ layout.placed
    load = max(float(fill.load_cores[group]), _ROUNDING)
    return np.maximum(np.floor(left / load + _ROUNDING), 0.0).astype(np.int64)
