"""From a history's rows to a recording: what was where and when, and what of it is doubtful."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.simulation.recorded.known import pods_of
from ballast.simulation.recorded.meter import held
from ballast.simulation.recorded.slots import with_moved
from ballast.simulation.recording import (
    Cells,
    RecordedExecutor,
    RecordedNode,
    Recording,
    Rows,
    UnusableRecordingError,
    cells,
)

# How much of a window a recording tells of: too little is no window, and what is missing is said.

LEAST_SHARE = 0.75
"""Of a window. What adds up over time could not be compared with whole windows otherwise."""
_WHOLE_SHARE = 0.99
"""From here on a window counts as whole: collecting begins and ends within a few steps of it."""


def extended(recording: Recording, *, window_seconds: float) -> Recording:
    """The recording, which says what of its window is missing. Raises UnusableRecordingError where that is too much."""
    known = int(np.isfinite(recording.node_cpu).any(axis=1).sum()) * recording.step_seconds
    share = known / window_seconds
    if share >= _WHOLE_SHARE:
        return recording
    told = f"figures of {known / 3600:.3g} of {window_seconds / 3600:.3g} hours"
    if share < LEAST_SHARE:
        raise UnusableRecordingError(f"there are {told}, less than {LEAST_SHARE:.0%}")
    sentence = (
        f"of {recording.name} there are {told}: what adds up over time, such as imbalance and moves, is that of these"
    )
    return replace(recording, unknown=(*recording.unknown, sentence))


_GONE_SECONDS = 600.0
"""A node that has no metrics for longer, while others have, is not there."""
_LINGERING_SECONDS = 300.0
"""For so long Prometheus keeps answering with a container that is gone, unless the API server's view is recorded."""
_SCORE_POINTS = 2.0
"""By more than this the operator's scores and those of the recorded figures differ in substance."""
_SEEN_BY = ("nodeCpu", "nodeMemory")
_FROM_API = ("executorApplication", "executorRequestCores", "executorRequestMemory")


def recording(rows: Rows, *, pool: str, start_ms: int, end_ms: int) -> Recording:
    """What happened in [start, end), in milliseconds since 1970. Raises UnusableRecordingError."""
    found, told = cells(rows, start_ms=start_ms, end_ms=end_ms)
    return with_moved(_recording(found, told, pool), _decided(found))


