"""What executors of a recording had to do, slot by slot, wherever they are put."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ballast.model.arrays import BoolArray, FloatArray
from ballast.simulation.recorded.slots import Slots
from ballast.simulation.recording import Recording


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
