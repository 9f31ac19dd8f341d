"""The first rule, stage by stage, and the constraining resource of the slowest stage with the evidence for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from ballast.sizing.event_log import EventLog, Task
from ballast.sizing.facts import Facts, stages
from ballast.sizing.gc_health import gc_checks
from ballast.sizing.littles_law import bounds, median_of_slowest, source_limits
from ballast.sizing.memory import MIB
from ballast.sizing.progress import Progress
from ballast.sizing.provenance import Origin

CPU_BOUND, FETCH_BOUND, GC_BOUND, IDLE_BOUND = 0.7, 0.25, 0.1, 0.5
"""Shares of the time from which on CPU, waiting for shuffle data, garbage collection or idle executors count."""


class Resource(StrEnum):
    IO = "IO volume"
    CPU = "CPU"
    CONCURRENCY = "concurrency"
    REMOTE_RATE = "remote rate"
    MEMORY = "memory"
    BOOKKEEPING = "bookkeeping"
    """Spark's own work per batch, which does not depend on the records."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What limits the pipeline. `resource` is None where nothing shows it."""

    resource: Resource | None
    stage: str
    evidence: str
    origin: Origin
    share: float | None = None
    """Of the time, as far as the evidence is a share."""
    remedy: str = ""


def bottleneck(facts: Facts, *, parallelism: int) -> Bottleneck:
    """The principal one: a remote rate limit, then a heap that is too small, then what takes most of the time."""
    return next(_candidates(facts, parallelism), _UNKNOWN)


_UNKNOWN = Bottleneck(
    None,
    "",
    "nothing is declared or measured that shows it",
    Origin.ASSUMED,
    remedy="give --event-log, --prometheus or latencies in spec.sizing.stages",
)


def _candidates(facts: Facts, parallelism: int) -> Iterator[Bottleneck]:
    yield from _remote_rate(facts, parallelism)
    yield from _collections(facts)
    if facts.log is not None:
        yield from _outside_executors(facts.log, facts.progress)
        yield from _memory_in_tasks(facts.log)
        yield _tasks(facts.log)
    if facts.progress is not None and facts.progress.bookkeeping_share > IDLE_BOUND:
        yield _bookkeeping(facts.progress)
    yield from _from_metrics(facts)
    yield from _declared(facts, parallelism)


def _remote_rate(facts: Facts, parallelism: int) -> Iterator[Bottleneck]:
    declared = stages(facts.declared, parallelism=parallelism)
    if not declared:
        return
    limits = source_limits(declared)
    slowest = min(range(len(limits)), key=limits.__getitem__)
    stage = declared[slowest]
    if stage.capacity == stage.remote_rate_limit:
        evidence = (
            f"its remote service takes {stage.remote_rate_limit:g} records/s; its {stage.parallelism} tasks could send "
            f"{stage.parallelism / stage.latency_seconds:g}"
        )
        remedy = "no tuning here passes this limit: send fewer requests (combine, cache), or raise the limit there"
        yield Bottleneck(Resource.REMOTE_RATE, stage.name, evidence, Origin.DECLARED, remedy=remedy)


def _collections(facts: Facts) -> Iterator[Bottleneck]:
    if facts.gc is not None:
        bad = [
            check
            for check in gc_checks(facts.gc)[:2]
            if check.healthy is False and "spark.executor.memory" in check.remedy
        ]
        if bad:
            yield Bottleneck(Resource.MEMORY, "executors", bad[0].evidence, Origin.MEASURED, remedy=bad[0].remedy)


def _memory_in_tasks(log: EventLog) -> Iterator[Bottleneck]:
    run = math.fsum(task.run_seconds for task in log.tasks) or 1.0
    share = math.fsum(task.gc_seconds for task in log.tasks) / run
    spilled = math.fsum(task.spilled_bytes for task in log.tasks)
    if share > GC_BOUND:
        evidence = f"{share:.0%} of the tasks' time is garbage collection"
        yield Bottleneck(Resource.MEMORY, "executors", evidence, Origin.MEASURED, share, _MEMORY_REMEDY)
    if spilled > 0.0:
        stage = max(log.stages, key=lambda each: math.fsum(task.spilled_bytes for task in each.tasks))
        evidence = f"{spilled / MIB:.4g} MiB were spilled to disk"
        yield Bottleneck(Resource.MEMORY, stage.name, evidence, Origin.MEASURED, remedy=_MEMORY_REMEDY)


_MEMORY_REMEDY = "raise spark.executor.memory, or spark.sql.shuffle.partitions so that a task holds less"


def _outside_executors(log: EventLog, progress: Progress | None) -> Iterator[Bottleneck]:
    """Executors are idle for most of the time: something on the driver, or that it waits for, takes it."""
    first, last = log.start_seconds, log.end_seconds
    if progress is not None:  # the start of a stream is no part of its batches
        first, last = log.stages[0].start_seconds, max(stage.end_seconds for stage in log.stages)
    idle = 1.0 - log.busy_seconds / (last - first) if last > first else 0.0
    if idle <= IDLE_BOUND:
        return
    if progress is None:
        evidence = f"no task runs in {idle:.0%} of the job's time: the driver plans, lists files, collects or waits"
        remedy = "shorten what the driver does alone; more executors don't help"
        yield Bottleneck(Resource.CONCURRENCY, "driver", evidence, Origin.MEASURED, idle, remedy)
        return
    if progress.bookkeeping_share > idle / 2.0:
        yield _bookkeeping(progress)
        return
    evidence = (
        f"no task runs in {idle:.0%} of the batches' time, and Spark's bookkeeping takes "
        f"{progress.bookkeeping_share:.0%}: "
        "the driver waits, as for a request that foreachBatch or a sink sends once per batch"
    )
    remedy = "send it from several tasks at once (foreachPartition), or choose the batch size that suits it best"
    yield Bottleneck(Resource.CONCURRENCY, "driver", evidence, Origin.MEASURED, idle, remedy)


