"""What happened to one pool in one window of time, step by step, and the rows of a history that it is read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from ballast.errors import BallastError
from ballast.model.arrays import BoolArray, FloatArray, IntArray


def window_name(pool: str, start: float) -> str:
    """The pool and the moment where the window begins, in seconds since the epoch: at midnight the day alone."""
    return f"{pool} {instant(start).removesuffix('T00:00Z')}"


def instant(seconds: float) -> str:
    """Of the seconds since the epoch; to the minute where it is a whole one."""
    form = "%Y-%m-%dT%H:%M:%SZ" if seconds % 60 else "%Y-%m-%dT%H:%MZ"
    return datetime.fromtimestamp(seconds, tz=UTC).strftime(form)


class UnusableRecordingError(BallastError):
    """A recording that contradicts itself, or has nothing to replay."""


@dataclass(frozen=True, slots=True)
class RecordedNode:
    name: str
    cores: float
    """What pods may ask for, which scores are percent of; those of the machine where that is not known."""
    memory_bytes: float
    """The same of its memory; infinite where not even the machine's is known."""
    machine_cores: float
    """What can be used at most."""
    whole: bool = False
    """What it offers to pods was not recorded: `cores` and `memory_bytes` are the machine's."""


@dataclass(frozen=True, slots=True)
class RecordedExecutor:
    """One pod. It was there from step `first` up to and including step `last`."""

    namespace: str
    name: str
    application: str
    node: int
    """Index in the recording's nodes."""
    first: int
    last: int
    request_cores: float | None = None
    """None where it is not known, as with what follows."""
    request_memory_bytes: float | None = None
    bytes_per_core: float | None = None
    """Bytes of network, in and out, per second and core used."""
    moved: bool = False
    """It is the replacement of a move that the operator made."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """One window. Arrays have a row for each step; NaN = not known. Columns are `nodes`, or else `executors`."""

    pool: str
    start: float
    """Of the first step, in seconds since the epoch."""
    step_seconds: float
    nodes: tuple[RecordedNode, ...]
    executors: tuple[RecordedExecutor, ...]
    present: BoolArray
    """Whether the node was there."""
    node_cpu: FloatArray
    """Cores used, as a query gave it: a mean over the metric window."""
    node_memory: FloatArray
    """Bytes used."""
    scores: FloatArray
    """Percent, as the operator saw them."""
    executor_cpu: FloatArray
    """Cores used, as a query gave it."""
    executor_memory: FloatArray
    cordoned: BoolArray | None = None
    """By step and node: whether it took no new pods; None where that was not recorded."""
    passes: tuple[float, ...] = ()
    """Of the operator, seconds since the first step, ascending: the moments that their figures were of."""
    lingering_seconds: float = 0.0
    """How long an executor may seem to be there after it has gone."""
    unknown: tuple[str, ...] = ()
    """What reading it has found to be missing, doubtful or left out: a sentence each."""

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise UnusableRecordingError(f"recording {self.name}: {problem}")

    @property
    def name(self) -> str:
        return window_name(self.pool, self.start)

    @property
    def steps(self) -> int:
        return len(self.node_cpu)

    @property
    def duration_seconds(self) -> float:
        """From the first step to the last."""
        return (self.steps - 1) * self.step_seconds

    def step_at(self, time: float) -> int:
        """The newest step, `time` seconds after the first one."""
        return min(int(time / self.step_seconds + 1e-9), self.steps - 1)


def _problems(recording: Recording) -> list[str]:
    """Anything that would make figures wrong without a sound."""
    steps, nodes, executors = recording.steps, len(recording.nodes), len(recording.executors)
    if not (steps and nodes):
        return ["it has no steps" if not steps else "it has no nodes"]
    cordoned = recording.present if recording.cordoned is None else recording.cordoned
    of_nodes = (cordoned, recording.present, recording.node_cpu, recording.node_memory, recording.scores)
    of_executors = (recording.executor_cpu, recording.executor_memory)
    found = []
    if any(array.shape != (steps, nodes) for array in of_nodes):
        found.append("its arrays are not of the size of its steps and nodes")
    elif any(array.shape != (steps, executors) for array in of_executors):
        found.append("its arrays are not of the size of its steps and executors")
    else:
        found += [f"node {node.name} has no cores" for node in recording.nodes if not node.cores > 0]
        found += [f"{each.name} was on a node that was not there" for each in recording.executors
                  if not recording.present[each.first : each.last + 1, each.node].all()]  # fmt: skip
        figures = (recording.node_cpu, recording.node_memory, *of_executors)
        if any((array < 0).any() or np.isinf(array).any() for array in figures):
            found.append("it has figures that are negative or infinite")
    return found


_AGREEMENT_RATIO = 1.1
"""Two figures for one thing are averaged when they differ by no more than this, as the operator does."""
_STRAY_RATIO = 0.1
"""More rows than this next to the grid make a recording unusable."""


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """A column of text: for each row the index of its word, or -1."""

    codes: IntArray
    words: tuple[str, ...]

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> Texts:
        words = tuple(sorted({text for text in texts if text is not None}))
        index = {word: position for position, word in enumerate(words)}
        return cls(np.array([-1 if text is None else index[text] for text in texts], dtype=np.int64), words)

    def chosen(self, rows: BoolArray | IntArray) -> Texts:
        return Texts(self.codes[rows], self.words)

    def code(self, word: str) -> int:
        """-2 for one that no row has."""
        return self.words.index(word) if word in self.words else -2


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Columns of the history, in any order of rows."""

    time_ms: IntArray
    """Since 1970."""
    signal: Texts
    node: Texts
    namespace: Texts
    pod: Texts
    detail: Texts
    value: FloatArray

    def __len__(self) -> int:
        return len(self.value)

    def chosen(self, rows: BoolArray | IntArray) -> Rows:
        return Rows(
            self.time_ms[rows],
            self.signal.chosen(rows),
            self.node.chosen(rows),
            self.namespace.chosen(rows),
            self.pod.chosen(rows),
            self.detail.chosen(rows),
            self.value[rows],
        )

    def of(self, signal: str) -> Rows:
        return self.chosen(self.signal.codes == self.signal.code(signal))


