"""Which topologies' statuses are written in a reconcile.

Each is a request, and a user may create SparkTopologies by the thousand ("junk flood"). Once executors are to be
released, most statuses wait for the next reconcile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator

from ballast.controller.turns import in_turn

LEAST = 3
"""Written in each reconcile, also while executors are to be released."""


class StatusTurns:
    """`begin` with all topologies of a reconcile by key, then `take` those that have their turn."""

    def __init__(self) -> None:
        self._reconciles = 0
        self._written: dict[str, int] = {}
        """By topology, the reconcile in which it last had its turn."""
        self._served: dict[str, int] = {}
        """By namespace, the reconcile in which one of its topologies last had its turn."""
        self.postponed: frozenset[str] = frozenset()
        """Those that the last reconcile left to the next one."""

    def __len__(self) -> int:
        """How many things it remembers."""
        return len(self._written) + len(self._served)

    def begin(self, topologies: Collection[str]) -> None:
        """Forget those that are gone."""
        spaces = {_namespace(key) for key in topologies}
        self._written = {key: at for key, at in self._written.items() if key in topologies}
        self._served = {space: at for space, at in self._served.items() if space in spaces}

    def take(self, topologies: Iterable[str], release_due: Callable[[], bool]) -> Iterator[str]:
        """Each namespace in turn; in it, those first that have waited longest.

        `release_due`: whether executors are to be released now. It is asked before each one but the first few.
        """
        self._reconciles += 1
        left = deque(in_turn(topologies, namespace=_namespace, age=self._age, served=self._served))
        taken = 0
        while left and not (taken >= LEAST and release_due()):
            key = left.popleft()
            self._written[key] = self._served[_namespace(key)] = self._reconciles
            taken += 1
            yield key
        self.postponed = frozenset(left)

    def _age(self, topology: str) -> tuple[int, str]:
        return self._written.get(topology, 0), topology


def _namespace(topology: str) -> str:
    return topology.partition("/")[0]