def _bookkeeping(progress: Progress) -> Bottleneck:
    share = progress.bookkeeping_share
    evidence = f"planning, offsets and the write-ahead log take {share:.0%} of the batches' time"
    remedy = "make batches larger: raise maxOffsetsPerTrigger and the trigger interval"
    return Bottleneck(Resource.BOOKKEEPING, "driver", evidence, Origin.MEASURED, share, remedy)


def _tasks(log: EventLog) -> Bottleneck:
    """By what the tasks of the stage that takes most time do with it."""
    stage, tasks = _busiest_stage(log)
    run = math.fsum(task.run_seconds for task in tasks) or 1.0
    cpu = math.fsum(task.cpu_seconds for task in tasks) / run
    waiting = math.fsum(task.fetch_wait_seconds for task in tasks) / run
    if waiting > FETCH_BOUND:
        evidence = f"its tasks wait {waiting:.0%} of their time for shuffle data"
        remedy = "place executors nearer to each other, or send less: filter and aggregate before the shuffle"
        return Bottleneck(Resource.IO, stage, evidence, Origin.MEASURED, waiting, remedy)
    if cpu >= CPU_BOUND:
        evidence = f"its tasks compute for {cpu:.0%} of their time"
        return Bottleneck(Resource.CPU, stage, evidence, Origin.MEASURED, cpu, _CPU_REMEDY)
    if log.python:
        evidence = (
            f"the JVM computes for {cpu:.0%} of the tasks' time; Python workers take the rest, computing or waiting"
        )
        return Bottleneck(Resource.CPU, stage, evidence, Origin.ASSUMED, 1.0 - cpu, _CPU_REMEDY)
    if _bytes_of(tasks) / run > _BYTES_PER_SECOND:
        evidence = (
            f"its tasks compute for {cpu:.0%} of their time and move {_bytes_of(tasks) / run / MIB:.4g} MiB/s each"
        )
        return Bottleneck(Resource.IO, stage, evidence, Origin.MEASURED, 1.0 - cpu, "read and write less, or faster")
    evidence = f"its tasks compute for {cpu:.0%} of their time, and wait for something outside for the rest"
    remedy = "run more tasks at once: they wait, so spark.executor.cores may be far above the real cores"
    return Bottleneck(Resource.CONCURRENCY, stage, evidence, Origin.MEASURED, 1.0 - cpu, remedy)


_CPU_REMEDY = "raise the parallelism of this stage, up to the cores there are"
_BYTES_PER_SECOND = 20.0 * MIB
"""Of one task: from here on reading and writing explain why it waits."""


def _busiest_stage(log: EventLog) -> tuple[str, tuple[Task, ...]]:
    """Stages of one name together; the one whose tasks take most time."""
    by_name: dict[str, list[Task]] = {}
    for stage in log.stages:
        by_name.setdefault(stage.name or f"stage {stage.number}", []).extend(stage.tasks)
    name = max(by_name, key=lambda each: math.fsum(task.run_seconds for task in by_name[each]))
    return name, tuple(by_name[name])


def _bytes_of(tasks: tuple[Task, ...]) -> float:
    return math.fsum(task.input_bytes + task.shuffle_read_bytes + task.shuffle_write_bytes for task in tasks)


def _from_metrics(facts: Facts) -> Iterator[Bottleneck]:
    metrics = facts.metrics
    if metrics is None or metrics.busy_ratio is None:
        return
    busy, seconds = metrics.busy_ratio, metrics.task_seconds_per_second or 1.0
    collecting = (metrics.gc_seconds_per_second or 0.0) / seconds
    if collecting > GC_BOUND:
        evidence = f"{collecting:.0%} of the tasks' time is garbage collection"
        yield Bottleneck(Resource.MEMORY, "executors", evidence, Origin.MEASURED, collecting, _MEMORY_REMEDY)
    elif busy >= CPU_BOUND:
        evidence = f"tasks occupy {busy:.0%} of the cores"
        yield Bottleneck(Resource.CPU, "executors", evidence, Origin.MEASURED, busy, _CPU_REMEDY)


def _declared(facts: Facts, parallelism: int) -> Iterator[Bottleneck]:
    """By the declared latencies alone: the slowest stage, assumed to compute."""
    declared = stages(facts.declared, parallelism=parallelism)
    if declared:
        limit = bounds(declared)
        evidence = f"by its declared latency it passes {limit.records_per_second:.4g} records/s of the source at most"
        yield Bottleneck(Resource.CPU, limit.slowest, evidence, Origin.ASSUMED, remedy=_CPU_REMEDY)


# The first rule: each stage always has records to work on, and each one after it always has room for them.

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
    slots = max(log.slots, 1)
    for name, indices in names.items():
        runs = [log.stages[index] for index in indices]
        tasks = [task for run in runs for task in run.tasks]
        span = math.fsum(run.end_seconds - run.start_seconds for run in runs)
        busy = math.fsum(task.seconds for task in tasks) / (slots * span) if span > 0.0 else 1.0
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
