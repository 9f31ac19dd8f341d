# When there is to be an executor in a slot, and when not any more: no policy decides that.

"""The state of the simulated cluster, and what happens in it by itself as time passes.

Executors start, leave and are lost here; which are wanted, and where they go, is decided elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Protocol

import numpy as np

from ballast.model import Phase
from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.simulation.inventory import ExecutorSlots, Fleet
from ballast.simulation.scenario import Moving
from ballast.simulation.scenario_models import Event
from ballast.simulation.trace import Cause

# Uids of simulated executors, such as `7.2`: the slot that one fills, and a number that grows from one to the next.


def uid_of(slot: int, generation: int) -> str:
    return f"{slot}.{generation}"


def slot_of(uid: str) -> int:
    return int(uid.partition(".")[0])


# The scenario's events as single changes of single nodes, in the order of time.


class Kind(Enum):
    BACK = auto()
    """The node is there, ready and open."""
    WARNED = auto()
    """It takes nothing new and will be gone soon."""
    DEAD = auto()
    """It does nothing any more, and is still listed."""
    GONE = auto()
    """It is not listed any more."""


@dataclass(frozen=True, slots=True)
class Change:
    at: float
    """Seconds since the run began."""
    node: int
    """Index in the fleet."""
    kind: Kind


def changes(events: tuple[Event, ...], fleet: Fleet) -> list[Change]:
    """What the events do to nodes, and the nodes that join later; the earliest first."""
    found = [change for event in events for change in _of(event, fleet)]
    found += [Change(float(fleet.joins_at[i]), i, Kind.BACK) for i in np.flatnonzero(fleet.joins_at > 0).tolist()]
    return sorted(found, key=lambda change: change.at)


def blackouts(events: tuple[Event, ...]) -> list[tuple[float, float]]:
    """When there are no metrics: from and until, in seconds since the run began."""
    return [(e.at.seconds, e.at.seconds + e.lasts.seconds) for e in events if e.blackout and e.lasts is not None]


def _of(event: Event, fleet: Fleet) -> Iterator[Change]:
    nodes = [node for subject in event.subjects for node in fleet.named(subject)]
    away = event.lasts.seconds if event.lasts is not None else None
    for position, node in enumerate(nodes):
        start = event.at.seconds + (position * event.every_seconds if event.restart else 0.0)
        if event.fail:
            gone = start
            yield Change(start, node, Kind.DEAD)
        else:
            gone = start + event.notice_seconds
            yield Change(start, node, Kind.WARNED)
            yield Change(gone, node, Kind.GONE)
        if away is not None:
            yield Change(gone + away, node, Kind.BACK)


class Life(Protocol):
    def advance(self, cluster: Cluster, time: float) -> None:
        """Executors due by then start, and those due to end do; times do not go backwards."""


class Lifetimes:
    """Each slot's executor is wanted from one time to another; what is wanted again is placed by the policy."""

    def advance(self, cluster: Cluster, time: float) -> None:
        wanted = (cluster.executor_slots.starts <= time) & (time < cluster.executor_slots.stops)
        if (wanted == cluster.alive).all():
            return
        for slot in np.flatnonzero(wanted & ~cluster.alive).tolist():
            cluster.ask(slot, time)
        for slot in np.flatnonzero(cluster.alive & ~wanted).tolist():
            cluster.empty(slot)
        cluster.alive = wanted


_PODS = 1000.0
"""How many a node takes; enough never to be what counts."""
_NEVER = np.inf
BEFORE = -3600.0
"""Since when everything has run that is there when the run begins."""


class State(IntEnum):
    ABSENT = 0
    """No executor; Spark will ask for one when `due`, or never."""
    GATED = 1
    PENDING = 2
    """Released; on its way to run when it has a node, else waiting for room."""
    RUNNING = 3
    """From here on it works."""
    LEAVING = 4
    """Asked to go; works until it is gone."""


PHASES = {
    int(State.GATED): Phase.GATED,
    int(State.PENDING): Phase.PENDING,
    int(State.RUNNING): Phase.RUNNING,
    int(State.LEAVING): Phase.LEAVING,
}


