"""Namespaces in which kube-scheduler found no node for an executor that Ballast had nominated.

No executor there is nominated for a while. Otherwise a user could delete such executors and create others, and
kube-scheduler would keep the room of a node for each in turn.
"""

from __future__ import annotations

from collections.abc import Callable

from ballast.model import Snapshot
from ballast.planner.nominations import misjudged_namespaces

_SECONDS = 120.0
"""How long a namespace is remembered."""


class Misjudged:
    """`monotonic`: seconds that are never set back."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._until: dict[str, float] = {}
        """By namespace."""

    def remembered(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Those of the snapshot, and those remembered."""
        now = self._monotonic()
        self._until |= dict.fromkeys(misjudged_namespaces(snapshot), now + _SECONDS)
        self._until = {namespace: until for namespace, until in self._until.items() if until > now}
        return tuple(sorted(self._until))
