"""Executors of a replay come and go as they were recorded, until the policy has changed what becomes of one."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from ballast.model import Component, Resources, Topology, Workload
from ballast.model.arrays import BoolArray, IntArray
from ballast.simulation.cluster import Cluster, State
from ballast.simulation.inventory import App, ExecutorSlots, Fleet
from ballast.simulation.recorded.known import Known, KnownApplication, pods_of
from ballast.simulation.recorded.slots import Slots
from ballast.simulation.recording import RecordedExecutor, Recording
from ballast.simulation.trace import Cause

# The nodes and the executors of a recording, as the simulation has them.

_AMPLE_BYTES = float(1 << 60)
"""Of a node whose memory is not known: never what counts."""


def recorded_fleet(recording: Recording, known: Known) -> Fleet:
    nodes = recording.nodes
    seen = [known.nodes.get(node.name) for node in nodes]
    nothing = Resources(0.0, 0.0, 0.0)
    foreign = [known.foreign.get(node.name, nothing) for node in nodes]
    return Fleet(
        names=tuple(node.name for node in nodes),
        zones=(None,) * len(nodes),
        racks=(None,) * len(nodes),
        cores=np.array([node.cores for node in nodes]),
        memory_bytes=np.array([min(node.memory_bytes, _AMPLE_BYTES) for node in nodes]),
        speed=np.array([node.speed if node else 1.0 for node in seen]),
        joins_at=np.where(recording.present[0], 0.0, np.inf),
        position={node.name: index for index, node in enumerate(nodes)},
        groups={},
        known_labels=tuple(node.labels if node else {} for node in seen),
        foreign=np.array([(each.cpu_cores, each.memory_bytes, each.pods) for each in foreign]),
    )


def recorded_slots(recording: Recording, slots: Slots, known: Known) -> ExecutorSlots:
    members: dict[tuple[str, str], list[RecordedExecutor]] = {}
    for each in recording.executors:
        members.setdefault((each.namespace, each.application), []).append(each)
    position = {key: index for index, key in enumerate(members)}
    apps = tuple(_app(executors, known) for executors in members.values())
    app_of = np.zeros(slots.count, dtype=np.int64)
    for index, each in enumerate(recording.executors):
        app_of[slots.slot_of[index]] = position[each.namespace, each.application]
    amounts = [(app.requests.cpu_cores, app.requests.memory_bytes, 1.0) for app in apps]
    begun = slots.node[0] >= 0
    return ExecutorSlots(
        apps=apps,
        app_of=app_of,
        homes=slots.node[0].copy(),
        requests=np.array(amounts).reshape(-1, 3)[app_of],
        cores=np.array([app.cores for app in apps])[app_of],
        movable=np.array([app.workload is Workload.STREAMING for app in apps], dtype=np.int64)[app_of],
        starts=np.where(begun, 0.0, np.inf),
        stops=np.full(slots.count, np.inf),
    )


def _app(executors: Sequence[RecordedExecutor], known: Known) -> App:
    first = executors[0]
    pods = pods_of(first.name)
    found = known.application(first.namespace, first.application, pods)
    requests = _requests(executors, found)
    rates = [each.bytes_per_core for each in executors if each.bytes_per_core is not None]
    key = f"{first.namespace}/{first.application}"
    same_run = found is not None and (found.id == first.application or _declared(found, known))
    return App(
        namespace=first.namespace,
        name=first.application,
        pods=pods,
        topology=found.topology if found is not None and same_run else key,
        component=found.component if found is not None and same_run else first.application,
        workload=found.workload if found is not None and found.workload is not None else Workload.STREAMING,
        cores=found.cores if found else max(1.0, requests.cpu_cores),
        requests=requests,
        records_per_core=float("nan"),
        bytes_per_core=float(np.mean(rates)) if rates else float("nan"),
        state_bytes=found.state_bytes if found is not None and found.state_bytes is not None else 0.0,
        task_seconds=None,
        exchange_bytes_per_second=None,
        executors=len(executors),
    )


def _declared(found: KnownApplication, known: Known) -> bool:
    """Whether its topology is one that users wrote: it then outlasts the run of an application."""
    return any(topology.key == found.topology and not topology.implicit for topology in known.topologies)


def _requests(executors: Sequence[RecordedExecutor], found: KnownApplication | None) -> Resources:
    """Of each executor: the largest recorded one, or what the snapshot says; else nothing."""
    cpu = [each.request_cores for each in executors if each.request_cores is not None]
    memory = [each.request_memory_bytes for each in executors if each.request_memory_bytes is not None]
    told = found.requests if found is not None else Resources(0.0, 0.0, 1.0)
    return Resources(max(cpu, default=told.cpu_cores), max(memory, default=told.memory_bytes), 1.0)


def recorded_topologies(executor_slots: ExecutorSlots, known: Known) -> tuple[Topology, ...]:
    """Those of the snapshot, and one for each application that is in none of them."""
    told = {topology.key: topology for topology in known.topologies}
    for app in executor_slots.apps:
        if app.topology not in told:
            component = Component(app.component, app.workload)
            told[app.topology] = Topology(app.topology, app.namespace, app.name, (component,), implicit=True)
    return tuple(told[key] for key in sorted(told))


# Executors of a replay come and go as they were recorded, until the policy has changed what becomes of one.


class Arrivals(StrEnum):
    """Where executors begin that were not moved."""

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
