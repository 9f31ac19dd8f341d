"""Executors of a replay come and go as they were recorded, until the policy has changed what becomes of one."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from ballast.model.arrays import BoolArray, IntArray
from ballast.simulation.cluster import Cluster, State
from ballast.simulation.recorded.slots import Slots
from ballast.simulation.recording import Recording
from ballast.simulation.trace import Cause


class Arrivals(StrEnum):
    """Where executors begin that nobody moved."""

    RECORDED = "recorded"
    POLICY = "policy"


class RecordedLife:
    """A slot follows the recording while what it holds is what the recording has there.

    It ceases to when its executor is moved, or when the recording has a move of the operator's: that is not repeated,
    the executor stays. From then on the slot is filled until the recording ends it, by an executor that runs where the
    policy has it, and it follows again once both are in the same place.
    """

    def __init__(self, recording: Recording, slots: Slots, arrivals: Arrivals) -> None:
        self._recording, self._slots, self._arrivals = recording, slots, arrivals
        self._step = -1
        self._occupant: IntArray = np.full(slots.count, -1, dtype=np.int64)
        self._follows: BoolArray = np.zeros(slots.count, dtype=bool)
        self._generation: IntArray = np.zeros(slots.count, dtype=np.int64)
        """Of each slot's executor when it last was the recorded one."""
        self.stayed: set[int] = set()
        """Executors that the operator moved in the recording, and that have stayed in the replay."""

    def advance(self, cluster: Cluster, time: float) -> None:
        step = self._recording.step_at(time)
        if self._step < 0:
            self._begin(cluster)
        while self._step < step:
            self._step += 1
            self._next(cluster, time)

    def _begin(self, cluster: Cluster) -> None:
        self._step = 0
        self._occupant = self._slots.occupant[0].copy()
        for slot in np.flatnonzero(self._occupant >= 0).tolist():
            self._join(cluster, slot)

    def _join(self, cluster: Cluster, slot: int) -> None:
        self._follows[slot], self._generation[slot] = True, cluster.generation[slot]
        cluster.name(slot, self._recording.executors[self._occupant[slot]].name)

    def _next(self, cluster: Cluster, time: float) -> None:
        before, self._occupant = self._occupant, self._slots.occupant[self._step].copy()
        self._follows &= (cluster.generation == self._generation) & (cluster.state != State.LEAVING)
        for slot in np.flatnonzero(before != self._occupant).tolist():
            if self._occupant[slot] < 0:
                self._ended(cluster, slot, int(before[slot]))
            else:
                self._began(cluster, slot, time)
        here = (self._occupant >= 0) & (cluster.state == State.RUNNING)
        here &= cluster.node == self._slots.node[self._step]
        for slot in np.flatnonzero(here & ~self._follows).tolist():
            self._join(cluster, slot)

    def _ended(self, cluster: Cluster, slot: int, executor: int) -> None:
        after = int(self._slots.successor[executor])
        if after < 0:
            cluster.empty(slot)
            cluster.alive[slot] = self._follows[slot] = False
        elif self._recording.executors[after].moved:
            self._stay(slot, executor)
        elif self._follows[slot]:
            cluster.empty(slot)

    def _stay(self, slot: int, executor: int) -> None:
        if self._follows[slot]:
            self.stayed.add(executor)
        self._follows[slot] = False

    def _began(self, cluster: Cluster, slot: int, time: float) -> None:
        index = int(self._occupant[slot])
        executor = self._recording.executors[index]
        known = bool(cluster.alive[slot])
        if known and executor.moved:
            self._stay(slot, int(np.flatnonzero(self._slots.successor == index)[0]))
        elif not known or self._follows[slot]:
            cluster.alive[slot] = True
            cluster.cause[slot] = Cause.LOST if known else Cause.START
            if self._arrivals is Arrivals.RECORDED:
                cluster.put(slot, executor.node, time)
                self._join(cluster, slot)
            else:
                cluster.ask(slot, time)
                cluster.name(slot, executor.name)
                self._follows[slot] = False
