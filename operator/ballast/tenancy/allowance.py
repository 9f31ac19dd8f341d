"""What the objects of one namespace may bring about at once, and how soon more: a token bucket for each."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

_KEPT = 10_000
"""Namespaces; of more, that is forgotten which was heard of longest ago."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Allowances:
    """`burst`: how many at once; one more after `refill_seconds`. Not safe for threads. Times are of any one clock."""

    def __init__(self, burst: int, refill_seconds: float) -> None:
        self._burst, self._refill_seconds = float(burst), refill_seconds
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, namespace: str, now: float) -> bool:
        """Whether the namespace may have one more now."""
        bucket = self._buckets.setdefault(namespace, _Bucket(self._burst, now))
        self._buckets.move_to_end(namespace)
        while len(self._buckets) > _KEPT:
            self._buckets.popitem(last=False)
        # The wall clock may have stepped backwards.
        bucket.left = min(self._burst, bucket.left + max(0.0, now - bucket.at) / self._refill_seconds)
        bucket.at = now
        if bucket.left < 1.0:
            return False
        bucket.left -= 1.0
        return True
