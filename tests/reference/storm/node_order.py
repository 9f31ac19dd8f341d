"""The whole order of nodes and racks, as Storm's tests ask for it, from the search that ResourceAware runs."""

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
