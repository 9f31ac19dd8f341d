"""Strategy AvgShedder: what was shed goes where that decision said, everything else is spread at random.

Random, so that the executors of a node that died do not all land on one other; drawn from a seed that the executors
give, so that the same question has the same answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from ballast.model import Executor, MovePhase, Snapshot
from ballast.model.arrays import IntArray
from ballast.placement.placement_view import PlacementView
from ballast.placement.strategy import Seats, draw, one_by_one

# AvgShedder's own placement: what it shed goes where the decision said, everything else is spread at random.
#
# Source: Pulsar's `AvgShedder.selectBroker`. Random on purpose and not a hash of the executor: so the executors of a
# node that died do not all land on one other node.


@dataclass(frozen=True, slots=True)
class Destinations:
    """Where executors were told to go, by key, sorted. Plain values, fit for JSON."""

    by_key: tuple[tuple[str, str], ...] = ()

    def of(self, key: str) -> str | None:
        return dict(self.by_key).get(key)

    def noting(self, decided: Iterable[tuple[str, str]]) -> Destinations:
        """These, with the decided ones (key, node) added or changed. Start from `Destinations()` at each planning."""
        return Destinations(tuple(sorted({**dict(self.by_key), **dict(decided)}.items())))


def possible(key: str, candidates: Sequence[str], destinations: Destinations) -> tuple[str, ...]:
    """The nodes that may take the executor: its destination if that is a candidate, else any of them.

    The one drawn should be noted, so that asking again gives the same answer.
    """
    planned = destinations.of(key)
    return (planned,) if planned is not None and planned in candidates else tuple(candidates)


class AvgShedder:
    def __init__(self, random: Random) -> None:
        self._random = random

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        return one_by_one(view, turns, self._choose)

    def took(self, executor: Executor, node: int) -> None:
        """Chance has no memory."""

    def _choose(self, able: IntArray, _row: int) -> int:
        return draw(able, self._random)


def destinations(snapshot: Snapshot, gated: Collection[Executor]) -> Destinations:
    """By executor key: the targets of moves whose replacement it is.

    A replacement is usually recognized by its move, and is not placed by a strategy then. Where that has not happened
    in time, the earliest executors of the same application and profile take the places that moves wait to fill.
    """
    waiting: dict[tuple[str, str, str], list[Executor]] = defaultdict(list)
    for executor in sorted(gated, key=lambda e: (e.created_at, e.key)):
        waiting[executor.namespace, executor.application, executor.resource_profile].append(executor)
    decided: list[tuple[str, str]] = []
    for move in sorted(snapshot.moves, key=lambda m: (m.started_at, m.namespace, m.name)):
        alike = waiting[move.namespace, move.application, move.resource_profile]
        if move.phase in (MovePhase.LEAVING, MovePhase.ARRIVING) and move.replacement_uid is None and alike:
            decided.append((alike.pop(0).key, move.target))
    return Destinations().noting(decided)
