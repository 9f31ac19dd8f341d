"""What is known of a pipeline before anything is decided: declared, measured, and assumed for the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ballast.api.duration import Duration
from ballast.api.quantity import Quantity
from ballast.api.topology_sizing import Goal, Machine, Sizing, Source
from ballast.errors import InvalidField
from ballast.sizing.amount import LARGEST
from ballast.sizing.event_log import EventLog
from ballast.sizing.executor_metrics import WINDOW_SECONDS, ExecutorMetrics
from ballast.sizing.gc_log import GcLog
from ballast.sizing.littles_law import Stage
from ballast.sizing.progress import Progress
from ballast.sizing.provenance import Value, assumed, declared, measured, measured_ratio

UNITS: Mapping[str, str] = {
    "rate": "records/s",
    "recordBytes": "B",
    "recordSeconds": "s",
    "batchSeconds": "s",
    "batchRecords": "records",
    "pendingRatio": "",
    "outputRatio": "",
    "machines": "machines",
    "coresPerMachine": "cores",
    "memoryPerMachine": "B",
    "brokers": "brokers",
    "partitions": "partitions",
    "maxFetchBytes": "B",
    "executors": "executors",
    "executorCores": "cores",
    "executorMemory": "B",
    "allocationRate": "B/s",
    "steadyOldBytes": "B",
    "occupiedBytes": "B",
    "executorOverhead": "B",
    "overheadFactor": "",
    "java": "",
}
"""The inputs by name, as the table of variables and `--set` call them."""
_MEMORY = re.compile(r"^(\d+)([bkmgt]?)b?$", re.IGNORECASE)
_MEMORY_UNITS = {"b": 1, "k": 1024, "": 1024**2, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_TIME = re.compile(r"^(\d+)\s*(us|ms|s|m|min|h|d|)$", re.IGNORECASE)
_TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_WHAT_IF = re.compile(r"^(?P<factor>\d+(?:\.\d+)?)x$")


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a recommendation depends on."""

    declared: Sizing = field(default_factory=Sizing)
    progress: Progress | None = None
    log: EventLog | None = None
    gc: GcLog | None = None
    metrics: ExecutorMetrics | None = None
    what_if: Mapping[str, str] = field(default_factory=dict)
    """Input name → `2x`, or another value."""

    @property
    def goal(self) -> Goal:
        return self.declared.goal

    @property
    def nothing_known(self) -> bool:
        return not self.declared.model_fields_set - {"goal"} and not any(
            (self.progress, self.log, self.gc, self.metrics)
        )


def what_was_read(facts: Facts) -> Iterator[str]:
    """One sentence for each measured input, with what was passed over in it."""
    if facts.progress is not None:
        yield f"progress: {len(facts.progress.batches)} batches"
    if (log := facts.log) is not None:
        cut = f", {log.passed_over} lines passed over that are no whole event" if log.passed_over else ""
        most = f"executors: {log.registered}, at most {log.peak[0]} at once with {log.peak[1]} cores"
        out = f", {log.excluded} excluded for a time" if log.excluded else ""
        left = f", {log.decommissioned} decommissioned" if log.decommissioned else ""
        yield f"event log: {log.events} events{cut}, {len(log.tasks)} tasks; {most}{out}{left}{_profiles(log)}"
    if (gc := facts.gc) is not None:
        told = gc.collector or "an unknown collector"
        java = "" if gc.java is None else f" (Java {gc.java})"
        yield f"GC log: {gc.lines} lines of {told}{java}, {gc.passed_over} not understood"
    if facts.metrics is not None:
        yield f"Prometheus: {WINDOW_SECONDS} s of {facts.metrics.application}"


def _profiles(log: EventLog) -> str:
    if log.resource_profiles == 1:
        return ""
    told = []
    for number in log.profiles:
        executors, cores = log.of_profile(number).peak
        told.append(f"profile {number}: at most {executors} at once with {cores} cores")
    return f"; {log.resource_profiles} resource profiles ({', '.join(told)})"


