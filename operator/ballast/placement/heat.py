"""Which nodes the shedder would unload: nothing is placed there that would have to move again."""

from __future__ import annotations

import numpy as np

from ballast.model import LoadUnit, SheddingPolicy
from ballast.placement.arrays import BoolArray, FloatArray


def would_be_unloaded(scores: FloatArray, shedding: SheddingPolicy) -> BoolArray:
    """(nodes,): hot by the shedder's own measure, and far enough above the coldest node. NaN scores are not.

    Only AvgShedder by usage looks at these scores; for every other strategy nothing is known to be hot.
    """
    rules = shedding.avg_shedder
    known = scores[~np.isnan(scores)]
    if shedding.strategy != "AvgShedder" or rules.unit is not LoadUnit.USAGE or not len(known):
        return np.zeros(len(scores), dtype=np.bool_)
    limit = max(rules.min_hot_score, float(known.min()) + rules.low_threshold)
    result: BoolArray = np.nan_to_num(scores, nan=-np.inf) >= limit
    return result