def _recording(found: Cells, told: tuple[str, ...], pool: str) -> Recording:
    nodes, without = _nodes(found)
    if not nodes:
        raise UnusableRecordingError("of none of its nodes both size and CPU are known")
    columns = {node.name: index for index, node in enumerate(nodes)}
    node_cpu, node_memory, scores = (
        found.of(signal).table(columns) for signal in ("nodeCpu", "nodeMemory", "nodeScore")
    )
    present = _present(found, columns)
    node_cpu[~present] = node_memory[~present] = np.nan
    crowd = pods(found, columns, present)
    passes = _passes(found)
    turns = np.unique((np.array(passes) * 1000 // found.grid.step_ms).astype(np.int64))
    return Recording(
        pool=pool,
        start=found.grid.start_ms / 1000,
        step_seconds=found.grid.step_ms / 1000,
        nodes=nodes,
        executors=crowd.executors,
        present=present,
        node_cpu=node_cpu,
        node_memory=node_memory,
        scores=scores,
        executor_cpu=crowd.cpu,
        executor_memory=crowd.memory,
        cordoned=_cordoned(found, columns),
        passes=passes,
        lingering_seconds=0.0 if any(len(found.of(signal).rows) for signal in _FROM_API) else _LINGERING_SECONDS,
        unknown=(
            *told,
            *without,
            *crowd.told,
            *_of_changes(present),
            *_of_scores(nodes, node_cpu, scores=scores, turns=turns),
        ),
    )


def _cordoned(found: Cells, columns: dict[str, int]) -> BoolArray | None:
    """A step without a figure is as the one before."""
    chosen = found.of("nodeUnschedulable")
    if not len(chosen.rows):
        return None
    table = chosen.table(columns)
    table[0] = np.nan_to_num(table[0])
    return np.asarray(held(table) > 0)


def _passes(found: Cells) -> tuple[float, ...]:
    told = np.unique(found.of("pass").rows.value) - found.grid.start_ms / 1000
    inside = (told >= 0) & (told <= (found.grid.steps - 1) * found.grid.step_ms / 1000)
    return tuple(told[inside].tolist())


def _decided(found: Cells) -> IntArray:
    """By step: moves that the operator decided on since the step before."""
    counted = found.of("decisions")
    moves = counted.rows.detail.codes == counted.rows.detail.code("move")
    totals = np.full(found.grid.steps, np.nan)
    totals[counted.step[moves]] = counted.rows.value[moves]
    decided = np.zeros(found.grid.steps, dtype=np.int64)
    known = np.flatnonzero(np.isfinite(totals))
    for before, now in zip(known[:-1].tolist(), known[1:].tolist(), strict=True):
        grown = totals[now] - totals[before]
        decided[now] = round(grown if grown >= 0 else totals[now])
    return decided


def _nodes(found: Cells) -> tuple[tuple[RecordedNode, ...], list[str]]:
    """Nodes of which the size and some CPU are known, by name; and what there is to say of the others."""
    machine, offered = _last(found, "nodeCores"), _last(found, "nodeAllocatableCores")
    memory, offered_memory = _last(found, "nodeMemoryCapacity"), _last(found, "nodeAllocatableMemory")
    measured = _last(found, "nodeCpu")
    nodes = tuple(
        RecordedNode(
            name=name,
            cores=offered.get(name) or machine[name],
            memory_bytes=offered_memory.get(name) or memory.get(name) or np.inf,
            machine_cores=machine.get(name) or offered[name],
            whole=not offered.get(name),
        )
        for name in sorted(measured)
        if offered.get(name) or machine.get(name)
    )
    told = []
    left_out = sorted((measured.keys() | machine.keys() | offered.keys()) - {node.name for node in nodes})
    if left_out:
        told.append(f"nodes without metrics or of unknown size were left out: {_some(left_out)}")
    changed = sorted(name for name, values in _range(found, "nodeAllocatableCores").items() if values[0] < values[1])
    if changed:
        told.append(f"what nodes offer to pods has changed, and the last figure counts throughout: {_some(changed)}")
    return nodes, told


def _last(found: Cells, signal: str) -> dict[str, float]:
    """The newest figure of each node."""
    chosen = found.of(signal)
    order = np.argsort(chosen.step, kind="stable")
    codes, values = chosen.rows.node.codes[order].tolist(), chosen.rows.value[order].tolist()
    return {chosen.rows.node.words[code]: value for code, value in zip(codes, values, strict=True) if code >= 0}


def _range(found: Cells, signal: str) -> dict[str, tuple[float, float]]:
    rows = found.of(signal).rows
    values: dict[str, tuple[float, float]] = {}
    for code in np.unique(rows.node.codes).tolist():
        own = rows.value[rows.node.codes == code]
        values[rows.node.words[code]] = float(own.min()), float(own.max())
    return values


def _present(found: Cells, columns: dict[str, int]) -> BoolArray:
    """A node is there from its first figure to its last, except for long times in which others alone have figures."""
    seen = np.zeros((found.grid.steps, len(columns)), dtype=bool)
    for signal in _SEEN_BY:
        chosen = found.of(signal)
        column = chosen.columns(columns)
        seen[chosen.step[column >= 0], column[column >= 0]] = True
    anybody = np.flatnonzero(seen.any(axis=1))
    present = np.zeros_like(seen)
    longest = _GONE_SECONDS * 1000 / found.grid.step_ms
    for node in range(len(columns)):
        # Counted in steps at which anything was known at all, for a silent Prometheus tells of no node.
        turns = np.flatnonzero(seen[anybody, node])
        for first, last in _runs(turns, longest):
            until = len(anybody) - 1 if len(anybody) - 1 - last <= longest else last
            present[anybody[first] : anybody[until] + 1, node] = True
    return present


def _runs(turns: IntArray, longest: float) -> Iterator[tuple[int, int]]:
    """First and last of the turns that follow each other with gaps of at most `longest`."""
    breaks = np.flatnonzero(np.diff(turns) - 1 > longest)
    starts, ends = np.append(0, breaks + 1), np.append(breaks, len(turns) - 1)
    yield from zip(turns[starts].tolist(), turns[ends].tolist(), strict=True)


def _of_changes(present: BoolArray) -> Iterator[str]:
    partly = int((~present.all(axis=0)).sum())
    if partly and not present.all(axis=1).any():
        yield "at no time were all nodes there: what is said of the pool is said of those that were"
    elif partly:
        yield f"{partly} of {present.shape[1]} nodes were not there all the time"


def _of_scores(
    nodes: tuple[RecordedNode, ...], node_cpu: FloatArray, *, scores: FloatArray, turns: IntArray
) -> Iterator[str]:
    """`turns`: steps of the operator's passes, ascending."""
    found = 100.0 * node_cpu / np.array([node.cores for node in nodes])
    if len(turns) > 1 and np.median(np.diff(turns)) > 1:
        # A score stands until the next pass, while the figures that it was made of go on.
        found, scores = found[turns[:-1]], scores[turns[1:] - 1]
    both = np.isfinite(found) & np.isfinite(scores)
    if both.any():
        apart = float(np.abs(found - scores)[both].mean())
        if apart > _SCORE_POINTS:
            yield (
                f"the operator's own scores differ from those of the recorded CPU by {apart:.1f} points in the mean: "
                "it weighed other resources too, or measured over another time"
            )


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


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
    runs = _stays_of(present, pod=pod, step=step, node=np.where(torn, -1, node))
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


def _stays_of(present: BoolArray, *, pod: IntArray, step: IntArray, node: IntArray) -> _Stays:
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
