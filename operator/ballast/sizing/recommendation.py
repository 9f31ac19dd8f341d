"""The configuration that follows for Spark, the source and the JVM, and what looks wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ballast.api.topology_sizing import Goal
from ballast.errors import InvalidField
from ballast.sizing.batch_regimes import CannotTell, kafka_batch
from ballast.sizing.bottleneck import Bottleneck, StageCheck, bottleneck, first_rule
from ballast.sizing.facts import Facts, measured_inputs, spark_seconds, stages, what_was_read
from ballast.sizing.gc_health import Check, gc_checks
from ballast.sizing.headline import headline
from ballast.sizing.littles_law import bounds
from ballast.sizing.memory import (
    MIB,
    UNIFIED_LOGGING_SINCE,
    Collector,
    collector_for,
    heap_warnings,
    jvm_options,
    pending_warnings,
    source_warnings,
)
from ballast.sizing.run_time import Prediction, predict
from ballast.sizing.variables import Table, table

_NETWORK_TIMEOUT_SECONDS = 120.0
"""Spark's default of spark.network.timeout."""
_JAVA_OPTIONS = "spark.executor.extraJavaOptions"
_DEFAULT_JAVA_OPTIONS = "spark.executor.defaultJavaOptions"
_COLLECTOR_OPTION = re.compile(r"-XX:\+Use(\w+?)GC\b", re.ASCII)
_CALLED = {"Z": "ZGC", "ParallelOld": "Parallel", "ConcMarkSweep": "CMS"}
_TIMES_SLOWEST = 3.0
_STEADY_SHARE = 0.9
"""Of the most cores, that must be there on average for the executors to count as steady."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    goal: Goal
    headline: str
    """One sentence: what to change first, and what it brings."""
    bottleneck: Bottleneck
    first_rule: tuple[StageCheck, ...]
    table: Table
    spark_conf: Mapping[str, str]
    source_options: Mapping[str, str]
    """Set in the application's code, such as maxOffsetsPerTrigger."""
    jvm_options: tuple[str, ...]
    gc: tuple[Check, ...]
    run_times: tuple[Prediction, ...]
    """Of a batch job: at half, the same and twice the cores."""
    warnings: tuple[str, ...]
    read: tuple[str, ...]
    """One sentence for each input: what was read, and what was passed over."""
    before: Mapping[str, str]
    """What `spark_conf` has in the measured application, by name, as far as that is known."""


def recommend(facts: Facts) -> Recommendation:
    """Raises InvalidField where nothing at all is known, or for a what-if that can't be taken."""
    if facts.nothing_known:
        remedy = "give -f topology.yaml with spec.sizing, --progress, --event-log, --gc-log or --prometheus"
        raise InvalidField("--filename", "no input", remedy)
    made = table(facts)
    cores = made.whole("parallelism")
    limit = bottleneck(facts, parallelism=cores)
    collector = _collector(facts, made)
    options = jvm_options(collector, java=made.whole("java", 17), own=_settings(facts).get(_JAVA_OPTIONS, ""))
    run_times = _run_times(facts)
    return Recommendation(
        goal=facts.goal,
        headline=headline(facts, made, limit, run_times),
        bottleneck=limit,
        first_rule=first_rule(facts, rate=made.amount("rate"), parallelism=cores),
        table=made,
        spark_conf=dict(_spark_conf(facts, made, options)),
        source_options=dict(_source_options(facts, made)),
        jvm_options=options,
        gc=gc_checks(facts.gc) if facts.gc is not None else (),
        run_times=run_times,
        warnings=tuple(_warnings(facts, made, collector)),
        read=tuple(what_was_read(facts)),
        before=_before(facts),
    )


def _settings(facts: Facts) -> Mapping[str, str]:
    """Of the measured application."""
    return facts.log.settings if facts.log is not None else {}


def _before(facts: Facts) -> Mapping[str, str]:
    heap = facts.gc.heap_bytes if facts.gc is not None else None
    seen = {} if heap is None else {"spark.executor.memory": f"{math.floor(heap / MIB)}m"}
    return {**seen, **_settings(facts)}


def _collector(facts: Facts, made: Table) -> Collector:
    heap = made.amount("heapBytes") or 0.0
    return collector_for(java=made.whole("java", 17), heap_bytes=heap, latency=facts.goal is Goal.LATENCY)


