"""How far the nodes of a pool stray from its middle by chance, learned from the pool itself.

A score is a mean over the metric window, so what strays keeps astray for a while, and with many nodes some node always
looks hot. `Noise.extreme` is the deviation that one node exceeds in one of a hundred passes by chance. It is known
roughly after a few passes, from how fast deviations change and how far they have gone, and then tracked as a quantile:
exceeding raises it, keeping below lowers it, each node a little in each pass.

Restless nodes, which stray far more than most, would make the whole pool's noise look as large as theirs: one user's
bursts on one node could keep all others from being leveled. So the noise of the others is learned without them, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt
from statistics import fmean, median
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
_LONGEST_UNSEEN_SECONDS = 900.0
"""The start of a pool's executors takes no longer."""
_MOST_UNSEEN_SECONDS = 3600.0
_MOST_CHANGED = 0.1
"""Share of the watched nodes that may be others than in the last pass."""
_LARGEST = 15.0
"""Points; more than that in one pass is an event, and counts as this much noise."""

_RESTLESS, _RESTLESS_NO_MORE = 9.0, 4.0
"""Times the variance that most nodes have: from which a node counts as restless, and down to which it goes on to."""
_LEAST_STRAYED = 3.0
"""Points; nodes are not told apart by less."""
_KNOWN_PASSES = 15
"""From which it is known how far a node strays."""
_MOST_TAIL = 3.0
"""Times the standard deviation of nodes next to restless ones, that their quantile is at most."""
_LEAST_EXTREME = 5.0
"""Points, next to restless nodes."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large the noise of some nodes is."""

    extreme: float = 0.0
    """Points."""
    change: float = 0.0
    """Variance as the speed of change tells it, points²."""
    spread: float = 0.0
    """Variance about each node's own middle so far, points²."""


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
    nodes: tuple[tuple[str, float, float, float], ...] = ()
    """Name, own middle, deviation in the last pass (points), and variance about the middle (points²)."""
    restless: tuple[str, ...] = ()
    """Nodes that stray far more than most."""
    calm: Size = Size()
    """Of the other nodes alone."""
    renewed: bool = False
    """All nodes have started again in the last pass."""
    unseen_seconds: float = 0.0
    """For how long a third of the nodes or more were left out; less by each pass in which fewer were."""

    @property
    def starved(self) -> bool:
        """Whether nothing should be left out any more, since too little could be learned."""
        return self.unseen_seconds >= _LONGEST_UNSEEN_SECONDS

    def of(self, *, hot: str, cold: str) -> tuple[float, float]:
        """By how far a hot and a cold node may stray by chance, in points.

        That of a restless node is the whole pool's, and so is that of the partner of a hot one.
        """
        if not self.restless or hot in self.restless:
            return self.extreme, self.extreme
        least = min(self.extreme, max(self.calm.extreme, _LEAST_EXTREME))
        return least, self.extreme if cold in self.restless else least


def watched(deviations: Mapping[str, float]) -> list[str]:
    """A sample that stays the same when nodes come and go."""
    if len(deviations) <= _WATCHED:
        return sorted(deviations)
    return sorted(sorted(deviations, key=lambda name: (crc32(name.encode()), name))[:_WATCHED])


def observe(noise: Noise, deviations: Mapping[str, float], *, elapsed_seconds: float, memory_seconds: float) -> Noise:
    """Learns from one pass.

    `deviations`: points from the pool's middle by node; a node that is left out starts again afterwards, and
    without any nothing is learned. If many nodes differ from those of the last pass, all start again, but not twice
    in a row: one user's executors that begin on some nodes, then on others, must not keep noise from being learned.
    `elapsed_seconds`: since the last pass.
    `memory_seconds`: the time over which values resemble each other (the metric window, or longer).
    """
    if not deviations:
        return replace(noise, nodes=())
    passes = noise.passes + 1
    known = {name: (middle, last) for name, middle, last, _ in noise.nodes}
    strays = {name: strayed for name, _, _, strayed in noise.nodes}
    names = watched(deviations)
    renewed = False
    if known and len(known.keys() ^ set(names)) > _MOST_CHANGED * len(names):
        # The middle has moved with them: how the others stood to it before says nothing now, or not without that.
        renewed = not noise.renewed
        known = {} if renewed else _shifted(known, deviations)
    seen = {name: _Seen(deviations[name], *known[name]) for name in names if name in known}
    weight = max(1.0 / passes, 1.0 / _HORIZON_PASSES)
    nodes = []
    for name in names:
        middle, _ = known.get(name, (deviations[name], 0.0))
        # How far it strays does not start again: two moves would be enough to make bursts of other nodes all nodes'.
        strayed, distance = strays.get(name, 0.0), min(abs(deviations[name] - middle), _LARGEST)
        middle, strayed = (
            before + weight * (now - before) for before, now in ((middle, deviations[name]), (strayed, distance**2))
        )
        nodes.append((name, round(middle, 3), round(deviations[name], 3), round(strayed, 1)))
    restless = _restless(nodes, noise.restless) if passes > _KNOWN_PASSES else ()
    likeness = exp(-elapsed_seconds / memory_seconds)
    size = _learned(Size(noise.extreme, noise.change, noise.spread), list(seen.values()), passes, likeness)
    ordinary = [each for name, each in seen.items() if name not in restless]
    calm = _learned(noise.calm, ordinary, passes, likeness)
    if restless:
        calm = replace(calm, extreme=min(calm.extreme, _most_extreme(nodes, restless)))
    unseen = noise.unseen_seconds
    return Noise(passes, size.extreme, size.change, size.spread, tuple(nodes), restless, calm, renewed, unseen)


