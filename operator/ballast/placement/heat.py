"""Which nodes the shedder would unload: nothing is placed there that would have to move again."""

from __future__ import annotations

from math import inf

import numpy as np

from ballast.model import LoadUnit, SheddingPolicy
from ballast.model.arrays import BoolArray, FloatArray


def would_be_unloaded(scores: FloatArray, shedding: SheddingPolicy) -> BoolArray:
    """(nodes,): hot by the shedder's own measure, were it to see these scores for long enough. NaN scores are not.

    Of strategies that go by traffic, nothing is known to be hot; nor is a node that is unloaded because the hottest
    one can't spare an executor.
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
        return _above_mean(known, threshold, lower_boundary=settings.get("lower_boundary", 0.0) > 0)
    if shedding.strategy == "TransferShedder":
        return _apart(known, settings.get("target_std_dev", inf), settings.get("overload_threshold", inf))
    return inf


def _above_mean(known: FloatArray, threshold: float, *, lower_boundary: bool) -> float:
    """Where no node is too far above the mean, one that is too far below it has the hottest unloaded."""
    mean, hottest = float(known.mean()), float(known.max())
    too_cold = lower_boundary and float(known.min()) < mean - threshold
    return hottest if too_cold and hottest < mean + threshold else mean + threshold


def _apart(known: FloatArray, target: float, overload: float) -> float:
    """While the scores as a whole are too far apart, whoever is the hottest is unloaded, one after the other."""
    mean = float(known.mean())
    return float(np.nextafter(mean, inf)) if float(known.std()) > target else max(overload, mean + target)
