"""What Spark's event log tells of an application: its executors, settings, stages and tasks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ballast.errors import InvalidField
from ballast.sizing.amount import amount

_PYTHON = re.compile(
    r"BatchEvalPython|ArrowEvalPython|MapInPandas|MapInArrow|PythonUDF|PythonRDD|FlatMapGroupsInPandas"
)
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
class EventLog:
    application: str
    start_seconds: float
    end_seconds: float
    settings: Mapping[str, str]
    java: int | None
    cores: Mapping[str, int]
    """By executor, of all that registered."""
    stages: tuple[StageRun, ...]
    """Those with at least one successful task, by number."""
    python: bool
    """Whether Python workers compute: their CPU time is not in the tasks' CPU time."""
    failed_tasks: int = 0

    @property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(task for stage in self.stages for task in stage.tasks)

    @property
    def total_cores(self) -> int:
        return sum(self.cores.values())

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
    cores: dict[str, int] = field(default_factory=dict)
    stages: dict[int, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    tasks: dict[int, list[Task]] = field(default_factory=dict)
    python: bool = False
    failed: int = 0

    def event(self, event: Mapping[str, Any]) -> None:
        match event.get("Event"):
            case "SparkListenerApplicationStart":
                self.application = str(event.get("App Name", ""))
                self.start = amount(event["Timestamp"]) / 1000.0
            case "SparkListenerApplicationEnd":
                self.end = amount(event["Timestamp"]) / 1000.0
            case "SparkListenerEnvironmentUpdate":
                self._environment(event)
            case "SparkListenerExecutorAdded":
                self.cores[str(event["Executor ID"])] = max(0, int(amount(event["Executor Info"]["Total Cores"])))
            case "SparkListenerStageCompleted":
                self._stage(event["Stage Info"])
            case "SparkListenerTaskEnd":
                self._task(event)
            case "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart":
                self.python = self.python or bool(_PYTHON.search(str(event.get("physicalPlanDescription", ""))))

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
            continue  # an application that still runs: its last line is cut off
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
    first = min(stage.start_seconds for stage in stages)
    return EventLog(
        application=reader.application,
        start_seconds=first if reader.start is None else reader.start,
        end_seconds=reader.last if reader.end is None else reader.end,
        settings=reader.settings,
        java=reader.java,
        cores=_workers(reader.cores),
        stages=stages,
        python=reader.python,
        failed_tasks=reader.failed,
    )


_REMEDY = "name a log that Spark wrote with spark.eventLog.enabled=true, or its folder"


def _workers(cores: Mapping[str, int]) -> dict[str, int]:
    """Without the driver, unless it is the only one: local mode."""
    executors = {name: count for name, count in cores.items() if name != "driver"}
    return executors or dict(cores)


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