def inputs(facts: Facts) -> dict[str, Value]:
    """The known inputs, all above 0. A declared value wins over a measured one, and both over an assumption.

    An amount of 0 counts as not given: nothing can be sized for it.

    Raises InvalidField for a what-if that names no input, or an input that is not known.
    """
    found = (*_assumed(), *_measured(facts), *_declared(facts.declared))
    return _changed({name: value for name, value in found if value.amount > 0.0}, facts.what_if)


def measured_inputs(facts: Facts) -> dict[str, Value]:
    """Those that were measured, whatever is declared."""
    return dict(_measured(facts))


def stages(sizing: Sizing, *, parallelism: int) -> tuple[Stage, ...]:
    """The declared steps whose latency is declared; `parallelism` where theirs is not."""
    return tuple(
        Stage(
            name=stage.component,
            latency_seconds=stage.latency.seconds,
            parallelism=stage.parallelism or parallelism,
            output_ratio=stage.output_percent / 100,
            remote_rate_limit=float(stage.remote_rate_limit or "inf"),
        )
        for stage in sizing.stages
        if stage.latency is not None
    )


def _assumed() -> Iterator[tuple[str, Value]]:
    yield "recordBytes", assumed(1000, "B", "no record size is known", low=100, high=10_000)
    yield "batchSeconds", assumed(2, "s", "long enough for efficient batches", low=0.8, high=10)
    yield "coresPerMachine", assumed(4, "cores", "no machine is known")
    yield "pendingRatio", assumed(2, "", "comfortably above 1")
    yield "java", assumed(17, "", "the oldest that Spark 4 runs on")


def _declared(sizing: Sizing) -> Iterator[tuple[str, Value]]:
    """Every field that is set, named by its path."""
    if sizing.records_per_second is not None:
        yield "rate", _of_spec(sizing.records_per_second, "rate", "recordsPerSecond")
    if sizing.record_bytes is not None:
        yield "recordBytes", _of_spec(sizing.record_bytes, "recordBytes", "recordBytes")
    if sizing.batch_time is not None:
        yield "batchSeconds", declared(sizing.batch_time.seconds, "s", "spec.sizing.batchTime")
    if sizing.batch_records is not None:
        yield "batchRecords", _of_spec(sizing.batch_records, "batchRecords", "batchRecords")
    if "pending_percent" in sizing.model_fields_set:
        yield "pendingRatio", declared(sizing.pending_percent / 100, "", "spec.sizing.pendingPercent")
    if sizing.source is not None:
        yield from _source(sizing.source)
    if sizing.machine is not None:
        yield from _machine(sizing.machine)
    yield from _stages(sizing)


def _source(source: Source) -> Iterator[tuple[str, Value]]:
    if source.brokers is not None:
        yield "brokers", declared(source.brokers, "brokers", "spec.sizing.source.brokers")
    if source.partitions is not None:
        yield "partitions", declared(source.partitions, "partitions", "spec.sizing.source.partitions")
    if source.max_fetch is not None:
        yield "maxFetchBytes", _of_spec(source.max_fetch, "maxFetchBytes", "source.maxFetch")


def _machine(machine: Machine) -> Iterator[tuple[str, Value]]:
    if machine.count is not None:
        yield "machines", declared(machine.count, "machines", "spec.sizing.machine.count")
    if machine.cores is not None:
        yield "coresPerMachine", declared(machine.cores, "cores", "spec.sizing.machine.cores")
    if machine.memory is not None:
        yield "memoryPerMachine", _of_spec(machine.memory, "memoryPerMachine", "machine.memory")


def _stages(sizing: Sizing) -> Iterator[tuple[str, Value]]:
    """Core seconds per record of the source: Σ latency × records of the stage per record of the source.

    At most LARGEST: fifty steps that send on a million records for each one would make any rate infinite.
    """
    seconds, share = 0.0, 1.0
    named = []
    for stage in sizing.stages:
        if stage.latency is not None:
            seconds += stage.latency.seconds * share
            named.append(f"spec.sizing.stages[{stage.component}].latency")
        share = min(share * stage.output_percent / 100, LARGEST)
    if named:
        yield "recordSeconds", declared(min(seconds, LARGEST), "s", " + ".join(named))
    if sizing.stages:
        yield "outputRatio", declared(share, "", "spec.sizing.stages[].outputPercent")


