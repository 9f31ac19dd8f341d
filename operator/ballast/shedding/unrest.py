"""How much that what else runs on the nodes comes and goes, learned from the pool itself.

A gap that others than executors make may go when they do, and what was moved has to come back. What came and went
before will do so again: a gap has to be wider by as much before moving pays. What executors make themselves stays as
long as they do, and is no unrest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from ballast.shedding.noise import watched

_HORIZON_SECONDS = 7200.0
"""Load that stays much longer than this is worth following, and counts as usual in the end."""

_FIRST_SECONDS = 1800.0
"""For so long only the averages are learned."""


@dataclass(frozen=True, slots=True)
class Unrest:
    """Plain values, fit for JSON."""

    points: float = 0.0
    """By which a node's foreign load is away from its own average: root mean square over the nodes and over time."""
    seen_seconds: float = 0.0
    """For how long it has been learned, up to the horizon."""
    averages: tuple[tuple[str, float], ...] = ()
    """Points of foreign load over the horizon, by node."""


def experienced(
    unrest: Unrest, foreign: Mapping[str, float], *, silent: Collection[str], elapsed_seconds: float
) -> Unrest:
    """Learns from one pass. `foreign`: by node, points of its score that its executors don't make.

    The node that is farthest away does not count: what happens on one node alone is that node's gap.

    A node that is new is taken to be as usual. The averages of the `silent` nodes, which have no metrics now, stay.
    """
    if elapsed_seconds <= 0:
        return unrest
    seen_seconds = min(_HORIZON_SECONDS, unrest.seen_seconds + elapsed_seconds)
    share = min(1.0, elapsed_seconds / seen_seconds)
    known = dict(unrest.averages)
    resting = {name: average for name, average in known.items() if name in silent}
    # A silent node is at its average.
    points = {name: {**resting, **foreign}[name] for name in watched({**resting, **foreign})}
    before = {name: known.get(name, now) for name, now in points.items()}
    averages = {name: round(past + share * (points[name] - past), 2) for name, past in before.items()}
    squares = sorted((points[name] - past) ** 2 for name, past in before.items() if name in foreign)[:-1]
    learned = unrest.points
    if squares and seen_seconds > _FIRST_SECONDS:
        learned = round(sqrt((1.0 - share) * unrest.points**2 + share * fmean(squares)), 3)
    return Unrest(points=learned, seen_seconds=seen_seconds, averages=tuple(sorted(averages.items())))
