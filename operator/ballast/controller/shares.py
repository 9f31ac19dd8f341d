"""How much of the memory the objects of one namespace may take.

A user who may create SparkTopologies or ExecutorMoves in one namespace can create very many, and topologies as long as
the API server takes. What is beyond the share of their namespace is left alone, and named in the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

MOST_BYTES = 4 << 20
"""Of the specs of one namespace's topologies, as JSON. Parsed, they take some seven times as much."""
LEAST_BYTES = 1 << 10
"""That a topology counts with, however short: it takes that much seven times, too."""
MOST_BY_HAND = 2_000
"""Moves by hand of one namespace."""


class Shares:
    """Not safe for threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: dict[str, tuple[str, int]] = {}
        """Namespace and size, by uid."""
        self._sums: Counter[str] = Counter()
        self._refused: dict[str, str] = {}
        """Namespaces of those that found no room, by uid."""
        self.refused: Counter[str] = Counter()
        """How many found no room, by namespace."""
        self._freed: set[str] = set()
        """Namespaces in which there is more room since."""

    def take(self, uid: str, namespace: str, size: int) -> bool:
        """Whether there is room for an object of that size, which it then has; what it had before is given up."""
        self.give_back(uid)
        if self._sums[namespace] + size > self._most:
            self._refused[uid] = namespace
            self.refused[namespace] += 1
            return False
        self._taken[uid] = namespace, size
        self._sums[namespace] += size
        return True

    def give_back(self, uid: str) -> None:
        """Its object is gone, or is another one now."""
        if (refused := self._refused.pop(uid, None)) is not None:
            self.refused[refused] -= 1
        if uid not in self._taken:
            return
        namespace, size = self._taken.pop(uid)
        self._sums[namespace] -= size
        if not self._sums[namespace]:
            del self._sums[namespace]
        self._freed.add(namespace)

    def keep(self, uids: Container[str]) -> None:
        """Only these are there."""
        for uid in [each for each in (*self._taken, *self._refused) if each not in uids]:
            self.give_back(uid)

    def hopeful(self) -> frozenset[str]:
        """Uids of those that found no room, where there is more since this was last asked."""
        found = frozenset(uid for uid, namespace in self._refused.items() if namespace in self._freed)
        self._freed.clear()
        return found
