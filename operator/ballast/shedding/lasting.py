"""How much of a node's score is there to stay, as far as that can be told from the executors on it.

The driver hands tasks to whichever core is free, so that an executor soon uses again what its application uses in the
mean. What it uses beyond that is a burst, or noise: after a move it would be gone on both nodes. Such points count only
as far as they have lasted. Points that come from the number of executors, or from anything else on the node, count at
once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from math import exp

from ballast.shedding.load import UsageNode

_HORIZON_SECONDS = 7200.0
"""After this time two thirds of what an executor uses beyond its application's mean are taken to last."""
_REMEMBERED = 64
"""Nodes kept from pass to pass, because status has to stay small."""
_REMEMBERED_NOW = 16
"""Nodes that are kept because they stray farthest now: what has just begun is still small in the averages."""

Lasting = tuple[tuple[str, float], ...]
"""By node, the points by which its executors stray from their applications' means, averaged over the horizon."""


def observed(
    before: Lasting, nodes: Iterable[UsageNode], *, silent: Collection[str], elapsed_seconds: float
) -> Lasting:
    """The averages after one more pass; of a node that is not known, nothing has lasted yet.

    Those of the `silent` nodes, which have no metrics now, stay as they are.
    """
    known, weight = dict(before), 1.0 - exp(-elapsed_seconds / _HORIZON_SECONDS)
    averages = {name: past for name, past in before if name in silent}
    present = {node.name: node.astray for node in nodes}
    for name, astray in present.items():
        past = known.get(name, 0.0)
        averages[name] = round(past + weight * (astray - past), 3)
    kept = {*_farthest(averages, _REMEMBERED), *_farthest(present, _REMEMBERED_NOW)}
    return tuple(sorted((name, averages[name]) for name in kept if averages[name]))


def _farthest(points: Mapping[str, float], most: int) -> list[str]:
    return sorted(points, key=lambda name: (-abs(points[name]), name))[:most]


def lasting_ratios(lasting: Lasting, astray: Mapping[str, float]) -> dict[str, float]:
    """By node, which share of its points `astray` has lasted, 0…1; nodes where none has are absent.

    So are nodes whose executors use less than their applications do in the mean: something else may take the CPU that
    they ask for, and what they would use elsewhere is not known.
    """
    return {node: min(past / astray[node], 1.0) for node, past in lasting if past > 0 and astray.get(node, 0.0) > 0}


def calmed(node: UsageNode, lasting: Mapping[str, float], *, middle: float) -> UsageNode:
    """The node without what is not known to last, no farther than to the pool's middle.

    Only what takes it away from the middle counts: it is never made to look hotter, or colder, than it is.
    """
    passing = _passing(node.astray, lasting.get(node.name, 0.0))
    score = node.score
    if passing > 0 and score > middle:
        score = max(middle, score - passing)
    elif passing < 0 and score < middle:
        score = min(middle, score - passing)
    return replace(node, score=score, passing=abs(node.score - score))


def _passing(astray: float, lasted: float) -> float:
    """What is left of `astray` without what has lasted, with the same sign."""
    if astray >= 0:
        return max(0.0, astray - max(0.0, lasted))
    return min(0.0, astray - min(0.0, lasted))
