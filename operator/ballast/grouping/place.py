"""Where one end of a stream is, how far another end is from it, and which targets lie within each scope of a sender."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ballast.enums import Scope


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
    rungs: Positions
    """Of each target, the position of the nearest scope that holds it."""

    def wider(self, scope: Scope) -> Scope:
        """The next scope up; the widest is its own."""
        return self.scopes[min(self.scopes.index(scope) + 1, len(self.scopes) - 1)]

    def narrower(self, scope: Scope) -> Scope:
        """The next scope down; the narrowest is its own."""
        return self.scopes[max(self.scopes.index(scope) - 1, 0)]


def reach(source: Place, places: Sequence[Place | None]) -> Reach:
    """What `source` has around it; `places` holds one entry per target, None for one whose place is not known.

    A sender that knows no zone of its own has no zone scope.
    """
    scopes = WITHOUT_ZONES if source.zone is None else WITH_ZONES
    rungs = np.array([scopes.index(scope_between(source, place)) for place in places], dtype=np.intp)
    within = {scope: np.flatnonzero(rungs <= rung) for rung, scope in enumerate(scopes)}
    return Reach(scopes=scopes, within=within, rungs=rungs)
