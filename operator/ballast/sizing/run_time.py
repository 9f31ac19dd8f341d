"""How long a batch job would take with other executors: its measured tasks, run again on as many cores."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from ballast.sizing.event_log import EventLog, StageRun


@dataclass(frozen=True, slots=True)
class Prediction:
    """By the model, with what bounds it."""

    cores: int
    seconds: float
    driver_seconds: float
    """Nothing ran on executors: planning, listing files, collecting. More executors don't shorten it."""
    least_seconds: float
    """Driver time and the longest task of every step: no number of executors goes below."""


def predict(log: EventLog, cores: int) -> Prediction:
    """The run time with `cores` task slots in all.

    Stages start as in the log: after their parents, and after stages that had ended before they began. Tasks take as
    long as they did, which holds while executors don't compete for disk, network or memory.
    """
    tasks = _replayed(log.stages, cores)
    longest = _replayed(log.stages, max(len(log.tasks), 1))
    idle = max(log.seconds - _covered(log.stages), 0.0)
    return Prediction(cores, idle + tasks, idle, idle + longest)


def _covered(stages: Sequence[StageRun]) -> float:
    """Seconds in which at least one task ran."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted((task.start_seconds, task.end_seconds) for stage in stages for task in stage.tasks):
        total += max(end - max(start, reached), 0.0)
        reached = max(reached, end)
    return total


def _replayed(stages: Sequence[StageRun], cores: int) -> float:
    """List scheduling: each task goes to the core that is free first, stages in the order in which they began."""
    ordered = sorted(stages, key=lambda stage: (stage.start_seconds, stage.number))
    free = [0.0] * cores
    ends: dict[int, float] = {}
    for stage in ordered:
        before = [ends[each.number] for each in ordered if each.number in ends and _precedes(each, stage)]
        ready = max(before, default=0.0)
        ends[stage.number] = ready
        for task in sorted(stage.tasks, key=lambda each: each.start_seconds):
            start = max(heapq.heappop(free), ready)
            end = start + task.seconds
            heapq.heappush(free, end)
            ends[stage.number] = max(ends[stage.number], end)
    return max(ends.values(), default=0.0)


def _precedes(earlier: StageRun, later: StageRun) -> bool:
    return earlier.number in later.parents or earlier.end_seconds <= later.start_seconds
