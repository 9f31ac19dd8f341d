"""The choice ring: a shuffled round of targets in which each appears as often as its weight says.

Source: `updateRing` in Storm's `LoadAwareShuffleGrouping`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ballast.grouping.reach import Positions
from ballast.grouping.weights import Weights

Ring = npt.NDArray[np.int32]
"""Positions of targets in the order in which they are chosen; read-only."""

LEAST_SLOTS = 1000
LEAST_SLOTS_PER_TARGET = 5


def capacity(targets: int) -> int:
    """Slots of a ring for so many targets, whether in scope or not."""
    return 1 if targets == 1 else max(LEAST_SLOTS, LEAST_SLOTS_PER_TARGET * targets)


def certain_slots(weights: Weights, in_scope: Positions, slots: int) -> npt.NDArray[np.int64]:
    """Slots of each target in scope that don't depend on chance; they sum to at most `slots`. None without weight."""
    mine = weights[in_scope]
    shares: npt.NDArray[np.float64] = mine / max(mine.sum(), 1) * slots
    return shares.astype(np.int64)


def spun(weights: Weights, in_scope: Positions, *, slots: int, random: np.random.Generator) -> Ring:
    """A ring of `slots` choices. What rounding leaves over goes to copies of slots already filled.

    If no target in scope has any weight, all targets take turns, those out of scope too.
    """
    ring = np.empty(slots, dtype=np.int32)
    certain = np.repeat(in_scope, certain_slots(weights, in_scope, slots))
    if not certain.size:
        certain = np.arange(slots) % weights.size
    ring[: certain.size] = certain
    # Each copy may be copied in turn, so these can't be drawn at once.
    for slot in range(certain.size, slots):
        ring[slot] = ring[random.integers(slot)]
    random.shuffle(ring)
    ring.flags.writeable = False
    return ring
