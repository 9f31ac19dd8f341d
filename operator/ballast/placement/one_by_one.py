"""Executors one after the other, each to the node that a strategy finds right among those that can take it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ballast.model.arrays import IntArray
from ballast.placement.openings import Openings
from ballast.placement.outlook import Outlook
from ballast.placement.strategy import Seats

Choose = Callable[[IntArray, int], int]
"""One of these nodes (positions in the pool, ascending, at least one) for an executor of this row of the outlook.

The same array again means the same nodes.
"""


def one_by_one(view: Outlook, turns: Sequence[int], choose: Choose) -> Seats:
    """`turns`: rows of the outlook's groups, one per executor. Favored nodes come first while they have room."""
    openings = Openings(view)
    favored = np.flatnonzero(view.pool.named(view.pool.policy.favored_nodes))
    seats: list[list[int]] = [[] for _ in view.groups]
    full: set[int] = set()
    for row in _by_turns(view, turns) if view.apart else turns:
        if row in full:
            continue
        able = openings.able(row)
        if not len(able):
            full.add(row)
            continue
        liked = np.intersect1d(able, favored, assume_unique=True) if len(favored) else favored
        node = choose(liked if len(liked) else able, row)
        openings.take(row, node)
        seats[row].append(node)
    return seats


def _by_turns(view: Outlook, rows: Sequence[int]) -> list[int]:
    """The first of each component, then the second: so none takes every place from one that must be apart from it."""
    seen = Counter(dict(enumerate(view.crew.present[view.component].sum(axis=1).tolist())))
    numbered = []
    for row in rows:
        numbered.append((seen[row], row))
        seen[row] += 1
    return [row for _, row in sorted(numbered)]
