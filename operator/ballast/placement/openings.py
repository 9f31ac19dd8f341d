"""Which nodes can take one more executor, kept up to date as executors take their places one by one."""

from __future__ import annotations

import numpy as np

from ballast.model.arrays import BoolArray, IntArray
from ballast.placement.outlook import Outlook
from ballast.placement.room import fits


class Openings:
    """Room, limits and separations of an outlook; rows are the outlook's groups, columns the pool's nodes."""

    def __init__(self, view: Outlook) -> None:
        self._view = view
        self._codes = view.pool.grid.codes
        self._room, self._unasked = view.room.copy(), view.demand <= 0
        self._node_left = view.node_limit.copy()
        self._zone_left = view.zone_limit.copy()
        self._open = (view.capacity > 0) & (self._zone_left > 0)[view.component][:, self._codes[0]]
        self._listed: dict[int, IntArray] = {}
        """The open nodes of those rows that were asked for since they changed."""

    def able(self, row: int) -> IntArray:
        """Positions of the nodes that can take one more of the group, ascending; the same array until they change."""
        known = self._listed.get(row)
        if known is None:
            known = self._listed[row] = np.flatnonzero(self._open[row])
        return known

    def admits(self, row: int, node: int) -> bool:
        return bool(self._open[row, node])

    def copy(self) -> Openings:
        other = object.__new__(Openings)
        other._view, other._codes, other._unasked = self._view, self._codes, self._unasked
        other._room, other._open = self._room.copy(), self._open.copy()
        other._node_left, other._zone_left = self._node_left.copy(), self._zone_left.copy()
        other._listed = self._listed.copy()
        return other

    def give_back(self, row: int, node: int) -> None:
        """Undoes a `take`; not where components must keep apart, for who else is there is not known here."""
        component = int(self._view.component[row])
        self._room[node] += self._view.demand[row]
        self._node_left[component, node] += 1
        self._zone_left[component, self._codes[0, node]] += 1
        self._open = np.array([self._able(each) for each in range(len(self._view.groups))])
        self._listed.clear()

    def take(self, row: int, node: int) -> None:
        """One of the group goes to the node."""
        view, component = self._view, int(self._view.component[row])
        zone = self._codes[0, node]
        self._room[node] -= view.demand[row]
        self._node_left[component, node] -= 1
        self._zone_left[component, zone] -= 1
        holds = np.logical_and.reduce((self._room[node] + view.slack >= view.demand) | self._unasked, axis=1)
        closed = self._open[:, node] & ~(holds & (self._node_left[view.component, node] > 0))
        if closed.any():
            self._open[closed, node] = False
            for each in np.flatnonzero(closed).tolist():
                self._listed.pop(each, None)
        if self._zone_left[component, zone] <= 0:
            self._open[np.ix_(view.component == component, self._codes[0] == zone)] = False
            self._listed.clear()
        for level, members in view.apart:
            if component in members:
                others = np.isin(view.component, members[members != component])
                self._open[np.ix_(others, self._codes[level] == self._codes[level, node])] = False
                self._listed.clear()

    def _able(self, row: int) -> BoolArray:
        view, component = self._view, int(self._view.component[row])
        mask: BoolArray = view.allowed[row] & fits(self._room, view.demand[row], view.slack)
        mask &= self._node_left[component] > 0
        mask &= self._zone_left[component][self._codes[0]] > 0
        return mask
