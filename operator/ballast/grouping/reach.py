"""Which targets lie within each scope of a sender."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ballast.grouping.place import Place, scope_between
from ballast.model.location import Scope

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
