"""Namespaces in which kube-scheduler found no node for an executor that Ballast had nominated.

No executor there is nominated for a while. Otherwise a user could delete such executors and create others, and
kube-scheduler would keep the room of a node for each in turn. A user with many namespaces could do so in each in turn,
so one in which it happens again is remembered for longer.
"""

from __future__ import annotations

from collections.abc import Callable

from ballast.controller.backoff import Backoff
from ballast.model import Snapshot
from ballast.planner.nominations import misjudged_namespaces

_FIRST_SECONDS = 120.0
_LONGEST_SECONDS = 8 * _FIRST_SECONDS


class Misjudged:
    """`monotonic`: seconds that are never set back."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._backoff = Backoff(first_seconds=_FIRST_SECONDS, longest_seconds=_LONGEST_SECONDS)

    def remembered(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Those of the snapshot, and those remembered."""
        now = self._monotonic()
        for namespace in misjudged_namespaces(snapshot):
            self._backoff.add(namespace, now)
        return tuple(sorted(self._backoff.keys(now)))
