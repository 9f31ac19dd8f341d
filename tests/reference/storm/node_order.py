"""The whole order of nodes and racks: from the search that ResourceAware runs, and by sorting, to compare it with."""

from __future__ import annotations

import numpy as np

from ballast.placement.resource_aware import Availability, Flags, Layout, NodeRule, Shares, able_in_order, shares_of


def node_order(
    layout: Layout, room: Availability, *, requested: Flags | None, rule: NodeRule = NodeRule.COMMON
) -> list[int]:
    """Positions of all nodes in the order of trying them.

    `requested`: None when placing no executor in particular: rare resources neither attract nor repel.
    """
    everywhere = np.ones(len(room.placed), dtype=np.bool_)
    return list(able_in_order(layout, room, everywhere, requested=requested, rule=rule))


def sorted_nodes(layout: Layout, room: Availability, *, requested: Flags | None, rule: NodeRule) -> list[int]:
    """The same by sorting all nodes, from the farthest level to the node itself: most placed first, then by share."""
    keys = [_keys(layout, room, level, requested=requested, rule=rule) for level in range(len(layout.members))]
    codes_by_level = [members.of_row for members in layout.members]
    return sorted(
        range(len(room.placed)),
        key=lambda node: [key[int(codes[node])] for key, codes in zip(keys, codes_by_level, strict=True)],
    )


def _keys(
    layout: Layout, room: Availability, level: int, *, requested: Flags | None, rule: NodeRule
) -> list[tuple[float, ...]]:
    """What each of a level's items is sorted by, by its code, which comes last: names decide between equal ones."""
    shares = level_shares(layout, room, level, requested=requested, rule=rule)
    placed = np.bincount(layout.members[level].of_row, weights=room.placed)
    mean, scarcest = (-shares.mean_percent).tolist(), (-shares.scarcest_percent).tolist()
    columns = {
        NodeRule.COMMON: (mean, scarcest),
        NodeRule.GENERIC: (mean,),
        NodeRule.DEFAULT: (scarcest, mean),
    }[rule]
    return [(-placed[code], *(column[code] for column in columns), code) for code in range(len(mean))]


def rack_order(layout: Layout, room: Availability, *, requested: Flags | None, rule: NodeRule) -> list[int]:
    """Codes of the farthest level's items in the order of trying them."""
    racks = layout.members[0].of_row
    return list(dict.fromkeys(int(racks[node]) for node in node_order(layout, room, requested=requested, rule=rule)))


def level_shares(layout: Layout, room: Availability, level: int, *, requested: Flags | None, rule: NodeRule) -> Shares:
    """Each item's part of what is free below its parent, by the item's code."""
    here = layout.members[level]
    free = np.add.reduceat(room.free[here.order], here.starts, axis=0)
    total = np.broadcast_to(room.free.sum(axis=0), free.shape)
    if level:
        above = layout.members[level - 1]
        parents = above.of_row[here.order[here.starts]]
        total = np.add.reduceat(room.free[above.order], above.starts, axis=0)[parents]
    return shares_of(free, total, room.rare, requested, rule)