def _run_times(facts: Facts) -> tuple[Prediction, ...]:
    if facts.log is None or facts.progress is not None or not facts.log.peak[1] or facts.log.resource_profiles > 1:
        return ()
    cores = facts.log.peak[1]
    return tuple(predict(facts.log, count) for count in sorted({max(cores // 2, 1), cores, cores * 2}))


def _spark_conf(facts: Facts, made: Table, options: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    known = made.executors_known
    if known:
        yield "spark.executor.instances", str(made.whole("executors"))
        yield "spark.executor.cores", str(made.whole("executorCores"))
    heap, overhead = made.amount("heapBytes"), made.amount("overheadBytes")
    if heap is not None and overhead is not None:
        yield "spark.executor.memory", f"{math.floor(heap / MIB)}m"
        yield "spark.executor.memoryOverhead", f"{math.ceil(overhead / MIB)}m"
    if known:
        yield "spark.sql.shuffle.partitions", str(_shuffle_partitions(facts, made))
    slowest = _slowest_seconds(facts, made)
    timeout = spark_seconds(_settings(facts).get("spark.network.timeout", ""))
    if _TIMES_SLOWEST * slowest > (timeout or _NETWORK_TIMEOUT_SECONDS):
        yield "spark.network.timeout", f"{math.ceil(_TIMES_SLOWEST * slowest)}s"
    yield _JAVA_OPTIONS, " ".join(options)


def _shuffle_partitions(facts: Facts, made: Table) -> int:
    """One per core for a stream: tasks of a batch are short. For a batch job pendingRatio waves, against stragglers."""
    streaming = facts.log is None or facts.progress is not None
    return _slots(facts, made.whole("parallelism") if streaming else made.whole("maxPending"))


def _slots(facts: Facts, cores: int) -> int:
    """Tasks that run on so many cores at once."""
    return max(cores // (facts.log.task_cpus if facts.log is not None else 1), 1)


def _slowest_seconds(facts: Facts, made: Table) -> float:
    tasks = max((task.seconds for task in facts.log.tasks), default=0.0) if facts.log is not None else 0.0
    return max(tasks, made.amount("expectedBatchSeconds") or 0.0)


def _source_options(facts: Facts, made: Table) -> Iterator[tuple[str, str]]:
    """Nothing for a batch job."""
    records = made.amount("batchRecords")
    if records is None or (facts.progress is None and facts.log is not None and "rate" not in made.variables):
        return
    yield "maxOffsetsPerTrigger", str(math.floor(records))
    trigger = made.amount("triggerSeconds")
    if trigger is not None and facts.goal is not Goal.LATENCY:
        yield "trigger(processingTime)", f"{max(round(trigger * 1000.0), 1)} milliseconds"
    fetch, socket = made.amount("fetchBytes"), made.amount("socketBufferBytes")
    if fetch is not None and socket is not None:
        yield "kafka.max.partition.fetch.bytes", str(math.ceil(fetch))
        yield "kafka.receive.buffer.bytes", f"{socket:.0f}"
    partitions = made.amount("partitions")
    slots = _slots(facts, made.whole("parallelism"))
    if partitions is not None and made.executors_known and slots > partitions:
        yield "minPartitions", str(slots)


def _warnings(facts: Facts, made: Table, collector: Collector) -> Iterator[str]:
    yield from _about_cores(facts, made)
    yield from _about_batches(made)
    heap, pending = made.amount("heapBytes"), made.amount("pendingBytes")
    memory = made.amount("executorMemory")
    for size in {each for each in (heap, memory) if each is not None}:
        yield from heap_warnings(size, collector)
    if heap is not None and pending is not None:
        yield from pending_warnings(pending_bytes=pending, heap_bytes=heap)
    yield from _about_declared(facts, made)
    yield from _about_what_was_read(facts, made, collector)
    if facts.log is not None and facts.log.failed_tasks:
        yield f"{facts.log.failed_tasks} tasks failed: their time is not counted, and retries slow the job down."
    if made.whole("java", 17) < UNIFIED_LOGGING_SINCE:
        yield (
            "Java 8 writes GC logs in a form that is not read: to size the heap by what it keeps, run executors on "
            "Java 11 or later (Spark 3.0 and later)."
        )
    if made.whole("java", 17) < 21 and facts.goal is Goal.LATENCY:
        yield "Java below 21 has no generational ZGC: for latency, run executors on Java 21 or later."


def _about_what_was_read(facts: Facts, made: Table, collector: Collector) -> Iterator[str]:
    gc, log = facts.gc, facts.log
    if gc is not None and gc.steady_old_bytes is None and "heapBytes" not in made.variables:
        occupied = "" if gc.occupied_bytes is None else f" {gc.occupied_bytes / MIB:.0f} MiB are occupied after them."
        if gc.region_size_missing:
            yield (
                f"No heap is proposed: the GC log lacks its beginning, which has the size of a region.{occupied} Give "
                "the log from the start of the JVM: with rotation, its oldest file, too."
            )
        else:
            yield (
                "No heap is proposed: the GC log doesn't show how full the old generation is after collections."
                f"{occupied} Write it with -Xlog:gc*, which has the tag gc+heap."
            )
    if gc is not None and not gc.understood and gc.passed_over:
        told = f"{gc.passed_over} of {gc.lines} lines of the GC log are not understood"
        yield f"{told}, such as {gc.first_passed_over!r}: whether the collector is healthy is not known."
    yield from _about_collector(facts, collector)
    if log is not None and log.resource_profiles > 1:
        yield (
            f"its executors have {log.resource_profiles} resource profiles, and each task runs on executors of its "
            "profile alone: no run time is predicted. What is proposed concerns the default profile."
        )
    if log is not None and log.mean_cores < _STEADY_SHARE * log.peak[1]:
        yield (
            f"executors came and went: {log.mean_cores:.3g} cores were there on average, {log.peak[1]} at most. What "
            f"is said of run times takes {log.peak[1]} throughout."
        )


def _about_collector(facts: Facts, collector: Collector) -> Iterator[str]:
    """Java doesn't start with two collectors, and Spark passes on its default options, too."""
    settings = _settings(facts)
    default = _collector_in(settings.get(_DEFAULT_JAVA_OPTIONS, ""))
    told = facts.gc.collector if facts.gc is not None else None
    now = told or _collector_in(settings.get(_JAVA_OPTIONS, "")) or default
    if now is not None and now != collector.value:
        yield (
            f"{_JAVA_OPTIONS} changes the collector from {now} to {collector.value}: leave these options out to keep "
            "it."
        )
    if default is not None and default != collector.value:
        yield (
            f"{_DEFAULT_JAVA_OPTIONS} chooses {default}, and Java does not start with two collectors: remove it there "
            f"before you choose {collector.value}."
        )


def _collector_in(options: str) -> str | None:
    found = _COLLECTOR_OPTION.findall(options)
    return _CALLED.get(found[-1], found[-1]) if found else None


def _about_cores(facts: Facts, made: Table) -> Iterator[str]:
    cores, partitions = made.whole("parallelism"), made.amount("partitions")
    if partitions is not None and made.executors_known:
        first = next(iter(facts.declared.stages), None)
        tasks = first.parallelism if first is not None and first.latency is None else None
        yield from source_warnings(partitions=int(partitions), cores=_slots(facts, cores), declared_tasks=tasks)
    note = made.variables["sourceTasks"].note
    if note:
        yield f"sourceTasks: {note}."
    needed = made.needed_parallelism
    if needed is not None and needed > cores:
        reachable = made.amount("rate") or 0.0
        yield f"the rate of {reachable:.4g} records/s needs {needed} cores: the declared machines have {cores}."
    if made.short:
        yield (
            "no number of cores passes the rate: outside the tasks a batch takes longer than its records take to "
            "arrive. Change what the batch waits for (see the bottleneck), or send it larger batches."
        )
    if facts.log is not None and facts.log.python:
        yield "Python workers compute: Spark's task metrics lack their CPU time and memory. Allow for memoryOverhead."


def _about_batches(made: Table) -> Iterator[str]:
    if isinstance(made.regimes, CannotTell):
        yield f"the batches don't tell a batch size: {made.regimes.reason}. To find out: {made.regimes.remedy}."
    elif made.regimes is not None and made.regimes.bend_rows > made.regimes.largest_rows:
        yield (
            f"no batch was larger than {made.regimes.largest_rows:.0f} rows, and none shows sharp growth: larger "
            "batches may bring more."
        )
    fetch = _fetch(made)
    records = made.amount("batchRecords")
    if fetch is not None and records is not None and fetch < records:
        yield (
            f"one fetch from each partition gives {fetch} records at most, fewer than the {records:.0f} of a batch: "
            "raise kafka.max.partition.fetch.bytes."
        )


def _fetch(made: Table) -> int | None:
    """The most records that one fetch from every partition gives."""
    partitions, limit, size = (made.amount(each) for each in ("partitions", "maxFetchBytes", "recordBytes"))
    if partitions is None or limit is None or size is None:
        return None
    whole = max(round(size), 1)
    found = kafka_batch(
        partitions=int(partitions),
        max_fetch_bytes=int(limit),
        smallest_record_bytes=whole,
        largest_record_bytes=whole,
    )
    return found.most_records


def _about_declared(facts: Facts, made: Table) -> Iterator[str]:
    """A declared value that the measured interval excludes."""
    for name, found in measured_inputs(facts).items():
        if name not in made.variables:  # an amount of 0 counts as not given
            continue
        used = made.variables[name].value
        low, high = found.ends
        if used.source.startswith("spec.") and not low <= used.amount <= high and low < high:
            yield (
                f"{name}: declared {used.amount:.4g} {used.unit}, but measured {found.amount:.4g} ({low:.4g} to "
                f"{high:.4g}): the declared value is used. Correct {used.source}, or remove it."
            )
    declared = stages(facts.declared, parallelism=made.whole("parallelism"))
    rate = made.amount("rate")
    if declared and rate is not None:
        limit = bounds(declared)
        if limit.records_per_second < rate:
            yield (
                f"stage {limit.slowest} passes {limit.records_per_second:.4g} records/s of the source with its "
                f"declared parallelism and limits; {rate:.4g} arrive."
            )
