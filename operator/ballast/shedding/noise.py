"""How far the nodes of a pool stray from its middle by chance, learned from the pool itself.

A score is a mean over the metric window, so what strays keeps astray for a while, and with many nodes some node always
looks hot. `Noise.extreme` is the deviation that one node exceeds in one of a hundred passes by chance. It is known
roughly after a few passes, from how fast deviations change and how far they have gone, and then tracked as a quantile:
exceeding raises it, keeping below lowers it, each node a little in each pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import exp, sqrt
from statistics import fmean
from zlib import crc32

_WATCHED = 64
"""Nodes that are watched; more would teach nothing and fill the status."""
_SHARE = 0.01
_STEP = 1.0 / 300.0
"""Of the quantile, per node and pass."""
_TAIL = 2.3
"""The quantile in standard deviations while only those are known."""
_APPRENTICE_PASSES = 45
_HORIZON_PASSES = 120
"""What a node's own middle is averaged over."""
_MOST_CHANGED = 0.1
"""Share of the watched nodes that may be others than in the last pass."""
_LARGEST = 15.0
"""Points; more than that in one pass is an event, and counts as this much noise."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Plain values, fit for JSON."""

    passes: int = 0
    extreme: float = 0.0
    """Points."""
    change: float = 0.0
    """Variance as the speed of change tells it, points²."""
    spread: float = 0.0
    """Variance about each node's own middle so far, points²."""
    nodes: tuple[tuple[str, float, float], ...] = ()
    """Name, own middle, deviation in the last pass; points."""


def watched(deviations: Mapping[str, float]) -> list[str]:
    """A sample that stays the same when nodes come and go."""
    if len(deviations) <= _WATCHED:
        return sorted(deviations)
    return sorted(sorted(deviations, key=lambda name: (crc32(name.encode()), name))[:_WATCHED])


def observe(noise: Noise, deviations: Mapping[str, float], *, elapsed_seconds: float, memory_seconds: float) -> Noise:
    """Learns from one pass.

    `deviations`: points from the pool's middle by node; a node that is left out starts again afterwards, and
    without any nothing is learned. If many nodes differ from those of the last pass, all start again.
    `elapsed_seconds`: since the last pass.
    `memory_seconds`: the time over which values resemble each other (the metric window, or longer).
    """
    if not deviations:
        return replace(noise, nodes=())
    passes = noise.passes + 1
    known = {name: (middle, last) for name, middle, last in noise.nodes}
    names = watched(deviations)
    if len(known.keys() ^ set(names)) > _MOST_CHANGED * len(names):
        # The middle has moved with them: how the others stood to it before says nothing now.
        known = {}
    seen = [(deviations[name], *known[name]) for name in names if name in known]
    weight = max(1.0 / passes, 1.0 / _HORIZON_PASSES)
    learned = noise
    if seen and passes > _APPRENTICE_PASSES:
        learned = replace(noise, extreme=_tracked(noise.extreme, [abs(now - middle) for now, middle, _ in seen]))
    elif seen:
        learned = _apprentice(noise, seen, likeness=exp(-elapsed_seconds / memory_seconds))
    nodes = []
    for name in names:
        middle = known.get(name, (deviations[name], 0.0))[0]
        nodes.append((name, round(middle + weight * (deviations[name] - middle), 3), round(deviations[name], 3)))
    return replace(learned, passes=passes, nodes=tuple(nodes))


def _tracked(extreme: float, distances: list[float]) -> float:
    excess = sum(distance > extreme for distance in distances) - _SHARE * len(distances)
    return max(0.0, extreme + _STEP * max(extreme, 1.0) * excess)


def _apprentice(noise: Noise, seen: list[tuple[float, float, float]], *, likeness: float) -> Noise:
    """The first passes: variance from changes (quick, leans on `likeness`) or from spread, whichever is smaller."""
    passes = noise.passes + 1
    changed = fmean(min(abs(now - last), _LARGEST) ** 2 for now, _, last in seen) / (2.0 * (1.0 - likeness))
    strayed = fmean(min(abs(now - middle), _LARGEST) ** 2 for now, middle, _ in seen) * (passes - 1) / passes
    change = noise.change + (changed - noise.change) / (passes - 1)
    spread = noise.spread + (strayed - noise.spread) / passes
    # A mean over few windows follows the noise: so much of the variance is not seen yet.
    unseen = min(0.9, 2.0 / ((1.0 - likeness) * passes))
    extreme = _TAIL * sqrt(min(change, spread / (1.0 - unseen)))
    return replace(noise, extreme=extreme, change=change, spread=spread)
