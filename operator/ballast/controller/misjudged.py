"""Namespaces in which kube-scheduler found no node for an executor that Ballast had nominated.

No executor there is nominated for a while. Otherwise a user could delete such executors and create others, and
kube-scheduler would keep the room of a node for each in turn. A user with many namespaces could do so in each in turn,
so one in which it happens again is remembered for longer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ballast.model import Snapshot
from ballast.planner.nominations import misjudged_namespaces

_SECONDS = 120.0
"""How long a namespace is remembered, the first time."""
_MOST_SECONDS = 8 * _SECONDS


@dataclass(frozen=True, slots=True)
class _Kept:
    until: float
    """Monotonic seconds."""
    seconds: float
    """For which it is remembered. If it happens within as long again afterwards, it is for twice as long."""


class Misjudged:
    """`monotonic`: seconds that are never set back."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._kept: dict[str, _Kept] = {}
        """By namespace."""

    def remembered(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Those of the snapshot, and those remembered."""
        now = self._monotonic()
        self._kept = {name: kept for name, kept in self._kept.items() if now < kept.until + kept.seconds}
        for name in misjudged_namespaces(snapshot):
            seconds = self._seconds(name, now)
            self._kept[name] = _Kept(now + seconds, seconds)
        return tuple(sorted(name for name, kept in self._kept.items() if now < kept.until))

    def _seconds(self, namespace: str, now: float) -> float:
        before = self._kept.get(namespace)
        if before is None:
            return _SECONDS
        return before.seconds if now < before.until else min(2 * before.seconds, _MOST_SECONDS)
