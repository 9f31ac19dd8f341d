"""What Spark's event log tells of an application: its executors, settings, stages and tasks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from ballast.errors import InvalidField
from ballast.sizing.amount import amount

_PYTHON = re.compile(
    r"(?:Batch|Arrow)EvalPython|MapIn(?:Pandas|Arrow)|PythonMapInArrow|Python(?:UDF|UDAF|UDTF|RDD)"
    r"|FlatMap(?:Co)?GroupsIn(?:Pandas|Arrow)|AggregateInPandas|ArrowAggregatePython|WindowInPandas|ArrowWindowPython"
    r"|TransformWithStateIn(?:Pandas|PySpark)"
)
"""Operators in which Python workers compute: those of org.apache.spark.sql.execution.python from Spark 3.3 to 4.3."""
_COUNT = re.compile(r"\d{1,6}", re.ASCII)
_JAVA = re.compile(r"^(?:1\.)?(\d{1,4})(?!\d)")


@dataclass(frozen=True, slots=True)
class Task:
    """One successful task."""

    stage: int
    executor: str
    start_seconds: float
    seconds: float
    run_seconds: float
    cpu_seconds: float
    gc_seconds: float
    input_records: float
    input_bytes: float
    shuffle_read_bytes: float
    shuffle_write_bytes: float
    fetch_wait_seconds: float
    spilled_bytes: float

    @property
    def end_seconds(self) -> float:
        return self.start_seconds + self.seconds


@dataclass(frozen=True, slots=True)
class StageRun:
    number: int
    name: str
    parents: tuple[int, ...]
    tasks: tuple[Task, ...]

    @property
    def start_seconds(self) -> float:
        return min(task.start_seconds for task in self.tasks)

    @property
    def end_seconds(self) -> float:
        return max(task.end_seconds for task in self.tasks)


@dataclass(frozen=True, slots=True)
class ExecutorSpan:
    """An executor for as long as it took tasks: until its removal, or until it was excluded for a time."""

    name: str
    cores: int
    added_seconds: float
    removed_seconds: float | None = None
    """None if it was there until the end."""
    profile: int = 0
    """Its resource profile; 0 is the default one, which spark.executor.* describes."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What executors of one kind ask for (stage-level scheduling); None where spark.* settings tell."""

    cores: int | None = None
    memory_mib: int | None = None
    task_cpus: int | None = None


