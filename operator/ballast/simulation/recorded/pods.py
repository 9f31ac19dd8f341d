"""The executors in a history's rows: where each was and when, what it asked for, and what it used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.simulation.recorded.known import pods_of
from ballast.simulation.recorded.rows import Cells, Rows
from ballast.simulation.recording import RecordedExecutor


@dataclass(frozen=True, slots=True, eq=False)
class Pods:
    executors: tuple[RecordedExecutor, ...]
    cpu: FloatArray
    """Steps × executors, as what follows; NaN where it is not known, or where there was no such executor."""
    memory: FloatArray
    told: tuple[str, ...]
    """Sentences about what was left out."""


@dataclass(frozen=True, slots=True, eq=False)
class _Stays:
    """Each of one executor on one node. Ordered by executor, then by time; those of one executor do not overlap."""

    pod: IntArray
    """Numbers of executors, see `_pods`."""
    node: IntArray
    first: IntArray
    last: IntArray

    def __len__(self) -> int:
        return len(self.pod)

    def of(self, chosen: Cells) -> IntArray:
        """By row: the stay that it tells of; -1 = none."""
        pod, steps = _pods(chosen), chosen.grid.steps
        begun = np.searchsorted(self.pod * steps + self.first, pod * steps + chosen.step, side="right") - 1
        same, last = np.append(self.pod, -1)[begun] == pod, np.append(self.last, -1)[begun]
        return np.where(same & (pod >= 0) & (chosen.step <= last), begun, -1)


def pods(found: Cells, columns: Mapping[str, int], present: BoolArray) -> Pods:
    """`columns`: of nodes, by name. `present`: steps × nodes; an executor is there only while its node is."""
    stays, told = _stays(found.of("placement"), columns, present)
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
    applications = _applications(found.of("executorApplication"), stays)
    executors = tuple(
        RecordedExecutor(
            namespace=namespace,
            name=name,
            application=applications.get(index, pods_of(name)),
            node=int(stays.node[index]),
            first=int(stays.first[index]),
            last=int(stays.last[index]),
            request_cores=_newest(cores[:, index]),
            request_memory_bytes=_newest(bytes_[:, index]),
            bytes_per_core=_ratio(network[:, index], cpu[:, index]),
        )
        for index, (namespace, name) in enumerate(_names(found.rows, stays))
    )
    return Pods(executors, cpu, memory, told)


def _pods(chosen: Cells) -> IntArray:
    """By row: a number for its executor, the same in all signals; -1 = it names none."""
    rows = chosen.rows
    space, pod = rows.namespace.codes, rows.pod.codes
    return np.where(np.minimum(space, pod) >= 0, space * len(rows.pod.words) + pod, -1)


def _names(rows: Rows, stays: _Stays) -> Iterator[tuple[str, str]]:
    for number in stays.pod.tolist():
        space, pod = divmod(number, len(rows.pod.words))
        yield rows.namespace.words[space], rows.pod.words[pod]


def _stays(placed: Cells, columns: Mapping[str, int], present: BoolArray) -> tuple[_Stays, tuple[str, ...]]:
    """Several of a name that was used again on another node, and of one whose node was away meanwhile."""
    pod, step, node = _pods(placed), placed.step, placed.columns(columns)
    order = np.lexsort((node, step, pod))
    pod, step, node = pod[order], step[order], node[order]
    torn = _torn(pod=pod, step=step, node=node)
    runs = _runs(present, pod=pod, step=step, node=np.where(torn, -1, node))
    known = (runs.pod >= 0) & (runs.node >= 0) & present[runs.first, runs.node]
    stays = _Stays(runs.pod[known], runs.node[known], runs.first[known], runs.last[known])
    again = (stays.pod[1:] == stays.pod[:-1]) & (stays.node[1:] == stays.node[:-1])
    return stays, tuple(_told(stays, everyone=pod, torn=pod[torn], again=stays.pod[1:][again]))


def _torn(*, pod: IntArray, step: IntArray, node: IntArray) -> BoolArray:
    """By row, ordered by executor and step: whether another one says at the same step that it is elsewhere."""
    apart = np.flatnonzero((np.diff(pod) == 0) & (np.diff(step) == 0) & (np.diff(node) != 0))
    torn = np.zeros(len(pod), dtype=bool)
    torn[apart] = torn[apart + 1] = True
    return torn


def _runs(present: BoolArray, *, pod: IntArray, step: IntArray, node: IntArray) -> _Stays:
    """Rows that follow each other, of one executor on one node, which was there throughout, or nowhere in it."""
    changes = np.diff(present, axis=0, prepend=present[:1])
    spell = np.cumsum(changes, axis=0, dtype=np.int32)[step, node]
    parts = np.stack([pod, node, spell])
    begins = np.append(True, (np.diff(parts) != 0).any(axis=0))[: len(pod)]
    ends = np.append(begins[1:], True)[: len(pod)]
    return _Stays(pod[begins], node[begins], step[begins], step[ends])


def _told(stays: _Stays, *, everyone: IntArray, torn: IntArray, again: IntArray) -> Iterator[str]:
    several, gone = np.unique(torn), np.setdiff1d(again, torn)
    lost = np.setdiff1d(everyone, np.append(stays.pod, several))
    if len(several):
        yield f"{len(several)} executors seem to be on several nodes at a time: they are load of these nodes alone then"
    if len(lost):
        yield f"{len(lost)} executors were on nodes of which nothing was known meanwhile, and were left out"
    if len(gone):
        yield (
            f"{len(gone)} executors were on nodes of which nothing was known for a time: they are gone for that time, "
            "and begin again after it"
        )


def _figures(chosen: Cells, stays: _Stays) -> FloatArray:
    """Steps × executors, while they were there."""
    return chosen.spread(stays.of(chosen), len(stays))


def _applications(chosen: Cells, stays: _Stays) -> dict[int, str]:
    """Ids by index of the stay."""
    pairs = np.unique(np.stack([stays.of(chosen), chosen.rows.detail.codes]), axis=1)
    words = chosen.rows.detail.words
    return {stay: words[detail] for stay, detail in pairs.T.tolist() if min(stay, detail) >= 0 and words[detail]}


def _newest(values: FloatArray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else None


def _ratio(amounts: FloatArray, cores: FloatArray) -> float | None:
    both = np.isfinite(amounts) & np.isfinite(cores)
    used = float(cores[both].sum())
    return float(amounts[both].sum()) / used if used > 0 else None