def _of_spec(quantity: Quantity, name: str, path: str) -> Value:
    return declared(float(quantity), UNITS[name], f"spec.sizing.{path}")


def _measured(facts: Facts) -> Iterator[tuple[str, Value]]:
    """Weaker sources first: the last one of a name wins."""
    if facts.metrics is not None:
        yield from _from_metrics(facts.metrics)
    if facts.progress is not None:
        yield from _from_progress(facts.progress)
    if facts.log is not None:
        yield from _from_log(facts.log, facts.progress)
    if facts.gc is not None:
        yield from _from_gc(facts.gc)


def _from_metrics(metrics: ExecutorMetrics) -> Iterator[tuple[str, Value]]:
    source = f"Prometheus, {WINDOW_SECONDS} s of {metrics.application}"
    yield "executors", measured(metrics.executors, "executors", source)
    yield "executorCores", measured(metrics.cores / metrics.executors, "cores", source)
    rate = metrics.records_per_second
    if rate is not None:
        low, high = metrics.records_per_second_low, metrics.records_per_second_high
        yield "rate", measured(rate, "records/s", source, low=low, high=high)
        if metrics.task_seconds_per_second:
            yield "recordSeconds", measured(metrics.task_seconds_per_second / rate, "s", source)
        if metrics.input_bytes_per_second is not None:
            yield "recordBytes", measured(metrics.input_bytes_per_second / rate, "B", source)


def _from_progress(progress: Progress) -> Iterator[tuple[str, Value]]:
    known = [(each.rows, each.rows / each.arriving_per_second) for each in progress.batches if each.arriving_per_second]
    if known:
        rows, seconds = zip(*known, strict=True)
        yield "rate", measured_ratio(rows, seconds, "records/s", f"inputRowsPerSecond of {len(known)} batches")


def _from_log(log: EventLog, progress: Progress | None) -> Iterator[tuple[str, Value]]:
    source = f"event log of {log.application or 'the application'}"
    # What spark.executor.* describes: executors of other profiles ask for what the code says.
    own = log.of_profile(0) if log.resource_profiles > 1 and 0 in log.profiles else log
    executors, cores = own.peak
    if executors and (log.resource_profiles == 1 or own is not log):
        told = source if executors == log.registered else f"{source}: at most at once, of {log.registered}"
        told += ", of the default resource profile" if own is not log else ""
        yield "executors", measured(executors, "executors", told)
        yield "executorCores", measured(cores / executors, "cores", told)
    memory = spark_memory(log.settings.get("spark.executor.memory", ""))
    if memory is not None:
        yield "executorMemory", declared(memory, "B", f"spark.executor.memory in the {source}")
    yield from _overhead(log.settings, memory, source)
    if log.java is not None:
        yield "java", measured(log.java, "", source)
    by_batch = _by_start(log, progress)
    reading = [group for group in by_batch if group[1] > 0.0]
    if reading:
        seconds, records = [each[0] for each in reading], [each[1] for each in reading]
        # A task keeps spark.task.cpus cores: what is counted are seconds of a core.
        cpus = "" if log.task_cpus == 1 else f" × {log.task_cpus} (spark.task.cpus)"
        told = f"{source}: run time{cpus} ÷ records of {len(reading)} steps"
        # Spark counts whole milliseconds: run times that add up to none tell nothing.
        if sum(seconds) > 0.0:
            yield "recordSeconds", measured_ratio([each * log.task_cpus for each in seconds], records, "s", told)
        sized = [each for each in reading if each[2] > 0.0]
        if sized:
            told = f"{source}: bytes ÷ records of {len(sized)} steps"
            yield "recordBytes", measured_ratio([each[2] for each in sized], [each[1] for each in sized], "B", told)


def _overhead(settings: Mapping[str, str], memory: float | None, source: str) -> Iterator[tuple[str, Value]]:
    """What users gave the container in addition to the heap: nothing less is proposed."""
    name = "spark.executor.memoryOverhead"
    size = spark_memory(settings.get(name, ""))
    if size is not None:
        yield "executorOverhead", declared(size, "B", f"{name} in the {source}")
        return
    # Spark prefers the first. In cluster mode it writes the second itself.
    for name in ("spark.executor.memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor"):
        factor = _ratio(settings.get(name, ""))
        if factor is None:
            continue
        yield "overheadFactor", declared(factor, "", f"{name} in the {source}")
        if memory is not None:
            yield "executorOverhead", declared(factor * memory, "B", f"{name} in the {source}")
        return


