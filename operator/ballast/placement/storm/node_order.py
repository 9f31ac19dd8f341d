"""In which order nodes are tried: the farthest level first, then within it, down to the node.

At each level the items (racks of the cluster, hosts of a rack, nodes of a host) are compared by how many executors
of the same topology they already run, then by their share of what is free at that level.
Source: Storm's `NodeSorterHostProximity`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class NodeRule(StrEnum):
    """What decides between items that run equally many executors of the topology."""

    COMMON = "Common"
    """Mean share, then the scarcest resource's; rare resources attract those that ask for them and repel others."""
    GENERIC = "Generic"
    """Mean share, with the same attraction."""
    DEFAULT = "Default"
    """The scarcest resource's share, then the mean; rare resources count like all others."""


@dataclass(frozen=True, slots=True)
class Shares:
    """An item's part of what is free at its level, in per cent of each resource (those of which nothing is free at
    all are passed over; if that is every one, 100). Negative where rare resources repel.
    """

    mean_percent: Floats
    scarcest_percent: Floats


class Layout:
    """Where the nodes are: `paths` holds per node its item at each level, far to near, the node itself last.

    Equal names on one level are one item, also below different parents: names of hosts and nodes must be unique.
    """

    def __init__(self, paths: Sequence[Sequence[str]]) -> None:
        by_level = [np.array(level) for level in zip(*paths, strict=True)]
        coded = [np.unique(level, return_inverse=True) for level in by_level]
        self.names: list[list[str]] = [names.tolist() for names, _ in coded]
        """Items of each level, sorted; an item's code is its position here."""
        self.codes: list[Ints] = [codes.astype(np.int64) for _, codes in coded]
        """Per level, the item that each node belongs to."""
        self.parents: list[Ints] = [
            self._parents(above, here, len(names))
            for above, here, names in zip([None, *self.codes], self.codes, self.names, strict=False)
        ]
        """Per level, each item's parent on the level above; zeros for the farthest."""

    @staticmethod
    def _parents(above: Ints | None, here: Ints, items: int) -> Ints:
        parents = np.zeros(items, dtype=np.int64)
        if above is not None:
            parents[here] = above
        return parents


@dataclass(frozen=True, slots=True)
class Room:
    """What the nodes have, one row per node of the layout."""

    free: Floats
    """Nodes × resources, none below zero."""
    placed: Ints
    """Executors of the topology that each node runs already."""
    rare: Flags
    """Per resource: not every node has it (GPUs, say), so those that don't need it keep away."""


def node_order(layout: Layout, room: Room, *, requested: Flags | None, rule: NodeRule = NodeRule.COMMON) -> list[int]:
    """Positions of all nodes in the order of trying them.

    `requested` says per resource whether the executor to be placed asks for it; None when placing nobody in
    particular, so that rare resources neither attract nor repel.
    """
    keys: list[npt.NDArray[np.float64] | Ints] = []
    for level, codes in enumerate(layout.codes):
        shares = level_shares(layout, room, level, requested=requested, rule=rule)
        rank = _rank(shares, _per_item(room.placed, layout, level), rule)
        keys.append(rank[codes])
    positions: list[int] = np.lexsort(keys[::-1]).tolist()
    return positions


def level_order(layout: Layout, room: Room, level: int, *, requested: Flags | None, rule: NodeRule) -> list[int]:
    """Codes of a level's items, all parents together, in the order of comparing them."""
    shares = level_shares(layout, room, level, requested=requested, rule=rule)
    codes: list[int] = np.argsort(_rank(shares, _per_item(room.placed, layout, level), rule)).tolist()
    return codes


def level_shares(layout: Layout, room: Room, level: int, *, requested: Flags | None, rule: NodeRule) -> Shares:
    """Each item's part of what is free below its parent, by the item's code."""
    free = _per_item(room.free, layout, level)
    parents = layout.parents[level]
    totals = np.zeros((parents.max(initial=0) + 1, free.shape[1]))
    np.add.at(totals, parents, free)
    total = totals[parents]
    if requested is not None and rule is not NodeRule.DEFAULT:
        free = np.where(room.rare & ~requested, -free, free)
    counted = total > 0
    shares = np.divide(free, total, out=np.zeros_like(free), where=counted)
    resources = counted.sum(axis=1)
    mean = np.divide(shares.sum(axis=1) * 100.0, resources, out=np.full(len(free), 100.0), where=resources > 0)
    scarcest = np.where(counted, shares, 1.0).min(axis=1, initial=1.0) * 100.0
    return Shares(mean_percent=mean, scarcest_percent=scarcest)


def with_favourites(
    order: Iterable[int],
    *,
    favoured: Sequence[int] = (),
    unfavoured: Sequence[int] = (),
    last: Sequence[int] = (),
) -> list[int]:
    """`order` with the favoured nodes in front, the unfavoured after all others, and `last` at the very end.

    A node named more than once counts as last, else as favoured.
    """
    front = [node for node in favoured if node not in last]
    back = [node for node in unfavoured if node not in front and node not in last]
    apart = {*front, *back, *last}
    return [*front, *(node for node in order if node not in apart), *back, *last]


def _per_item(values: npt.NDArray[np.generic], layout: Layout, level: int) -> npt.NDArray[np.float64]:
    sums = np.zeros((len(layout.names[level]), *values.shape[1:]))
    np.add.at(sums, layout.codes[level], values)
    return sums


def _rank(shares: Shares, placed: Floats, rule: NodeRule) -> Ints:
    """Each item's place among all of its level; ties go by name, which is the order of the codes."""
    mean, scarcest = -shares.mean_percent, -shares.scarcest_percent
    figures = {
        NodeRule.COMMON: (mean, scarcest),
        NodeRule.GENERIC: (mean,),
        NodeRule.DEFAULT: (scarcest, mean),
    }[rule]
    order = np.lexsort((*figures[::-1], -placed))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank
