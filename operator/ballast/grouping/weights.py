"""What share of the traffic each target gets: busy ones lose quickly, the others recover slowly.

Source: `updateRing` in Storm's `LoadAwareShuffleGrouping`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ballast.grouping.reach import Positions
from ballast.grouping.scope_control import LoadFigures

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
