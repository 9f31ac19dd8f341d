"""Bang-bang control of how far a sender looks: wider when those within reach are busy, narrower when nearer ones idle.

Source: `transition` in Storm's `LoadAwareShuffleGrouping`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ballast.errors import InvalidField
from ballast.grouping.reach import Positions, Reach
from ballast.model.location import Scope

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