def leaving_out(noise: Noise, *, left_out: int, nodes: int, elapsed_seconds: float) -> Noise:
    """Counts for how long too many of the nodes were left out to learn anything."""
    change = elapsed_seconds if 3 * left_out >= nodes else -elapsed_seconds
    return replace(noise, unseen_seconds=min(max(0.0, noise.unseen_seconds + change), _MOST_UNSEEN_SECONDS))


_Known = tuple[float, float]
"""A node's own middle, and its deviation in the last pass."""


def _shifted(known: Mapping[str, _Known], deviations: Mapping[str, float]) -> dict[str, _Known]:
    """As if the nodes that are still there had stood to the middle of before as they stand to that of now."""
    moved = [deviations[name] - middle for name, (middle, _) in known.items() if name in deviations]
    by = median(moved) if moved else 0.0
    return {name: (middle + by, last + by) for name, (middle, last) in known.items()}


@dataclass(frozen=True, slots=True)
class _Seen:
    """A node in one pass; points."""

    now: float
    middle: float
    last: float


def _restless(nodes: Sequence[tuple[str, float, float, float]], before: Collection[str]) -> tuple[str, ...]:
    """Fewer than half of the nodes: the middle one is what most are like."""
    usual = max(median(strayed for _, _, _, strayed in nodes), _LEAST_STRAYED**2)
    bounds = {name: _RESTLESS_NO_MORE if name in before else _RESTLESS for name, _, _, _ in nodes}
    return tuple(name for name, _, _, strayed in nodes if strayed > bounds[name] * usual)


def _most_extreme(nodes: Sequence[tuple[str, float, float, float]], restless: Collection[str]) -> float:
    """By how far the others can stray, as far as they have.

    Until a node is known to be restless, its bursts count for all, and the quantile would take most of a day to fall.
    """
    return _MOST_TAIL * sqrt(fmean(strayed for name, _, _, strayed in nodes if name not in restless))


def _learned(before: Size, seen: Sequence[_Seen], passes: int, likeness: float) -> Size:
    if not seen:
        return before
    if passes > _APPRENTICE_PASSES:
        return replace(before, extreme=_tracked(before.extreme, [abs(each.now - each.middle) for each in seen]))
    return _apprentice(before, seen, passes=passes, likeness=likeness)


def _tracked(extreme: float, distances: list[float]) -> float:
    excess = sum(distance > extreme for distance in distances) - _SHARE * len(distances)
    return max(0.0, extreme + _STEP * max(extreme, 1.0) * excess)


def _apprentice(before: Size, seen: Sequence[_Seen], *, passes: int, likeness: float) -> Size:
    """The first passes: variance from changes (quick, leans on `likeness`) or from spread, whichever is smaller."""
    changed = fmean(min(abs(each.now - each.last), _LARGEST) ** 2 for each in seen) / (2.0 * (1.0 - likeness))
    strayed = fmean(min(abs(each.now - each.middle), _LARGEST) ** 2 for each in seen) * (passes - 1) / passes
    change = before.change + (changed - before.change) / (passes - 1)
    spread = before.spread + (strayed - before.spread) / passes
    # A mean over few windows follows the noise: so much of the variance is not seen yet.
    unseen = min(0.9, 2.0 / ((1.0 - likeness) * passes))
    extreme = _TAIL * sqrt(min(change, spread / (1.0 - unseen)))
    return Size(extreme, change, spread)
