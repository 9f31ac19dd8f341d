"""The rows that a history would hold of a recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ballast.simulation.recording import Recording, Rows, Texts


class Row(NamedTuple):
    time_ms: int
    signal: str
    node: str | None
    namespace: str | None
    pod: str | None
    detail: str | None
    value: float


def history(recording: Recording) -> list[Row]:
    return [*_of_nodes(recording), *_of_executors(recording), *_of_passes(recording)]


def table(rows: Iterable[Row]) -> Rows:
    listed = list(rows)
    return Rows(
        time_ms=np.array([row.time_ms for row in listed], dtype=np.int64),
        signal=Texts.of([row.signal for row in listed]),
        node=Texts.of([row.node for row in listed]),
        namespace=Texts.of([row.namespace for row in listed]),
        pod=Texts.of([row.pod for row in listed]),
        detail=Texts.of([row.detail for row in listed]),
        value=np.array([row.value for row in listed], dtype=np.float64),
    )


def time_of(recording: Recording, step: int) -> int:
    return round((recording.start + step * recording.step_seconds) * 1000)


def _of_passes(recording: Recording) -> Iterator[Row]:
    for step in range(recording.steps):
        known = [at for at in recording.passes if at <= step * recording.step_seconds]
        if known:
            yield Row(time_of(recording, step), "pass", None, None, None, None, recording.start + known[-1])


def _of_nodes(recording: Recording) -> Iterator[Row]:
    for index, node in enumerate(recording.nodes):
        for step in np.flatnonzero(recording.present[:, index]).tolist():
            at = time_of(recording, step)
            figures = {
                "nodeCores": node.machine_cores,
                "nodeAllocatableCores": node.cores,
                "nodeAllocatableMemory": node.memory_bytes,
                "nodeCpu": recording.node_cpu[step, index],
                "nodeMemory": recording.node_memory[step, index],
                "nodeScore": recording.scores[step, index],
                "nodeUnschedulable": np.nan if recording.cordoned is None else recording.cordoned[step, index],
            }
            for signal, value in figures.items():
                if np.isfinite(value):
                    yield Row(at, signal, node.name, None, None, None, float(value))


def _of_executors(recording: Recording) -> Iterator[Row]:
    for index, each in enumerate(recording.executors):
        node = recording.nodes[each.node].name
        for step in range(each.first, each.last + 1):
            at = time_of(recording, step)
            figures = {
                "placement": 1.0,
                "executorCpu": recording.executor_cpu[step, index],
                "executorMemory": recording.executor_memory[step, index],
                "executorRequestCores": each.request_cores,
                "executorRequestMemory": each.request_memory_bytes,
            }
            for signal, value in figures.items():
                if value is not None and np.isfinite(value):
                    yield Row(at, signal, node, each.namespace, each.name, None, float(value))
            yield Row(at, "executorApplication", node, each.namespace, each.name, each.application, 1.0)
