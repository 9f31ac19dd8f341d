"""How much of the operator's memory the objects of one namespace may take.

A user who may create SparkTopologies or ExecutorMoves in one namespace can create very many, and topologies as long as
the API server takes. Objects beyond the quota of their namespace are left alone, and named in the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

TOPOLOGY_BYTES = 4 << 20
"""Of the specs of one namespace's topologies, as JSON. Parsed, they take about seven times as much."""
LEAST_TOPOLOGY_BYTES = 1 << 10
"""What each topology counts as at least: however short, it takes about seven times that much, too."""
MOVES_BY_HAND = 2_000
"""Of one namespace."""


class Quota:
    """Not thread-safe: callers hold the lock of the store that the objects are in. `most`: of each namespace."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._admitted: dict[str, tuple[str, int]] = {}
        """Namespace and size, by uid."""
        self._used: Counter[str] = Counter()
        """Sum of sizes, by namespace."""
        self._refused: dict[str, str] = {}
        """Namespaces, by uid."""
        self.refused: Counter[str] = Counter()
        """How many are refused, by namespace."""
        self._freed: set[str] = set()
        """Namespaces that use less than when `retriable` was last called."""

    def admit(self, uid: str, namespace: str, size: int) -> bool:
        """Whether an object of that size is within the quota. Its size replaces the one that it had before."""
        self.remove(uid)
        if self._used[namespace] + size > self._most:
            self._refused[uid] = namespace
            self.refused[namespace] += 1
            return False
        self._admitted[uid] = namespace, size
        self._used[namespace] += size
        return True

    def remove(self, uid: str) -> None:
        if (refused := self._refused.pop(uid, None)) is not None:
            self.refused[refused] -= 1
        if uid not in self._admitted:
            return
        namespace, size = self._admitted.pop(uid)
        self._used[namespace] -= size
        if not self._used[namespace]:
            del self._used[namespace]
        self._freed.add(namespace)

    def retain(self, uids: Container[str]) -> None:
        """Remove all others."""
        for uid in [each for each in (*self._admitted, *self._refused) if each not in uids]:
            self.remove(uid)

    def retriable(self) -> frozenset[str]:
        """Uids of refused objects in namespaces that use less than when this was last called."""
        found = frozenset(uid for uid, namespace in self._refused.items() if namespace in self._freed)
        self._freed.clear()
        return found