@dataclass(frozen=True, slots=True)
class EventLog:
    application: str
    start_seconds: float
    end_seconds: float
    settings: Mapping[str, str]
    java: int | None
    executors: tuple[ExecutorSpan, ...]
    """All that registered, each for as long as it took tasks."""
    stages: tuple[StageRun, ...]
    """Those with at least one successful task, by number."""
    python: bool
    """Whether Python workers compute: their CPU time is not in the tasks' CPU time."""
    failed_tasks: int = 0
    events: int = 0
    passed_over: int = 0
    """Lines that are no whole event, as the last one of an application that still runs."""
    profiles: Mapping[int, Profile] = field(default_factory=dict)
    """Kinds of executors that registered: with several, a task runs on executors of its kind only."""
    registered: int = 0
    excluded: int = 0
    """Executors that took no tasks for a time, because too many had failed there."""
    decommissioned: int = 0

    @property
    def task_cpus(self) -> int:
        """Cores that each task keeps."""
        text = self.settings.get("spark.task.cpus", "1").strip()
        return max(int(text), 1) if _COUNT.fullmatch(text) else 1

    @property
    def resource_profiles(self) -> int:
        return max(len(self.profiles), 1)

    def of_profile(self, number: int) -> EventLog:
        """With the executors of one profile alone."""
        own = tuple(each for each in self.executors if each.profile == number)
        return replace(self, executors=own, profiles={number: self.profiles[number]})

    @property
    def slots(self) -> int:
        """The most tasks that ran, or could run, at once."""
        cpus = {number: profile.task_cpus or self.task_cpus for number, profile in self.profiles.items()}
        steps = self._steps(lambda each: each.cores // cpus.get(each.profile, self.task_cpus))
        return max((slots for *_, slots in steps), default=0)

    @property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(task for stage in self.stages for task in stage.tasks)

    @property
    def peak(self) -> tuple[int, int]:
        """Executors and their cores when most cores were there at once."""
        return max(((count, cores) for _, count, cores in self._steps()), key=lambda each: each[1], default=(0, 0))

    @property
    def mean_cores(self) -> float:
        """Over the time in which at least one executor was there."""
        steps = self._steps()
        spans = [(later[0] - earlier[0], earlier[2]) for earlier, later in pairwise(steps) if earlier[1]]
        seconds = math.fsum(length for length, _ in spans)
        return math.fsum(length * cores for length, cores in spans) / seconds if seconds > 0.0 else float(self.peak[1])

    def _steps(
        self, amount_of: Callable[[ExecutorSpan], int] = lambda each: each.cores
    ) -> list[tuple[float, int, int]]:
        """Times at which executors came or went, with how many and how many cores are there from then on."""
        changes: dict[float, tuple[int, int]] = {}
        for each in self.executors:
            ended = self.end_seconds if each.removed_seconds is None else each.removed_seconds
            for at, sign in ((each.added_seconds, 1), (max(ended, each.added_seconds), -1)):
                count, cores = changes.get(at, (0, 0))
                changes[at] = (count + sign, cores + sign * amount_of(each))
        steps, count, cores = [], 0, 0
        for at, (more, more_cores) in sorted(changes.items()):
            count, cores = count + more, cores + more_cores
            steps.append((at, count, cores))
        return steps

    @property
    def seconds(self) -> float:
        return self.end_seconds - self.start_seconds

    @property
    def busy_seconds(self) -> float:
        """Time in which at least one task ran."""
        total, reached = 0.0, -math.inf
        for start, end in sorted((task.start_seconds, task.end_seconds) for task in self.tasks):
            total += max(end - max(start, reached), 0.0)
            reached = max(reached, end)
        return total


@dataclass(slots=True)
class _Reader:
    application: str = ""
    start: float | None = None
    end: float | None = None
    last: float = 0.0
    settings: dict[str, str] = field(default_factory=dict)
    java: int | None = None
    executors: dict[str, ExecutorSpan] = field(default_factory=dict)
    earlier: list[ExecutorSpan] = field(default_factory=list)
    """Of executors whose names were given again."""
    events: int = 0
    passed_over: int = 0
    stages: dict[int, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    tasks: dict[int, list[Task]] = field(default_factory=dict)
    python: bool = False
    failed: int = 0
    asked: dict[int, Profile] = field(default_factory=dict)
    """By profile, also those of which no executor registered."""
    hosts: dict[str, str] = field(default_factory=dict)
    out: dict[str, set[str]] = field(default_factory=dict)
    """Why executors take no tasks: their own failures, or those of their host."""
    excluded: set[str] = field(default_factory=set)
    decommissioned: int = 0
    registered: int = 0

    def event(self, event: Mapping[str, Any]) -> None:
        # Spark writes the events that its protocol doesn't name with the whole name of their class.
        kind = str(event.get("Event")).removeprefix("org.apache.spark.scheduler.")
        match kind:
            case "SparkListenerApplicationStart":
                self.application = str(event.get("App Name", ""))
                self.start = amount(event["Timestamp"]) / 1000.0
            case "SparkListenerApplicationEnd":
                self.end = amount(event["Timestamp"]) / 1000.0
            case "SparkListenerEnvironmentUpdate":
                self._environment(event)
            case "SparkListenerResourceProfileAdded":
                self._profile(event)
            case "SparkListenerStageCompleted":
                self._stage(event["Stage Info"])
            case "SparkListenerTaskEnd":
                self._task(event)
            case "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart":
                self.python = self.python or bool(_PYTHON.search(str(event.get("physicalPlanDescription", ""))))
            case _:
                self._of_executors(kind, event)

    def _of_executors(self, kind: str, event: Mapping[str, Any]) -> None:
        match kind:
            case "SparkListenerExecutorAdded":
                self._added(event)
            case "SparkListenerExecutorRemoved":
                self._removed(event)
            case "SparkListenerExecutorExcluded" | "SparkListenerExecutorBlacklisted":
                self._excluded([str(event["executorId"])], event, "executor")
            case "SparkListenerExecutorUnexcluded" | "SparkListenerExecutorUnblacklisted":
                self._included([str(event["executorId"])], event, "executor")
            case "SparkListenerNodeExcluded" | "SparkListenerNodeBlacklisted":
                self._excluded(self._on(event["hostId"]), event, "host")
            case "SparkListenerNodeUnexcluded" | "SparkListenerNodeUnblacklisted":
                self._included(self._on(event["hostId"]), event, "host")

    def _added(self, event: Mapping[str, Any]) -> None:
        info = event["Executor Info"]
        name, cores = str(event["Executor ID"]), max(0, int(amount(info["Total Cores"])))
        # A trimmed log may lack the time: then the executor counts from the application's start.
        at = amount(event["Timestamp"]) / 1000.0 if "Timestamp" in event else self.start or 0.0
        self._ended(name, at)
        self.registered += 1
        self.hosts[name] = str(info.get("Host", ""))
        self.out[name] = set()
        self.executors[name] = ExecutorSpan(name, cores, at, profile=int(amount(info.get("Resource Profile Id") or 0)))

    def _removed(self, event: Mapping[str, Any]) -> None:
        name, at = str(event["Executor ID"]), amount(event["Timestamp"]) / 1000.0
        if name in self.executors:
            self.decommissioned += "decommission" in str(event.get("Removed Reason", "")).lower()
            if self.executors[name].removed_seconds is None:
                self.executors[name] = replace(self.executors[name], removed_seconds=at)
            self.hosts.pop(name, None)

    def _ended(self, name: str, at: float) -> None:
        """Keep the span of an executor whose name is given again, or that takes tasks again."""
        if (before := self.executors.get(name)) is not None:
            self.earlier.append(before if before.removed_seconds is not None else replace(before, removed_seconds=at))

    def _on(self, host: Any) -> list[str]:
        return [name for name, own in self.hosts.items() if own == str(host)]

    def _excluded(self, names: Iterable[str], event: Mapping[str, Any], why: str) -> None:
        at = amount(event["time"]) / 1000.0
        for name in names:
            if name in self.hosts:
                self.excluded.add(name)
                self.out[name].add(why)
                if self.executors[name].removed_seconds is None:
                    self.executors[name] = replace(self.executors[name], removed_seconds=at)

    def _included(self, names: Iterable[str], event: Mapping[str, Any], why: str) -> None:
        at = amount(event["time"]) / 1000.0
        for name in names:
            if name in self.hosts and why in self.out[name]:
                self.out[name].discard(why)
                if not self.out[name]:
                    self._ended(name, at)
                    self.executors[name] = replace(self.executors[name], added_seconds=at, removed_seconds=None)

    def _profile(self, event: Mapping[str, Any]) -> None:
        asked, of_tasks = event.get("Executor Resource Requests") or {}, event.get("Task Resource Requests") or {}
        self.asked[int(amount(event["Resource Profile Id"]))] = Profile(
            _asked(asked, "cores"), _asked(asked, "memory"), _asked(of_tasks, "cpus")
        )

    def _environment(self, event: Mapping[str, Any]) -> None:
        self.settings = {str(name): str(value) for name, value in (event.get("Spark Properties") or {}).items()}
        found = _JAVA.match(str((event.get("JVM Information") or {}).get("Java Version", "")))
        self.java = int(found[1]) if found else None

    def _stage(self, info: Mapping[str, Any]) -> None:
        parents = tuple(int(parent) for parent in info.get("Parent IDs") or ())
        self.stages[int(info["Stage ID"])] = (str(info.get("Stage Name", "")), parents)
        scopes = " ".join(str(rdd.get("Name", "")) for rdd in info.get("RDD Info") or ())
        self.python = self.python or bool(_PYTHON.search(scopes))

    def _task(self, event: Mapping[str, Any]) -> None:
        if (event.get("Task End Reason") or {}).get("Reason") != "Success":
            self.failed += 1
            return
        info, metrics = event["Task Info"], event.get("Task Metrics") or {}
        task = _task(int(event["Stage ID"]), info, metrics)
        self.last = max(self.last, task.end_seconds)
        self.tasks.setdefault(task.stage, []).append(task)


def read(lines: Iterable[str], name: str) -> EventLog:
    """Of the log `name`, which may end in the middle of a line. Raises InvalidField for what is no event log."""
    reader = _Reader()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            if number == 1:
                raise InvalidField("--event-log", name, f"line 1 is no JSON: {_REMEDY}") from None
            reader.passed_over += 1  # an application that still runs: its last line is cut off
            continue
        reader.events += 1
        try:
            reader.event(event)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            lacks = f"without {error}" if isinstance(error, KeyError) else "with a field of the wrong type"
            words = f"{event.get('Event')} {lacks}" if isinstance(event, dict) else "no event"
            raise InvalidField("--event-log", f"{name}:{number}", f"{words}: {_REMEDY}") from None
    if not reader.tasks:
        raise InvalidField("--event-log", name, f"no task that succeeded: {_REMEDY}")
    stages = tuple(
        StageRun(number, *reader.stages.get(number, ("", ())), tuple(tasks))
        for number, tasks in sorted(reader.tasks.items())
    )
    first, end = min(stage.start_seconds for stage in stages), reader.last if reader.end is None else reader.end
    return EventLog(
        application=reader.application,
        start_seconds=first if reader.start is None else reader.start,
        end_seconds=end,
        settings=reader.settings,
        java=reader.java,
        executors=(workers := _workers(_while_working([*reader.earlier, *reader.executors.values()], stages, end))),
        stages=stages,
        python=reader.python,
        failed_tasks=reader.failed,
        events=reader.events,
        passed_over=reader.passed_over,
        profiles={number: reader.asked.get(number, Profile()) for number in sorted({each.profile for each in workers})},
        registered=reader.registered,
        excluded=len(reader.excluded),
        decommissioned=reader.decommissioned,
    )


_REMEDY = "name a log that Spark wrote with spark.eventLog.enabled=true, or its folder"


def _asked(requests: Mapping[str, Any], name: str) -> int | None:
    found = requests.get(name)
    return max(int(amount(found["Amount"])), 1) if found else None


def _while_working(
    executors: Collection[ExecutorSpan], stages: Iterable[StageRun], end_seconds: float
) -> list[ExecutorSpan]:
    """An executor that registered after the log's end, as in a log that was edited, is there since its first task."""
    began: dict[str, float] = {}
    for task in (task for stage in stages for task in stage.tasks):
        began[task.executor] = min(task.start_seconds, began.get(task.executor, math.inf))
    return [
        replace(each, added_seconds=began[each.name])
        if each.added_seconds >= end_seconds and each.name in began
        else each
        for each in executors
    ]


def _workers(executors: Collection[ExecutorSpan]) -> tuple[ExecutorSpan, ...]:
    """Without the driver, unless it is the only one: local mode."""
    return tuple(each for each in executors if each.name != "driver") or tuple(executors)


def _task(stage: int, info: Mapping[str, Any], metrics: Mapping[str, Any]) -> Task:
    read, written = metrics.get("Shuffle Read Metrics") or {}, metrics.get("Shuffle Write Metrics") or {}
    taken = metrics.get("Input Metrics") or {}
    start, end = amount(info["Launch Time"]), amount(info["Finish Time"])
    return Task(
        stage=stage,
        executor=str(info.get("Executor ID", "")),
        start_seconds=start / 1000.0,
        seconds=max(end - start, 0.0) / 1000.0,
        run_seconds=amount(metrics.get("Executor Run Time", end - start)) / 1000.0,
        cpu_seconds=amount(metrics.get("Executor CPU Time", 0)) / 1e9,
        gc_seconds=amount(metrics.get("JVM GC Time", 0)) / 1000.0,
        input_records=amount(taken.get("Records Read", 0)),
        input_bytes=amount(taken.get("Bytes Read", 0)),
        shuffle_read_bytes=amount(read.get("Remote Bytes Read", 0)) + amount(read.get("Local Bytes Read", 0)),
        shuffle_write_bytes=amount(written.get("Shuffle Bytes Written", 0)),
        fetch_wait_seconds=amount(read.get("Fetch Wait Time", 0)) / 1000.0,
        spilled_bytes=amount(metrics.get("Disk Bytes Spilled", 0)),
    )
