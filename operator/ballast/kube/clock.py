"""The one clock that the operator counts by: the API server's, which stamps pods, leases and writes.

A machine's own clock may be wrong by an hour. Compared with the API server's stamps, it would take every pod for one
that has waited for an hour, or a move's replacement for a pod that was there before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from ballast.http_date import ahead_seconds

_LOG = logging.getLogger(__name__)
TOLERANCE_SECONDS = 3.0
"""With a second each that Date and creationTimestamp are rounded down by, less than `moves.arriving` allows for."""
MOST_AHEAD_SECONDS = 60.0
"""By which another replica's clock may be ahead: a time in a status that is later is none that Ballast wrote."""


class ServerClock:
    """Call it for the time, in seconds since the epoch: that of `own`, corrected once it is wrong by more than
    TOLERANCE_SECONDS.

    `heard` is called with each answer, by one thread at a time.
    """

    def __init__(self, own: Callable[[], float]) -> None:
        self._own = own
        self.behind_seconds = 0.0
        """By how much `own` is behind the API server's clock, as far as it is corrected; negative: ahead."""

    def __call__(self) -> float:
        return self._own() + self.behind_seconds

    def heard(self, headers: Mapping[str, str], *, asked_at: float) -> None:
        """Answers that come from a cache, or not from an API server, say nothing about its clock."""
        if "Age" in headers or not headers.get("Content-Type", "").startswith("application/json"):
            return
        ahead = ahead_seconds(headers.get("Date"), asked_at=asked_at, answered_at=self())
        if ahead is not None and abs(ahead) > TOLERANCE_SECONDS:
            self.behind_seconds += ahead
            side = "behind" if self.behind_seconds > 0 else "ahead of"
            words = "this machine's clock is %.0f s %s the API server's, which counts: synchronize it (NTP)"
            _LOG.warning(words, abs(self.behind_seconds), side)
