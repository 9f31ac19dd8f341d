"""Equality of recorded values: floats to 1e-9 relative, everything else exactly."""

from __future__ import annotations

import math
from typing import Any


def same(ours: Any, theirs: Any) -> bool:
    """Compares nested dicts, lists and figures; Java's NaN is recorded as a string."""
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and ours.keys() == theirs.keys() and all(same(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(same(one, other) for one, other in zip(ours, theirs, strict=True))
    if theirs == "NaN":
        return isinstance(ours, float) and math.isnan(ours)
    whole = isinstance(ours, int) and isinstance(theirs, int)
    if not whole and isinstance(ours, int | float) and isinstance(theirs, int | float):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)
    return bool(ours == theirs)
