"""The executors of the simulated cluster as the planner sees them.

Ten thousand of them are looked at in every pass, and of most nothing but the measured figures has changed: what else is
known of one is kept until it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from operator import attrgetter
from typing import Any

import numpy as np

from ballast.model import Executor, ExecutorUsage, Phase
from ballast.model.arrays import FloatArray, IntArray
from ballast.simulation.cluster import Cluster, State
from ballast.simulation.meter import Reading
from ballast.simulation.uid import uid_of

_PHASES = {
    int(State.GATED): Phase.GATED,
    int(State.PENDING): Phase.PENDING,
    int(State.RUNNING): Phase.RUNNING,
    int(State.LEAVING): Phase.LEAVING,
}
_BUT_USAGE = attrgetter(*(field.name for field in fields(Executor) if field.name != "usage"))
"""Of an executor, every field before `usage`, which is the last one."""
_MAKE: Callable[..., Executor] = Executor


class Roster:
    """`epoch`: the planner's time when the run begins."""

    def __init__(self, cluster: Cluster, *, epoch: float) -> None:
        self._cluster, self._epoch = cluster, epoch
        self._known: list[tuple[Any, ...]] = [()] * len(cluster.crew)
        self._seen: IntArray = np.full((5, len(cluster.crew)), -1, dtype=np.int64)
        apps, app_of = cluster.crew.apps, cluster.crew.app_of
        self._records = np.array([app.records_per_core for app in apps])[app_of]
        self._bytes = np.array([app.bytes_per_core for app in apps])[app_of]
        self._state_bytes = np.array([app.state_bytes for app in apps])[app_of]
        self._task_seconds = np.array([np.nan if a.task_seconds is None else a.task_seconds for a in apps])[app_of]

    def executors(self, reading: Reading) -> Iterator[Executor]:
        """Everyone that there is, in the order of the slots."""
        self._look_for_changes()
        slots = np.flatnonzero(self._cluster.state != State.ABSENT)
        known, make = self._known, _MAKE
        for slot, usage in zip(slots.tolist(), self._usages(slots, reading), strict=True):
            yield make(*known[slot], usage)

    def _usages(self, slots: IntArray, reading: Reading) -> Iterator[ExecutorUsage | None]:
        node = self._cluster.node[slots]
        used: FloatArray = reading.executor_cpu[slots] if reading.available else np.full(len(slots), np.nan)
        work = used * self._cluster.fleet.speed[node]
        seconds = self._task_seconds[slots] * reading.slowdown[node] / self._cluster.fleet.speed[node]
        columns = (
            used,
            self._cluster.crew.requests[slots, 1],
            work * self._records[slots],
            work * self._bytes[slots],
            seconds,
            self._state_bytes[slots],
        )
        listed = (_or_none(each) for each in columns)
        for cores, memory, records, volume, task, state in zip(*listed, strict=True):
            if cores is None:
                yield None
            else:
                yield ExecutorUsage(cores, memory, records, volume, task, None, state)

    def _look_for_changes(self) -> None:
        cluster = self._cluster
        waiting = (cluster.state == State.PENDING) & (cluster.node < 0)
        pinned = cluster.pinned.astype(np.int64)
        now = np.stack([cluster.state, cluster.node, cluster.generation, cluster.named, pinned])
        changed = ((now != self._seen).any(axis=0) | waiting) & (cluster.state != State.ABSENT)
        for slot in np.flatnonzero(changed).tolist():
            self._known[slot] = _BUT_USAGE(self._executor(slot))
        self._seen = now

    def _executor(self, slot: int) -> Executor:
        cluster = self._cluster
        app = cluster.crew.apps[cluster.crew.app_of[slot]]
        state, node, uid = int(cluster.state[slot]), int(cluster.node[slot]), uid_of(slot, cluster.generation[slot])
        born_at = self._epoch + float(cluster.born_at[slot])
        return Executor(
            namespace=app.namespace,
            name=cluster.names[slot],
            uid=uid,
            application=app.name,
            executor_id=uid,
            resource_profile="0",
            topology=app.topology,
            component=app.component,
            phase=_PHASES[state],
            created_at=born_at,
            node=cluster.fleet.names[node] if node >= 0 else None,
            requests=app.requests,
            cores=app.cores,
            last_gate_since=born_at if state == State.GATED else None,
            running_since=self._time(cluster.running_since[slot]),
            unschedulable_since=self._time(cluster.unschedulable_since[slot]),
            graceful=True,
            pinned=bool(cluster.pinned[slot]),
        )

    def _time(self, moment: float) -> float | None:
        return None if np.isnan(moment) else self._epoch + float(moment)


def _or_none(values: FloatArray) -> list[Any]:
    """NaN stands for what is not known."""
    listed: list[Any] = values.tolist()
    for index in np.flatnonzero(np.isnan(values)).tolist():
        listed[index] = None
    return listed
