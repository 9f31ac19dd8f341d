"""Which topologies without executors are looked at in a reconcile: a few, those first that had their turn longest ago.

Gated executors do not wait until the statuses of all of them are worked out. Topologies with executors always come, and
so do those of which is remembered where executors were.
"""

from __future__ import annotations

from collections.abc import Iterable

from ballast.api import SparkTopology
from ballast.controller.membership import key_of
from ballast.model import Memory

MOST = 20
"""In one reconcile."""
MOST_WHILE_GATED = 3
"""While executors are at their gates: each may be a request that they wait for."""
AGAIN_SECONDS = 60.0
"""Until one that was looked at, and had no turn since, is looked at again."""


class TopologyTurns:
    """`begin` with all topologies of a reconcile, then ask about those without executors."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], float] = {}
        """By key and generation, when it last came (seconds since the epoch)."""
        self._coming: frozenset[str] = frozenset()
        self._oldest: float | None = None
        """When that of the others came that has waited longest: negative infinity for one that never did."""

    def begin(self, topologies: Iterable[SparkTopology], now: float, *, gated: bool = False) -> None:
        """`gated`: whether executors wait for Ballast alone."""
        most = MOST_WHILE_GATED if gated else MOST
        versions = {_version(each): each for each in topologies}
        # The wall clock may have stepped backwards.
        self._seen = {version: min(at, now) for version, at in self._seen.items() if version in versions}
        turns = sorted(versions.values(), key=self._age)
        self._seen |= dict.fromkeys(map(_version, turns[:most]), now)
        self._coming = frozenset(key_of(each) for each in turns[:most])
        self._oldest = min((self._age(each)[0] for each in turns[most:]), default=None)

    def coming(self, memory: Memory) -> frozenset[str]:
        """Keys of those that come in a pass with this memory, also if they have no executors."""
        return self._coming.union(key for key, _, _ in (*memory.placements, *memory.scopes))

    def again_at(self, now: float) -> float | None:
        """When to look at those that had no turn: at once where one of them was never looked at."""
        return None if self._oldest is None else max(now, self._oldest + AGAIN_SECONDS)

    def _age(self, topology: SparkTopology) -> tuple[float, str]:
        return self._seen.get(_version(topology), float("-inf")), key_of(topology)


def _version(topology: SparkTopology) -> tuple[str, int]:
    """Another generation is a topology that was never looked at."""
    return key_of(topology), topology.metadata.generation or 0
