"""The first rule: each stage always has records to work on, and each one after it always has room for them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from ballast.sizing.event_log import EventLog
from ballast.sizing.facts import Facts, stages
from ballast.sizing.littles_law import median_of_slowest, source_limits
from ballast.sizing.progress import Progress
from ballast.sizing.provenance import Origin

_BUSY = 0.7
_SKEWED = 2.0


@dataclass(frozen=True, slots=True)
class StageCheck:
    """One stage. None where nothing tells."""

    stage: str
    ready_upstream: bool | None
    """There are always records for it."""
    room_downstream: bool | None
    """What follows takes its records promptly."""
    evidence: str
    origin: Origin


def first_rule(facts: Facts, *, rate: float | None, parallelism: int) -> tuple[StageCheck, ...]:
    """The source and each stage, measured where possible, else by the declared latencies."""
    found = []
    if facts.progress is not None:
        found.append(_source(facts.progress))
    if facts.log is not None:
        found.extend(_measured_stages(facts.log))
    return tuple(found) or tuple(_declared_stages(facts, rate, parallelism))


def _source(progress: Progress) -> StageCheck:
    """Batches take what waits. There is room if rows are processed faster than they arrive."""
    behind = [each.behind_rows for each in progress.batches if each.behind_rows is not None]
    ready = None if not behind else median(behind) > 0.0
    arriving = [each.arriving_per_second for each in progress.batches if each.arriving_per_second is not None]
    processed = math.fsum(progress.rows) / math.fsum(progress.seconds)
    told = [f"{processed:.4g} records/s are processed while a batch runs"]
    room = None
    if arriving:
        typical = median(arriving)
        room = processed >= 0.99 * typical
        told.append(f"{typical:.4g} arrive")
    if behind:
        told.append(f"{median(behind):.4g} wait in the partition that lags most")
    return StageCheck("source", ready, room, ", ".join(told), Origin.MEASURED)


def _measured_stages(log: EventLog) -> Iterator[StageCheck]:
    """By name. Ready: its tasks keep the cores busy while it runs. Room: tasks don't wait for one straggler."""
    names: dict[str, list[int]] = {}
    for index, stage in enumerate(log.stages):
        names.setdefault(stage.name or f"stage {stage.number}", []).append(index)
    cores = max(log.total_cores, 1)
    for name, indices in names.items():
        runs = [log.stages[index] for index in indices]
        tasks = [task for run in runs for task in run.tasks]
        span = math.fsum(run.end_seconds - run.start_seconds for run in runs)
        busy = math.fsum(task.seconds for task in tasks) / (cores * span) if span > 0.0 else 1.0
        seconds = sorted(task.seconds for task in tasks)
        per_run = max(1, round(len(tasks) / len(runs)))
        typical = median(seconds)
        slowest = median_of_slowest(seconds, per_run)
        skew = slowest / typical if typical > 0.0 else 1.0
        evidence = (
            f"{len(tasks)} tasks in {len(runs)} runs occupy {min(busy, 1.0):.0%} of the cores; of {per_run} parallel "
            f"tasks the slowest takes {slowest:.3g} s, a typical one {typical:.3g} s"
        )
        yield StageCheck(name, busy >= _BUSY, skew < _SKEWED, evidence, Origin.MEASURED)


def _declared_stages(facts: Facts, rate: float | None, parallelism: int) -> Iterator[StageCheck]:
    """Without a rate, the source gives as much as the slowest stage passes. Only that stage must be kept busy."""
    declared = stages(facts.declared, parallelism=parallelism)
    limits = source_limits(declared)
    slowest = min(limits, default=0.0)
    offered = slowest if rate is None else rate
    for index, (stage, limit) in enumerate(zip(declared, limits, strict=True)):
        after = min(limits[index + 1 :], default=math.inf)
        ready = offered >= slowest if limit == slowest else None
        evidence = f"passes {limit:.4g} records/s of the source; {offered:.4g} arrive"
        yield StageCheck(stage.name, ready, after >= min(offered, limit), evidence, Origin.DECLARED)
