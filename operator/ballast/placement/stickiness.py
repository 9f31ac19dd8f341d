"""Executors return to where they were, and a change in their number moves as few as possible.

The idea is Samza's host affinity. Its groupers give each process the floor share and deal out the rest, which moves
executors that could have stayed; here all return for which there is still a place and room.
"""

from __future__ import annotations

import numpy as np

from ballast.model.arrays import IntArray
from ballast.placement.placement_view import PlacementView
from ballast.placement.strategy import Openings, Seats


def returning(view: PlacementView) -> Seats:
    """As many executors as possible on nodes where theirs ran before and do not run now.

    With fewer executors than places, evenly: the next one returns to where the fewest of its component are. Where
    room is short, those that can go elsewhere among their own places, so that others return as well.
    """
    home = _Homecoming(view)
    rows = range(len(view.groups))
    for row in sorted(rows, key=lambda row: (home.choice(row), row)):
        while home.waiting(row) and home.seat(row, frozenset()):
            pass
    return home.seats


class _Homecoming:
    """The executors that have returned so far."""

    def __init__(self, view: PlacementView) -> None:
        self.seats: list[list[int]] = [[] for _ in view.groups]
        self._view = view
        self._openings = Openings(view)
        self._places = view.workload.vacancies.copy()
        self._there = view.workload.present.copy()

    def choice(self, row: int) -> int:
        """Places that the group could return to."""
        return int(self._places[self._view.component[row], self._openings.able(row)].sum())

    def waiting(self, row: int) -> bool:
        return len(self.seats[row]) < int(self._view.counts[row])

    def seat(self, row: int, passed: frozenset[int]) -> bool:
        """One of the group returns, to a node that is not passed over; False when none can."""
        mine = self._places[self._view.component[row]]
        able = self._openings.able(row)
        able = able[mine[able] > 0]
        able = able[[node not in passed for node in able.tolist()]] if passed else able
        if len(able):
            self._put(row, self._emptiest(row, able))
            return True
        # Which components must keep apart depends on the order of arrival, so none is asked to go elsewhere then.
        closed = [] if self._view.apart else [node for node in np.flatnonzero(mine).tolist() if node not in passed]
        return any(self._make_room(row, node, passed) for node in closed)

    def _make_room(self, row: int, node: int, passed: frozenset[int]) -> bool:
        """An executor that has returned to the node goes to another of its places, and one of this group takes it."""
        for other in range(len(self.seats)):
            if other != row and node in self.seats[other]:
                before = [list(nodes) for nodes in self.seats], self._places.copy(), self._there.copy()
                openings = self._openings.copy()
                self._take_away(other, node)
                gives_way = self._openings.admits(row, node) and self.seat(other, passed | {node})
                if gives_way and self._openings.admits(row, node):
                    self._put(row, node)
                    return True
                self.seats, self._places, self._there = before
                self._openings = openings
        return False

    def _put(self, row: int, node: int) -> None:
        component = self._view.component[row]
        self._openings.take(row, node)
        self.seats[row].append(node)
        self._there[component, node] += 1
        self._places[component, node] -= 1

    def _take_away(self, row: int, node: int) -> None:
        component = self._view.component[row]
        self._openings.give_back(row, node)
        self.seats[row].remove(node)
        self._there[component, node] -= 1
        self._places[component, node] += 1

    def _emptiest(self, row: int, able: IntArray) -> int:
        """Where the fewest of its component are, then where most were, then where it is coolest and most is free."""
        view, component = self._view, self._view.component[row]
        keys = (
            -view.room[able, 0],
            -view.preference[able],
            -self._places[component, able],
            self._there[component, able],
        )
        return int(able[np.lexsort(keys)[0]])
