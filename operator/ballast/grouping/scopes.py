"""Which targets lie within each scope of a sender."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ballast.errors import InvalidField
from ballast.model.location import Scope

# Where one end of a stream is, and how far another end is from it.


@dataclass(frozen=True, slots=True)
class Place:
    """`process` tells processes of one node apart; a level that is not known is None."""

    node: str
    process: str | int | None = None
    rack: str | None = None
    zone: str | None = None


def scope_between(source: Place, target: Place | None) -> Scope:
    """The nearest scope that holds both; a target whose place is not known is as far as can be.

    Rack names count within their zone: equal names in two known zones are two racks.
    """
    if target is None:
        return Scope.CLUSTER
    if source.node == target.node:
        return Scope.PROCESS if source.process == target.process else Scope.NODE
    zones_differ = source.zone != target.zone and None not in (source.zone, target.zone)
    if source.rack is not None and source.rack == target.rack and not zones_differ:
        return Scope.RACK
    if source.zone is not None and source.zone == target.zone:
        return Scope.ZONE
    return Scope.CLUSTER


Positions = npt.NDArray[np.intp]
"""Positions in the sender's list of targets."""

WITHOUT_ZONES = (Scope.PROCESS, Scope.NODE, Scope.RACK, Scope.CLUSTER)
WITH_ZONES = (Scope.PROCESS, Scope.NODE, Scope.RACK, Scope.ZONE, Scope.CLUSTER)


@dataclass(frozen=True, slots=True)
class Reach:
    """The scopes that a sender has, near to far, and the targets within each; a farther scope holds the nearer ones."""

    scopes: tuple[Scope, ...]
    within: Mapping[Scope, Positions]

    def wider(self, scope: Scope) -> Scope:
        """The next scope up; the widest is its own."""
        return self.scopes[min(self.scopes.index(scope) + 1, len(self.scopes) - 1)]

    def narrower(self, scope: Scope) -> Scope:
        """The next scope down; the narrowest is its own."""
        return self.scopes[max(self.scopes.index(scope) - 1, 0)]


def reach(source: Place, places: Sequence[Place | None]) -> Reach:
    """What `source` has around it; `places` holds one entry per target, None for one whose place is not known.

    A sender that knows no zone of its own has no zone scope, and so exactly Storm's four.
    """
    scopes = WITHOUT_ZONES if source.zone is None else WITH_ZONES
    rungs = np.array([scopes.index(scope_between(source, place)) for place in places], dtype=np.intp)
    within = {scope: np.flatnonzero(rungs <= rung) for rung, scope in enumerate(scopes)}
    return Reach(scopes=scopes, within=within)


# Bang-bang control of how far a sender looks: wider when those within reach are busy, narrower when nearer ones idle.
#
# Source: `transition` in Storm's `LoadAwareShuffleGrouping`.

LoadFigures = npt.NDArray[np.float64]
"""One load per target, in the order of the targets."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Mean loads, 0…1, beyond which the scope changes; both comparisons are strict."""

    widen_above: float = 0.8
    narrow_below: float = 0.2


def next_scope(current: Scope, around: Reach, loads: LoadFigures | None, bounds: Bounds) -> Scope:
    """One step of control. Empty scopes are skipped first; widening wins; `loads` None leaves the rest as it is.

    Widening looks at all targets within the current scope, narrowing at those within the next narrower one alone, and
    a narrower scope without targets is never entered. Raises InvalidField when there is no target at all.
    """
    current = _first_with_targets(current, around)
    if loads is None:
        return current
    if _mean(loads, around.within[current]) > bounds.widen_above:
        return around.wider(current)
    narrower = around.narrower(current)
    nearer = around.within[narrower]
    return narrower if nearer.size and _mean(loads, nearer) < bounds.narrow_below else current


def _first_with_targets(scope: Scope, around: Reach) -> Scope:
    for candidate in around.scopes[around.scopes.index(scope) :]:
        if around.within[candidate].size:
            return candidate
    raise InvalidField("targets", [], "give at least one: the tasks of the receiving component")


def _mean(loads: LoadFigures, members: Positions) -> float:
    # Rounding of a plain sum can land on the wrong side of a bound.
    return math.fsum(loads[members]) / members.size


# What share of the traffic each target gets: busy ones lose quickly, the others recover slowly.
#
# Source: `updateRing` in Storm's `LoadAwareShuffleGrouping`.

Weights = npt.NDArray[np.int64]
"""One weight per target, 0…`HIGHEST`."""

HIGHEST = 100
GAIN = 1
LOSS = 10
TOLERATED_LOAD = 0.05
"""How far above the least loaded target in scope one may be and still gain."""


def full(targets: int) -> Weights:
    return np.full(targets, HIGHEST, dtype=np.int64)


def adjusted(weights: Weights, in_scope: Positions, loads: LoadFigures | None) -> Weights:
    """Weights after one refresh; those out of scope stay. `loads` None counts all as idle."""
    after = weights.copy()
    mine = weights[in_scope]
    if loads is None:
        gains = np.ones(mine.size, dtype=np.bool_)
    else:
        here = loads[in_scope]
        gains = here <= here.min() + TOLERATED_LOAD
    after[in_scope] = np.where(gains, np.minimum(mine + GAIN, HIGHEST), np.maximum(mine - LOSS, 0))
    return after