@dataclass(frozen=True, slots=True)
class Grid:
    start_ms: int
    step_ms: int
    steps: int


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Rows on a grid, each cell at most once."""

    grid: Grid
    step: IntArray
    """By row."""
    rows: Rows

    def of(self, signal: str) -> Cells:
        chosen = self.rows.signal.codes == self.rows.signal.code(signal)
        return Cells(self.grid, self.step[chosen], self.rows.chosen(chosen))

    def columns(self, columns: Mapping[str, int]) -> IntArray:
        """By row: its node's column; -1 = a node that has none."""
        words = self.rows.node.words
        return np.array([columns.get(word, -1) for word in words] + [-1], dtype=np.int64)[self.rows.node.codes]

    def table(self, columns: Mapping[str, int]) -> FloatArray:
        """Steps × nodes; NaN where there is no row."""
        return self.spread(self.columns(columns), len(columns))

    def spread(self, column: IntArray, width: int) -> FloatArray:
        """Steps × columns. `column`: by row; -1 = none."""
        table = np.full((self.grid.steps, width), np.nan)
        known = column >= 0
        table[self.step[known], column[known]] = self.rows.value[known]
        return table


def cells(rows: Rows, *, start_ms: int, end_ms: int) -> tuple[Cells, tuple[str, ...]]:
    """The rows of [start, end) that can be used, and sentences about the others.

    The grid goes from the first step with a figure of a node's CPU to the last one. Raises UnusableRecordingError.
    """
    inside = rows.chosen((rows.time_ms >= start_ms) & (rows.time_ms < end_ms))
    grid = _grid(inside, start_ms)
    told: list[str] = []
    aligned = (inside.time_ms - grid.start_ms) % grid.step_ms == 0
    stray = int((~aligned).sum())
    if stray > _STRAY_RATIO * len(inside):
        raise UnusableRecordingError(
            f"{stray} of {len(inside)} figures are not at the times of the others, which are {grid.step_ms / 1000:g} s "
            "apart: collect the days again, all with the same --step"
        )
    if stray:
        told.append(f"{stray} figures are not at the times of the others and were left out")
    last_ms = grid.start_ms + grid.step_ms * grid.steps
    usable = inside.chosen(aligned & (inside.time_ms >= grid.start_ms) & (inside.time_ms < last_ms))
    sound = np.isfinite(usable.value) & (usable.value >= 0)
    if not sound.all():
        told.append(f"{int((~sound).sum())} figures are negative or no numbers and were left out")
    usable, doubled = _single(usable.chosen(sound))
    if doubled:
        told.append(f"{doubled} figures contradict others of the same thing and time, and all of these were left out")
    return Cells(grid, (usable.time_ms - grid.start_ms) // grid.step_ms, usable), tuple(told)


def _grid(rows: Rows, start_ms: int) -> Grid:
    """The time grid on which most CPU values of nodes lie."""
    measured = rows.of("nodeCpu")
    order = np.lexsort((measured.time_ms, measured.node.codes))
    node, times = measured.node.codes[order], measured.time_ms[order]
    apart = np.diff(times)[(node[1:] == node[:-1]) & (np.diff(times) > 0)]
    if not len(apart):
        raise UnusableRecordingError("no node has figures of its CPU at two times, which are the fewest")
    step = _commonest(apart)
    on = times[(times - start_ms) % step == _commonest((times - start_ms) % step)]
    return Grid(int(on.min()), step, int((on.max() - on.min()) // step) + 1)


def _commonest(values: IntArray) -> int:
    found, counts = np.unique(values, return_counts=True)
    return int(found[np.argmax(counts)])


def _single(rows: Rows) -> tuple[Rows, int]:
    """Each cell once: the mean of figures that agree; those that do not are left out, and counted."""
    order, first = _cells_in_order(rows)
    if first.all():
        return rows, 0
    starts = np.flatnonzero(first)
    values = rows.value[order]
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    counts = np.diff(np.append(starts, len(values)))
    agree = (low == high) | ((low > 0) & (high <= _AGREEMENT_RATIO * low))
    means = np.where(low == high, low, np.add.reduceat(values, starts) / counts)
    kept = rows.chosen(order[starts[agree]])
    return replace(kept, value=means[agree]), int(counts[~agree].sum())


def _cells_in_order(rows: Rows) -> tuple[IntArray, BoolArray]:
    """Rows sorted by cell, and which of these begin a cell."""
    keys = (rows.time_ms, *(words.codes for words in _told_apart(rows)))
    order = np.lexsort(keys)
    first = np.ones(len(order), dtype=bool)
    if len(order):
        same = [key[order][1:] == key[order][:-1] for key in keys]
        first[1:] = ~np.logical_and.reduce(same)
    return order, first


def _told_apart(rows: Rows) -> Iterator[Texts]:
    yield from (rows.detail, rows.pod, rows.namespace, rows.node, rows.signal)
