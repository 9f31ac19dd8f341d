"""Which topologies without executors are looked at in a reconcile.

A user who may create SparkTopologies in one namespace can create thousands ("junk flood"). A reconcile looks at a few
of those that have no executors, each namespace in turn, so that gated executors do not wait until all their statuses
are worked out. Topologies with executors always come, and so do those of which is remembered where executors were.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from ballast.api import SparkTopology
from ballast.controller.membership import key_of
from ballast.fairness import in_turn
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
        self._reconciles = 0
        self._seen: dict[tuple[str, int], float] = {}
        """By key and generation, when it last came (seconds since the epoch)."""
        self._served: dict[str, int] = {}
        """By namespace, the reconcile in which one of its topologies last came."""
        self._coming: frozenset[str] = frozenset()
        self._oldest: float | None = None
        """When that of the others came that has waited longest: negative infinity for one that never did."""

    def begin(self, topologies: Iterable[SparkTopology], now: float, *, gated: bool = False) -> None:
        """`gated`: whether executors wait for Ballast alone."""
        most = MOST_WHILE_GATED if gated else MOST
        versions = {_version(each): each for each in topologies}
        # The wall clock may have stepped backwards.
        self._seen = {version: min(at, now) for version, at in self._seen.items() if version in versions}
        spaces = {_namespace(each) for each in versions.values()}
        self._served = {space: at for space, at in self._served.items() if space in spaces}
        self._reconciles += 1
        turns = in_turn(sorted(versions.values(), key=self._age), namespace=_namespace, served=self._served)
        for each in turns[:most]:
            self._seen[_version(each)] = now
            self._served[_namespace(each)] = self._reconciles
        self._coming = frozenset(key_of(each) for each in turns[:most])
        self._oldest = min((self._age(each)[0] for each in turns[most:]), default=None)

    def coming(self, memory: Memory) -> frozenset[str]:
        """Keys of those that come in a pass with this memory, also if they have no executors."""
        return self._coming.union(key for key, _, _ in (*memory.placements, *memory.scopes))

    def postpone(self, keys: Collection[str]) -> None:
        """Topologies that came, and of which nothing could be done yet: they are as those that never came."""
        left = {version for version in self._seen if version[0] in keys}
        for version in left:
            del self._seen[version]
        if left:
            self._oldest = -math.inf

    def again_at(self, now: float) -> float | None:
        """When to look at those that had no turn: at once where one of them was never looked at."""
        return None if self._oldest is None else max(now, self._oldest + AGAIN_SECONDS)

    def _age(self, topology: SparkTopology) -> tuple[float, str]:
        return self._seen.get(_version(topology), float("-inf")), key_of(topology)


def _version(topology: SparkTopology) -> tuple[str, int]:
    """Another generation is a topology that was never looked at."""
    return key_of(topology), topology.metadata.generation or 0


def _namespace(topology: SparkTopology) -> str:
    return topology.metadata.namespace or ""