class Cluster:
    """Arrays by slot and by node that the parts of the simulation read, and change by the methods here.

    Times are seconds since the run began; NaN where a thing has not happened, infinite where it never will.
    `node`: by slot, the index of the node that its executor is bound to; -1 = none.
    """

    def __init__(
        self, fleet: Fleet, executor_slots: ExecutorSlots, *, moving: Moving, changes: Iterable[Change], life: Life
    ) -> None:
        self.fleet, self.executor_slots, self._moving, self._life = fleet, executor_slots, moving, life
        self._changes = deque(changes)
        slots, nodes = len(executor_slots), len(fleet)
        self.listed: BoolArray = fleet.joins_at <= 0
        self.ready: BoolArray = np.ones(nodes, dtype=bool)
        self.warned: BoolArray = np.zeros(nodes, dtype=bool)
        self.allocatable = np.stack([fleet.cores, fleet.memory_bytes, np.full(nodes, _PODS)], axis=1)
        self.state: IntArray = np.full(slots, State.ABSENT, dtype=np.int64)
        self.node: IntArray = np.full(slots, -1, dtype=np.int64)
        self.due: FloatArray = np.full(slots, _NEVER)
        self.generation: IntArray = np.zeros(slots, dtype=np.int64)
        self.born_at: FloatArray = np.full(slots, BEFORE)
        self.running_since: FloatArray = np.full(slots, np.nan)
        self.unschedulable_since: FloatArray = np.full(slots, np.nan)
        self.pinned: BoolArray = np.zeros(slots, dtype=bool)
        self.cause: list[Cause] = [Cause.START] * slots
        self.renewed: BoolArray = np.zeros(slots, dtype=bool)
        """Slots whose executor is a new one since this was last cleared."""
        self.alive: BoolArray = np.zeros(slots, dtype=bool)
        """Slots in which there is to be an executor: its application has started and not stopped."""
        self.names = [self._name(slot) for slot in range(slots)]
        """By slot: of its executor."""
        self.named: IntArray = np.zeros(slots, dtype=np.int64)
        """By slot: how often it was given a name."""
        self.homes: IntArray = executor_slots.homes.copy()
        """By slot: node index where it was last placed other than by a move; -1 = nowhere yet."""
        self._settle_in()

    def _settle_in(self) -> None:
        """Those that run from the beginning."""
        at_home = np.flatnonzero((self.executor_slots.homes >= 0) & (self.executor_slots.starts <= 0))
        self.alive[at_home] = True
        self.node[at_home] = self.executor_slots.homes[at_home]
        self.state[at_home] = State.RUNNING
        self.running_since[at_home] = BEFORE

    def _name(self, slot: int) -> str:
        app = self.executor_slots.apps[self.executor_slots.app_of[slot]]
        return f"{app.pods}-exec-{uid_of(slot, int(self.generation[slot]))}"

    @property
    def open(self) -> BoolArray:
        """By node: whether it takes new executors."""
        usable: BoolArray = self.listed & self.ready & ~self.warned
        return usable

    @property
    def working(self) -> BoolArray:
        """By slot: whether its executor does work."""
        works: BoolArray = self.state >= State.RUNNING
        return works

    def requested(self) -> FloatArray:
        """Nodes × (CPU cores, bytes of memory, pods): requests of everything bound, leaving ones included."""
        bound = self.node >= 0
        table = np.zeros_like(self.allocatable) if self.fleet.foreign is None else self.fleet.foreign.copy()
        for column in range(table.shape[1]):
            weights = self.executor_slots.requests[bound, column]
            table[:, column] += np.bincount(self.node[bound], weights=weights, minlength=len(table))
        return table

    def advance(self, time: float) -> None:
        """Let everything happen that is due by then; times must not go backwards."""
        while self._changes and self._changes[0].at <= time:
            self._change(self._changes.popleft(), time)
        self._life.advance(self, time)
        due = np.flatnonzero(self.due <= time)
        if not len(due):
            return
        for slot in due[self.state[due] == State.PENDING].tolist():
            self._set(slot, State.RUNNING)
            self.running_since[slot] = time
        for slot in due[self.state[due] == State.LEAVING].tolist():
            self._set(slot, State.ABSENT, due=time + self._moving.replace.seconds)
            self.node[slot] = -1
        for slot in due[(self.state[due] == State.ABSENT) & (self.due[due] <= time)].tolist():
            self.ask(slot, time)

    def _change(self, change: Change, time: float) -> None:
        node = change.node
        if change.kind is Kind.BACK:
            self.listed[node], self.ready[node], self.warned[node] = True, True, False
        elif change.kind is Kind.WARNED:
            self.warned[node] = True
        else:
            self.ready[node] = False
            self.listed[node] &= change.kind is not Kind.GONE
            noticed = self._moving.detect.seconds if change.kind is Kind.DEAD else 0.0
            self._lose(node, time + noticed + self._moving.replace.seconds)

    def _lose(self, node: int, replaced_at: float) -> None:
        for slot in np.flatnonzero(self.node == node).tolist():
            self._set(slot, State.ABSENT, due=replaced_at)
            self.node[slot] = -1
            self.cause[slot] = Cause.LOST

    def _set(self, slot: int, state: State, *, due: float = _NEVER) -> None:
        self.state[slot], self.due[slot] = state, due

    def ask(self, slot: int, time: float) -> None:
        """Spark creates an executor for the slot; it is held by the gate."""
        self._set(slot, State.GATED)
        self.node[slot] = -1
        self.generation[slot] += 1
        self.born_at[slot] = time
        self.running_since[slot] = self.unschedulable_since[slot] = np.nan
        self.pinned[slot] = False
        self.renewed[slot] = True
        self.name(slot, self._name(slot))

    def name(self, slot: int, name: str) -> None:
        """Call the slot's executor so."""
        self.names[slot] = name
        self.named[slot] += 1

    def put(self, slot: int, node: int, time: float) -> None:
        """A new executor runs there from now on, whatever was in the slot, and no strategy is asked."""
        self.ask(slot, time)
        self._set(slot, State.RUNNING)
        self.node[slot] = self.homes[slot] = node
        self.running_since[slot] = time

    def empty(self, slot: int) -> None:
        """No executor any more, and none that Spark would ask for by itself."""
        self._set(slot, State.ABSENT)
        self.node[slot] = -1

    def bind(self, slot: int, node: int, time: float) -> None:
        """kube-scheduler has found a node; the executor begins to start there."""
        self._set(slot, State.PENDING, due=time + self._moving.start.seconds)
        self.node[slot] = node
        self.unschedulable_since[slot] = np.nan

    def release(self, slot: int, time: float) -> None:
        """Out of the gate, with no node that takes it."""
        self._set(slot, State.PENDING)
        if np.isnan(self.unschedulable_since[slot]):
            self.unschedulable_since[slot] = time

    def delete(self, slot: int, time: float) -> None:
        """An executor that waits in vain; Spark asks for another one."""
        self._set(slot, State.ABSENT, due=time + self._moving.replace.seconds)
        self.node[slot] = -1

    def order_to_leave(self, slot: int, time: float) -> None:
        """The executor is evicted: it works on until it is gone, and Spark then asks for another one."""
        self._set(slot, State.LEAVING, due=time + self._moving.leave.seconds)
