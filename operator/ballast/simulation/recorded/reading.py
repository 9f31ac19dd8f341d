"""From a history's rows to a recording: what was where and when, and what of it is doubtful."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.simulation.recorded.meter import held
from ballast.simulation.recorded.pods import pods
from ballast.simulation.recorded.rows import Cells, Rows, cells
from ballast.simulation.recorded.slots import with_moved
from ballast.simulation.recording import RecordedNode, Recording, UnusableRecordingError

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
