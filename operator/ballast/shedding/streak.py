"""How long a node has been on the hot or the cold side of a pair that is apart, and how far out it was meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

_HORIZON_PASSES = 15


@dataclass(frozen=True, slots=True)
class Streak:
    """One node's. Plain values, fit for JSON."""

    hot: bool
    """Which side; a node that changes sides starts again."""
    partner: str = ""
    """The other node of the pair in the last pass."""
    low: int = 0
    """Hits over the low threshold; at most one a metric window."""
    high: int = 0
    """Hits in a row over the high threshold, likewise."""
    persistent: int = 0
    """Windows without a break in which the gap was wide enough to be leveled if it persists; not less than `low`."""
    last_at_seconds: float = 0.0
    """When the last hit or window was counted."""
    passes: int = 0
    deviation: float = 0.0
    """Points outwards from the pool's middle, mean over the streak or its last fifteen passes."""

    def hit(
        self, *, partner: str, low: bool, high: bool, deviation: float, now_seconds: float, window_seconds: float
    ) -> Streak:
        """The streak with one more pass in which the pair was apart; `low`, `high`: over which thresholds."""
        # A time in the future: the wall clock stepped backwards.
        counts = self.persistent == 0 or not 0 <= now_seconds - self.last_at_seconds < window_seconds
        counts_low = low and (counts or self.low == 0)
        counts_high = high and (counts or self.high == 0)
        passes = self.passes + 1
        weight = 1.0 / min(passes, _HORIZON_PASSES)
        return Streak(
            hot=self.hot,
            partner=partner,
            low=self.low + counts_low if low else 0,
            high=self.high + counts_high if high else 0,
            persistent=self.persistent + counts,
            last_at_seconds=now_seconds if counts or counts_low or counts_high else self.last_at_seconds,
            passes=passes,
            deviation=round(self.deviation + weight * (deviation - self.deviation), 3),
        )
