"""What a query would have given: the recorded figure, and what executors that are elsewhere now make of it.

Figures are means over the metric window, so what an executor takes from one node and brings to another shows in them
as slowly as it would in Prometheus. Where nothing is elsewhere, figures are the recorded ones, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.simulation.cluster import Cluster
from ballast.simulation.meter import Moment, Reading, Window
from ballast.simulation.recorded.slots import Slots
from ballast.simulation.recording import Recording

# What executors of a recording had to do, slot by slot, wherever they are put.


@dataclass(frozen=True, slots=True, eq=False)
class RecordedDemand:
    """Steps × slots, known everywhere: what is not is as it was before, or else as it was next."""

    work: FloatArray
    """Cores of an ordinary machine."""
    memory: FloatArray
    """Bytes."""
    guessed: BoolArray
    """By slot: nothing at all is known of it, and 0 stands for it."""
    others: FloatArray
    """Steps × nodes: cores that the node used, known everywhere."""


def demand(recording: Recording, slots: Slots, speed: FloatArray, *, window_seconds: float) -> RecordedDemand:
    """`speed`: by node. `window_seconds`: what the recorded figures are means over.

    The first figures of a new executor are means over a window that it was not there for all of; until the window has
    passed, what its predecessor had to do is nearer to the truth.
    """
    cpu = recording.executor_cpu.copy()
    blurred = int(np.ceil(window_seconds / recording.step_seconds - 1e-9))
    for index, each in enumerate(recording.executors):
        if each.first > 0 and each.last - each.first >= blurred:
            cpu[each.first : each.first + blurred, index] = np.nan
        cpu[:, index] *= speed[each.node]
    work = _by_slot(cpu, slots)
    return RecordedDemand(
        work=np.nan_to_num(held(work)),
        memory=np.nan_to_num(held(_by_slot(recording.executor_memory, slots))),
        guessed=np.asarray(~np.isfinite(work).any(axis=0)),
        others=np.nan_to_num(held(recording.node_cpu)),
    )


def _by_slot(values: FloatArray, slots: Slots) -> FloatArray:
    if not slots.count:
        return np.zeros(slots.occupant.shape)
    rows = np.arange(len(values))[:, None]
    found: FloatArray = np.where(slots.occupant >= 0, values[rows, slots.occupant], np.nan)
    return found


def held(values: FloatArray) -> FloatArray:
    """Each column's gaps filled with the last known value, those at its beginning with the first one."""
    return _forward(_forward(values)[::-1])[::-1]


def _forward(values: FloatArray) -> FloatArray:
    rows = np.arange(len(values))[:, None]
    newest = np.maximum.accumulate(np.where(np.isfinite(values), rows, 0), axis=0)
    found: FloatArray = np.take_along_axis(values, newest, axis=0)
    return found


_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class _Shift:
    """How the replay differs from the recording at one time."""

    same: BoolArray
    """By slot: there is an executor in the same place in both, or in neither."""
    work: FloatArray
    """By slot: what it is given to do, in cores of an ordinary machine; 0 where none works."""
    used: FloatArray
    """By slot: cores that it uses where it is."""
    strayed: FloatArray
    """By slot: cores that it uses beyond what was recorded in the same place."""
    wanted: FloatArray
    """By node: cores that would be used beyond the recorded ones."""
    nodes: FloatArray
    """By node: cores that are."""
    memory: FloatArray
    """By node: bytes used beyond the recorded ones."""


