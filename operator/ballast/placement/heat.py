"""Which nodes the shedder would unload: nothing is placed there that would have to move again."""

from __future__ import annotations

from math import inf

import numpy as np

from ballast.model import LoadUnit, SheddingPolicy
from ballast.model.arrays import BoolArray, FloatArray


def would_be_unloaded(scores: FloatArray, shedding: SheddingPolicy) -> BoolArray:
    """(nodes,): hot by the shedder's own measure, were it to see these scores for long enough. NaN scores are not.

    Of strategies that go by traffic, nothing is known to be hot; nor is a node that would be unloaded only because
    others are too cold, or all are too far apart.
    """
    known = scores[~np.isnan(scores)]
    limit = _limit(known, shedding) if len(known) else inf
    result: BoolArray = np.nan_to_num(scores, nan=-np.inf) >= limit
    return result


def _limit(known: FloatArray, shedding: SheddingPolicy) -> float:
    """The score from which a node is unloaded; infinite where scores do not tell."""
    rules, settings = shedding.avg_shedder, dict(shedding.settings)
    threshold = settings.get("threshold", inf)
    if shedding.strategy == "AvgShedder" and rules.unit is LoadUnit.USAGE:
        return max(rules.min_hot_score, float(known.min()) + rules.low_threshold)
    if shedding.strategy == "OverloadShedder":
        return threshold
    if shedding.strategy == "ThresholdShedder":
        return float(known.mean()) + threshold
    if shedding.strategy == "TransferShedder":
        outlier = float(known.mean()) + settings.get("target_std_dev", inf)
        return max(settings.get("overload_threshold", inf), outlier)
    return inf
