"""The executors in a history's rows: where each was and when, what it asked for, and what it used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ballast.model.arrays import BoolArray, FloatArray
from ballast.simulation.recorded.known import pods_of
from ballast.simulation.recorded.rows import Cells
from ballast.simulation.recording import RecordedExecutor


@dataclass(frozen=True, slots=True, eq=False)
class Pods:
    executors: tuple[RecordedExecutor, ...]
    cpu: FloatArray
    """Steps × executors, as what follows; NaN where it is not known, or where there was no such executor."""
    memory: FloatArray
    told: tuple[str, ...]
    """Sentences about what was left out."""


@dataclass(frozen=True, slots=True)
class _Stay:
    namespace: str
    name: str
    node: int
    first: int
    last: int


def pods(found: Cells, columns: Mapping[str, int], present: BoolArray) -> Pods:
    """`columns`: of nodes, by name. `present`: steps × nodes; an executor is there only while its node is."""
    stays, told = _stays(found, columns, present)
    cpu, memory, network, cores, bytes_ = (
        _figures(found.of(signal), stays)
        for signal in (
            "executorCpu",
            "executorMemory",
            "executorNetwork",
            "executorRequestCores",
            "executorRequestMemory",
        )
    )
    applications = _applications(found)
    executors = tuple(
        RecordedExecutor(
            namespace=stay.namespace,
            name=stay.name,
            application=applications.get((stay.namespace, stay.name), pods_of(stay.name)),
            node=stay.node,
            first=stay.first,
            last=stay.last,
            request_cores=_newest(cores[:, index]),
            request_memory_bytes=_newest(bytes_[:, index]),
            bytes_per_core=_ratio(network[:, index], cpu[:, index]),
        )
        for index, stay in enumerate(stays)
    )
    return Pods(executors, cpu, memory, told)


def _stays(found: Cells, columns: Mapping[str, int], present: BoolArray) -> tuple[list[_Stay], tuple[str, ...]]:
    chosen = found.of("placement")
    rows, column = chosen.rows, chosen.columns(columns)
    order = np.lexsort((rows.pod.codes, rows.namespace.codes))
    keys = np.stack([rows.namespace.codes, rows.pod.codes])[:, order]
    starts = np.flatnonzero(np.append(True, (np.diff(keys) != 0).any(axis=0))) if len(order) else order
    stays, torn, lost = [], 0, 0
    for own in np.split(order, starts[1:]) if len(order) else ():
        node, steps = int(column[own[0]]), chosen.step[own]
        if (column[own] != node).any():
            torn += 1
            continue
        span = _within(present[:, node], int(steps.min()), int(steps.max())) if node >= 0 else None
        namespace, pod = int(rows.namespace.codes[own[0]]), int(rows.pod.codes[own[0]])
        if span is None or namespace < 0 or pod < 0:
            lost += 1
            continue
        stays.append(_Stay(rows.namespace.words[namespace], rows.pod.words[pod], node, *span))
    told = []
    if torn:
        told.append(f"{torn} executors seem to be on several nodes: they are load of these nodes alone")
    if lost:
        told.append(f"{lost} executors were on nodes of which nothing was known meanwhile, and were left out")
    return stays, tuple(told)


def _within(present: BoolArray, first: int, last: int) -> tuple[int, int] | None:
    """The first time in [first, last] for which the node was there throughout."""
    there = np.flatnonzero(present[first : last + 1])
    if not len(there):
        return None
    start = first + int(there[0])
    away = np.flatnonzero(~present[start : last + 1])
    return start, start + int(away[0]) - 1 if len(away) else last


def _figures(chosen: Cells, stays: list[_Stay]) -> FloatArray:
    """Steps × executors, while they were there."""
    rows = chosen.rows
    index = {(stay.namespace, stay.name): position for position, stay in enumerate(stays)}
    pairs, inverse = np.unique(np.stack([rows.namespace.codes, rows.pod.codes]), axis=1, return_inverse=True)
    named = (
        (rows.namespace.words[space], rows.pod.words[pod]) if min(space, pod) >= 0 else ("", "")
        for space, pod in pairs.T.tolist()
    )
    column = np.array([*(index.get(name, -1) for name in named), -1], dtype=np.int64)[inverse.reshape(-1)]
    table = chosen.spread(column, len(stays))
    for position, stay in enumerate(stays):
        table[: stay.first, position] = table[stay.last + 1 :, position] = np.nan
    return table


def _applications(found: Cells) -> dict[tuple[str, str], str]:
    """Ids by namespace and name of the pod."""
    rows = found.of("executorApplication").rows
    triples = np.unique(np.stack([rows.namespace.codes, rows.pod.codes, rows.detail.codes]), axis=1)
    return {
        (rows.namespace.words[space], rows.pod.words[pod]): rows.detail.words[detail]
        for space, pod, detail in triples.T.tolist()
        if min(space, pod, detail) >= 0 and rows.detail.words[detail]
    }


def _newest(values: FloatArray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else None


def _ratio(amounts: FloatArray, cores: FloatArray) -> float | None:
    both = np.isfinite(amounts) & np.isfinite(cores)
    used = float(cores[both].sum())
    return float(amounts[both].sum()) / used if used > 0 else None