class RecordedMeter:
    """`window_seconds`: what figures are means over. `step_seconds`: from one scrape to the next."""

    def __init__(
        self,
        recording: Recording,
        slots: Slots,
        cluster: Cluster,
        demand: RecordedDemand,
        *,
        window_seconds: float,
        step_seconds: float,
    ) -> None:
        self._recording, self._slots, self._cluster, self._demand = recording, slots, cluster, demand
        self._window = max(window_seconds, step_seconds)
        rows, lanes = int(self._window / step_seconds) + 2, slots.count
        self._nodes = Window(len(recording.nodes), rows)
        self._used, self._strayed = Window(lanes, rows), Window(lanes, rows)
        self._machine = np.array([node.machine_cores for node in recording.nodes])
        self._cores = np.array([node.cores for node in recording.nodes])
        memory = np.array([node.memory_bytes for node in recording.nodes])
        self._memory = np.where(np.isfinite(memory), memory, np.nan)
        self.full: set[tuple[int, int]] = set()
        """Steps and nodes at which executors of the replay wanted more than there was."""
        self._shift = self._compared(0.0)
        self.now = self._moment(0)

    def scrape(self, time: float) -> None:
        if self._cluster.renewed.any():
            for window in (self._used, self._strayed):
                window.forget(self._cluster.renewed)
            self._cluster.renewed[:] = False
        step = self._recording.step_at(time)
        self._shift = shift = self._compared(time)
        self.now = self._moment(step)
        self._nodes.add(time, shift.nodes)
        self._used.add(time, np.where(shift.same, np.nan, shift.used))
        self._strayed.add(time, shift.strayed)

    def query(self, time: float) -> Reading:
        """As it would be answered at `time`, of which the newest recorded step tells."""
        step = self._recording.step_at(time)
        after, until = time - self._window + _ROUNDING, time + _ROUNDING
        recorded = self._recording.node_cpu[step]
        cpu = np.maximum(recorded + np.nan_to_num(self._nodes.mean(after, until)), 0.0) / self._cores
        memory = np.maximum(self._recording.node_memory[step] + self._shift.memory, 0.0) / self._memory
        return Reading(
            available=bool(np.isfinite(recorded).any()),
            node_cpu=cpu,
            node_age=np.where(np.isfinite(recorded), 0.0, np.inf),
            executor_cpu=self._executors(step, after, until),
            slowdown=np.ones(len(self._cores)),
            node_memory=memory,
        )

    def _executors(self, step: int, after: float, until: float) -> FloatArray:
        occupant, same = self._slots.occupant[step], self._shift.same
        figures = np.full(len(same), np.nan)
        recorded = same & (occupant >= 0) & self._cluster.working
        own = self._recording.executor_cpu[step][occupant[recorded]]
        figures[recorded] = own + np.nan_to_num(self._strayed.mean(after, until)[recorded])
        elsewhere = ~same & self._cluster.working
        figures[elsewhere] = self._used.mean(after, until)[elsewhere]
        return figures

    def _compared(self, time: float) -> _Shift:
        step = self._recording.step_at(time)
        here: IntArray = np.where(self._cluster.working, self._cluster.node, -1)
        there = self._recorded_node(step, here, between=time > step * self._recording.step_seconds + _ROUNDING)
        same = here == there
        work = np.where(here >= 0, self._demand.work[step], 0.0)
        if same.all():
            still, none = np.zeros(len(same)), np.zeros(len(self._cores))
            return _Shift(same, work, still, still, none, none, none)
        return self._differing(step, here, there)

    def _recorded_node(self, step: int, here: IntArray, *, between: bool) -> IntArray:
        """By slot: where the recording has its executor, or -1.

        What changes from one step to the next has done so at some moment between them: there, what the replay has is
        right when it is what was before, what comes after, or on its way.
        """
        there: IntArray = self._slots.node[step]
        if not between or step + 1 == self._recording.steps:
            return there
        after = self._slots.node[step + 1]
        return np.where((here == after) | ((here < 0) & (there != after)), here, there)

    def _differing(self, step: int, here: IntArray, there: IntArray) -> _Shift:
        same = here == there
        demand, speed = self._demand.work[step], self._cluster.fleet.speed
        given, touched = self._given(demand, here >= 0, there >= 0)
        touched |= ~same
        was = np.where(there >= 0, demand / speed[there], 0.0)
        asked = np.where(here >= 0, given / speed[here], 0.0)
        wanted = self._sums(here, touched, asked) - self._sums(there, touched, was)
        used_there = self._demand.others[step]
        room = np.maximum(self._machine - used_there, 0.0)
        over = wanted > room + _ROUNDING
        if over.any():
            self.full.update((step, node) for node in np.flatnonzero(over).tolist())
        squeeze = np.where(over, self._machine / np.maximum(used_there + wanted, _ROUNDING), 1.0)
        used = np.where(here >= 0, asked * squeeze[here], 0.0)
        memory = self._demand.memory[step]
        return _Shift(
            same=same,
            work=np.where(here >= 0, given, 0.0),
            used=used,
            strayed=np.where(same, used - was, 0.0),
            wanted=wanted,
            nodes=np.minimum(wanted, room),
            memory=self._sums(here, ~same, memory) - self._sums(there, ~same, memory),
        )

    def _sums(self, node: IntArray, chosen: BoolArray, amounts: FloatArray) -> FloatArray:
        chosen = chosen & (node >= 0)
        sums: FloatArray = np.bincount(node[chosen], weights=amounts[chosen], minlength=len(self._cores)).astype(float)
        return sums

    def _given(self, demand: FloatArray, here: BoolArray, there: BoolArray) -> tuple[FloatArray, BoolArray]:
        """By slot: its share of its application's work, and whether that is another one than was recorded.

        An application does what it did in the recording, with the executors that it has now: those that are there do
        the work of those that are not, as far as they have cores for it.
        """
        executor_slots = self._cluster.executor_slots
        count = len(executor_slots.apps)
        changed = np.bincount(executor_slots.app_of, weights=here != there, minlength=count) > 0
        present = np.bincount(executor_slots.app_of, weights=np.where(here, demand, 0.0), minlength=count)
        recorded = np.bincount(executor_slots.app_of, weights=there, minlength=count) > 0
        done = np.bincount(executor_slots.app_of, weights=np.where(there, demand, 0.0), minlength=count)
        whole = np.where(recorded, done, present)
        factor = np.divide(whole, present, out=np.ones(count), where=changed & (present > 0))
        most = np.maximum(demand, executor_slots.cores)
        return np.minimum(demand * factor[executor_slots.app_of], most), changed[executor_slots.app_of]

    def _moment(self, step: int) -> Moment:
        cluster, shift = self._cluster, self._shift
        used = self._demand.others[step]
        there = self._slots.node[step]
        everyone = np.ones(len(there), dtype=bool)
        executors = self._sums(there, everyone, self._demand.work[step] / cluster.fleet.speed[there])
        wanted = np.maximum(used + shift.wanted, 0.0)
        known = cluster.listed & cluster.ready & np.isfinite(self._recording.node_cpu[step])
        return Moment(
            work=shift.work,
            neighbors=np.maximum(used - executors, 0.0),
            wanted=wanted,
            usage=np.where(known, 100.0 * wanted / self._cores, np.nan),
        )
