"""Strategy RoundRobin: one node after the other, by name, going on after the one chosen last."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ballast.model import Executor
from ballast.model.arrays import IntArray
from ballast.placement.node_locations import NodeLocations
from ballast.placement.placement_view import PlacementView
from ballast.placement.strategy import Seats, one_by_one

# RoundRobin: one node after the other.
#
# Source: Pulsar's `RoundRobinBrokerSelector`. Ours goes on after the node chosen last, by name, so a node that joins
# or leaves shifts no other turn.

_LARGEST_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it was. Plain values, fit for JSON."""

    last: str = ""
    count: int = 0
    """As Pulsar: how many were chosen so far."""
    listed: tuple[str, ...] = ()
    """As Pulsar: the candidates of the last pass."""


@dataclass(frozen=True, slots=True)
class RoundRobinSettings:
    by_count: bool = False
    """As Pulsar: the n-th choice is the n-th of a list, modulo its length, and the list is renewed only when its
    length differs or the chosen one is gone."""


def choose(candidates: Sequence[str], settings: RoundRobinSettings, turn: Turn) -> tuple[str | None, Turn]:
    """The next node, and the turn to remember; None when there is no candidate."""
    if not candidates:
        return None, turn
    if settings.by_count:
        return _by_count(candidates, turn)
    order = sorted(candidates)
    chosen = order[following(order, turn.last) % len(order)]
    return chosen, Turn(chosen)


def following(order: Sequence[str], last: str) -> int:
    """Position in a sorted order of the first after `last`; its length when there is none, and the round is over."""
    return bisect_right(order, last)


def _by_count(candidates: Sequence[str], turn: Turn) -> tuple[str, Turn]:
    index = turn.count % len(candidates)
    listed = turn.listed if len(turn.listed) == len(candidates) else tuple(candidates)
    if listed[index] not in candidates:
        listed = tuple(candidates)
    following = 0 if turn.count == _LARGEST_INT else turn.count + 1
    return listed[index], Turn(listed[index], following, listed)


class RoundRobin:
    """`turn`: name of the node that was chosen last; it need not exist any more."""

    def __init__(self, locations: NodeLocations, turn: str) -> None:
        self._names = [node.name for node in locations.nodes]
        self.turn = turn

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        return one_by_one(view, turns, self._choose)

    def took(self, executor: Executor, node: int) -> None:
        """No turn was used."""

    def _choose(self, able: IntArray, _row: int) -> int:
        position = int(np.searchsorted(able, following(self._names, self.turn)))
        node = int(able[position % len(able)])
        self.turn = self._names[node]
        return node
