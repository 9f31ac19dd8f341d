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
    """The run time with `cores` in all, of which each task keeps spark.task.cpus.

    Stages start as in the log: after their parents, and after stages that had ended before they began. Tasks take as
    long as they did, which holds while executors don't compete for disk, network or memory.
    """
    measured = log.peak[1]
    slots = cores * log.slots // measured if measured else cores // log.task_cpus
    tasks = _replayed(log.stages, max(slots, 1))
    longest = _replayed(log.stages, max(len(log.tasks), 1))
    idle = max(log.seconds - log.busy_seconds, 0.0)
    return Prediction(cores, idle + tasks, idle, idle + longest)


def _replayed(stages: Sequence[StageRun], cores: int) -> float:
    """List scheduling: each task goes to the core that is free first, stages in the order in which they began."""
    # More cores than tasks stay free.
    free = [0.0] * min(cores, sum(len(stage.tasks) for stage in stages))
    ends: dict[int, float] = {}
    running: list[tuple[float, float]] = []  # end in the log and end here, of stages that may still precede others
    passed = 0.0
    for stage in sorted(stages, key=lambda each: (each.start_seconds, each.number)):
        while running and running[0][0] <= stage.start_seconds:
            passed = max(passed, heapq.heappop(running)[1])
        ready = max([passed, *(ends[parent] for parent in stage.parents if parent in ends)])
        end = ready
        for task in sorted(stage.tasks, key=lambda each: each.start_seconds):
            done = max(heapq.heappop(free), ready) + task.seconds
            heapq.heappush(free, done)
            end = max(end, done)
        ends[stage.number] = end
        heapq.heappush(running, (stage.end_seconds, end))
    return max(ends.values(), default=0.0)
