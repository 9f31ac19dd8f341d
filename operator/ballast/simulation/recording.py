"""What happened to one pool in one window of time, step by step, as it was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from ballast.errors import BallastError
from ballast.model.arrays import BoolArray, FloatArray


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
