"""A stand-in for kube-scheduler: it binds what was released, as far as requests and node affinity allow."""

from __future__ import annotations

import numpy as np

from ballast.model import Location
from ballast.model.arrays import BoolArray, FloatArray
from ballast.simulation.cluster import Cluster

_FORGIVEN = np.array([1e-6, 1.0, 1e-6])


class Scheduler:
    """For one moment; what it binds counts against the room of what comes after."""

    def __init__(self, cluster: Cluster, locations: tuple[Location, ...], time: float) -> None:
        self._cluster, self._locations, self._time = cluster, locations, time
        self._free = cluster.allocatable - cluster.requested()
        self._open = cluster.open

    def fits(self, slot: int, node: int) -> bool:
        return bool(self._able(slot)[node])

    def bind(self, slot: int, *, preferred: int | None = None, within: Location = ()) -> int | None:
        """The node it was bound to, or None: it waits for room.

        The preferred node if it fits there; else, among the nodes that agree with `within` (far to near, as far as it
        goes), the one that will have the largest mean share of CPU and memory left.
        """
        able = self._able(slot)
        if preferred is not None and able[preferred]:
            node = preferred
        else:
            able &= self._agreeing(within)
            if not able.any():
                self._cluster.release(slot, self._time)
                return None
            node = int(np.argmax(np.where(able, self._shares(slot), -np.inf)))
        self._free[node] -= self._cluster.executor_slots.requests[slot]
        self._cluster.bind(slot, node, self._time)
        return node

    def _able(self, slot: int) -> BoolArray:
        fitting: BoolArray = (self._free + _FORGIVEN >= self._cluster.executor_slots.requests[slot]).all(axis=1)
        return fitting & self._open

    def _shares(self, slot: int) -> FloatArray:
        left = self._free[:, :2] - self._cluster.executor_slots.requests[slot, :2]
        shares: FloatArray = (left / self._cluster.allocatable[:, :2]).mean(axis=1)
        return shares

    def _agreeing(self, within: Location) -> BoolArray:
        depth = len(within)
        return np.array([location[:depth] == within for location in self._locations]) if depth else self._open
