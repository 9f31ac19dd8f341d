"""Which moves, and which topologies' statuses, have their turn in a reconcile.

A user who may create ExecutorMoves or SparkTopologies in one namespace can create thousands ("junk flood"). A reconcile
handles a few of them, each namespace in turn, so that neither gated executors nor other namespaces wait for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator

from ballast.controller.cluster_objects import OpenMove
from ballast.controller.membership import namespace_of
from ballast.fairness import in_turn

MOST = 20
"""Moves that have not begun, and as many deletions of ended moves, in one reconcile."""
MOST_WHILE_GATED = 3
"""While executors are at their gates: each is two requests that they may wait for."""
MOST_SECONDS = 0.25
"""Spent on moves, after which no further ones of these have their turn: the API server may be slow."""
AGAIN_SECONDS = 5.0
"""Until moves that were seen before, and had no turn now, are looked at again."""
LEAST_STATUSES = 1
"""Of a topology, written in each reconcile, also while executors are to be released."""


class MoveTurns:
    """`begin` with all moves of a reconcile, then ask about each.

    Moves under way always have their turn: they are limited by the policies' budgets, and executors wait for them.
    """

    def __init__(self) -> None:
        self._reconciles = 0
        self._spent_seconds = 0.0
        self._most = MOST
        self._seen: dict[tuple[str, int], int] = {}
        """By uid and generation, the reconcile that last looked at it."""
        self._served: dict[str, int] = {}
        """By namespace, the reconcile that last looked at one of its moves."""
        self._rank: dict[str, int] = {}
        """Of those that have not begun, by key; those of the lowest ranks have their turn."""
        self._deletions = 0
        self._passed_over: list[OpenMove] = []

    def begin(self, moves: Iterable[OpenMove], *, gated: bool = False) -> None:
        """`gated`: whether executors wait for Ballast alone."""
        self._most = MOST_WHILE_GATED if gated else MOST
        waiting = [each for each in moves if not (each.state.phase.in_flight or each.state.phase.ended)]
        known = {_version(each) for each in waiting}
        self._seen = {version: at for version, at in self._seen.items() if version in known}
        spaces = {each.namespace for each in waiting}
        self._served = {space: at for space, at in self._served.items() if space in spaces}
        self._reconciles += 1
        self._spent_seconds, self._deletions, self._passed_over = 0.0, 0, []
        self._rank = {each.state.orders.key: rank for rank, each in enumerate(self._in_turn(waiting))}

    def order(self, moves: Iterable[OpenMove]) -> list[OpenMove]:
        """Those under way and those that ended first, the oldest before others; then the others in their turn."""
        return sorted(moves, key=lambda each: (self._rank.get(each.key, -1), each.state.orders.created_at, each.key))

    def comes(self, each: OpenMove) -> bool:
        """Whether to look at it now. Moves that `begin` was not told of always are looked at."""
        rank = self._rank.get(each.key)
        if rank is None:
            return True
        if rank >= self._most or (self._late and rank > 0):
            self._passed_over.append(each)
            return False
        self._seen[_version(each)] = self._served[each.namespace] = self._reconciles
        return True

    def hurry(self) -> None:
        """Executors are to be released now: the other moves wait for the next reconcile, except for one."""
        self._spent_seconds = MOST_SECONDS

    def spent(self, seconds: float) -> None:
        """So long one of them took."""
        self._spent_seconds += max(0.0, seconds)  # the wall clock may have stepped backwards

    def may_delete(self) -> bool:
        """Whether one more ended move may be deleted in this reconcile."""
        self._deletions += 1
        return self._deletions <= self._most and not self._late

    def again_at(self, now: float) -> float | None:
        """When to look at the moves that had no turn: at once where one of them was never looked at.

        Times are seconds since the epoch.
        """
        if not self._passed_over:
            return now + AGAIN_SECONDS if self._deletions > self._most else None
        unseen = any(_version(each) not in self._seen for each in self._passed_over)
        return now if unseen else now + AGAIN_SECONDS

    @property
    def _late(self) -> bool:
        return self._spent_seconds >= MOST_SECONDS

    def _in_turn(self, waiting: Iterable[OpenMove]) -> list[OpenMove]:
        def age(each: OpenMove) -> tuple[int, float, str]:
            return self._seen.get(_version(each), 0), each.state.orders.created_at, each.key

        return in_turn(sorted(waiting, key=age), namespace=lambda each: each.namespace, served=self._served)


class StatusTurns:
    """`begin` with all topologies of a reconcile by key, then `take` those whose statuses are written in it.

    Each is a request. Once executors are to be released, most of them wait for the next reconcile.
    """

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
        spaces = {namespace_of(key) for key in topologies}
        self._written = {key: at for key, at in self._written.items() if key in topologies}
        self._served = {space: at for space, at in self._served.items() if space in spaces}

    def take(self, topologies: Iterable[str], release_due: Callable[[], bool]) -> Iterator[str]:
        """Each namespace in turn; in it, those first that have waited longest.

        `release_due`: whether executors are to be released now. It is asked before each one but the first.
        """
        self._reconciles += 1
        ranked = sorted(topologies, key=lambda key: (self._written.get(key, 0), key))
        left = deque(in_turn(ranked, namespace=namespace_of, served=self._served))
        taken = 0
        while left and not (taken >= LEAST_STATUSES and release_due()):
            key = left.popleft()
            self._written[key] = self._served[namespace_of(key)] = self._reconciles
            taken += 1
            yield key
        self.postponed = frozenset(left)


def _version(each: OpenMove) -> tuple[str, int]:
    """Another generation is a move that a user has approved since: as one that was never looked at."""
    metadata = each.raw["metadata"]
    return metadata["uid"], metadata.get("generation") or 0