def _ratio(text: str) -> float | None:
    try:
        ratio = float(text)
    except ValueError:
        return None
    return ratio if 0.0 < ratio < LARGEST else None


def _by_start(log: EventLog, progress: Progress | None) -> list[tuple[float, float, float]]:
    """Run seconds, input records and input bytes of each chain of stages that begins by reading.

    Its own stage without input (after a shuffle) belongs to the reading stage before it.
    """
    groups: list[list[float]] = []
    for stage in sorted(log.stages, key=lambda each: (each.start_seconds, each.number)):
        records = sum(task.input_records for task in stage.tasks)
        if records > 0.0 or not groups:
            groups.append([0.0, 0.0, 0.0])
        groups[-1][0] += sum(task.run_seconds for task in stage.tasks)
        groups[-1][1] += records
        groups[-1][2] += sum(task.input_bytes for task in stage.tasks)
    # The first batch loads classes and compiles: it tells nothing of a steady pipeline.
    warm = groups[1:] if progress is not None and len(groups) > 2 else groups
    return [(seconds, records, size) for seconds, records, size in warm]


def _from_gc(gc: GcLog) -> Iterator[tuple[str, Value]]:
    source = f"GC log of {gc.seconds:.0f} s"
    if gc.java is not None:
        yield "java", measured(gc.java, "", source)
    if gc.allocation_bytes_per_second is not None:
        yield "allocationRate", measured(gc.allocation_bytes_per_second, "B/s", source)
    if gc.steady_old_bytes is not None:
        yield "steadyOldBytes", measured(gc.steady_old_bytes, "B", source)
    if gc.occupied_bytes is not None:
        yield "occupiedBytes", measured(gc.occupied_bytes, "B", source)
    if gc.heap_bytes is not None and gc.steady_old_bytes is not None:
        yield "executorMemory", measured(gc.heap_bytes, "B", source)


def spark_memory(text: str) -> float | None:
    """Spark's way to write bytes: `4g`, `512m`; a bare number is MiB. None if it is none."""
    found = _MEMORY.match(text.strip())
    size = float(found[1]) * _MEMORY_UNITS[found[2].lower()] if found else LARGEST
    return size if size < LARGEST else None


def spark_seconds(text: str) -> float | None:
    """Spark's way to write a time: `120s`, `2min`; a bare number is seconds. None if it is none."""
    found = _TIME.match(text.strip())
    seconds = float(found[1]) * _TIME_UNITS[found[2].lower()] if found else LARGEST
    return seconds if seconds < LARGEST else None


def _changed(known: dict[str, Value], what_if: Mapping[str, str]) -> dict[str, Value]:
    changed = dict(known)
    for name, text in what_if.items():
        if name not in UNITS:
            raise InvalidField("--set", f"{name}={text}", f"set one of {', '.join(UNITS)}")
        source = f"--set {name}={text}"
        if factor := _WHAT_IF.match(text):
            if name not in known:
                raise InvalidField("--set", f"{name}={text}", f"{name} is not known: set a value instead of a factor")
            changed[name] = known[name].times(float(factor["factor"]), f"{source} of: {known[name].source}")
        else:
            changed[name] = declared(_amount(name, text), UNITS[name], source)
    return changed


def _amount(name: str, text: str) -> float:
    """A duration for seconds, a quantity for the rest. Raises InvalidField."""
    try:
        if UNITS[name] == "s" and text[-1:].isalpha():
            amount = Duration.parse(text).seconds
        else:
            amount = float(Quantity.parse(text))
    except InvalidField as error:
        raise InvalidField("--set", f"{name}={text}", f"{error.remedy}, or a factor such as 2x") from None
    if amount <= 0.0:
        raise InvalidField("--set", f"{name}={text}", "set a value above 0")
    return amount
