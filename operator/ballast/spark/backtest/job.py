"""A backtest as Spark jobs: what is run in, which runs are missing, and each result kept as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ballast.errors import InvalidField
from ballast.simulation.replay import ScenarioTrial
from ballast.simulation.scenario import Scenario
from ballast.spark.backtest.cases import Run, Window, digest
from ballast.spark.backtest.row import TOLD, told
from ballast.spark.backtest.store import Store

Progress = Callable[[], None]
"""Is told of each run that has ended and is kept."""

_IN_FLIGHT = 3
"""Spark jobs at a time. Results reach the driver job by job, and while one job's last task runs, the tasks of the next
keep the other cores busy; so jobs can be small, and little is lost when the program is killed."""

_JOBS = 100
"""More would not be visible, and planning one takes as much CPU as a short run."""

_GROUP = "ballast backtest"

Batches = Iterator[pa.RecordBatch]


class Source(Protocol):
    """What a job runs in: scenarios, or recorded history."""

    @property
    def windows(self) -> Sequence[Window]:
        """What there is, in the order of tables."""
        ...

    @property
    def left_out(self) -> Mapping[str, str]:
        """Windows that would be among them, were it known what happened in them; and why they are not."""
        ...

    def told(self, spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
        """What the runs came to: rows of `task.TOLD`, made by `task.told`, each run in its own task.

        Runs that stand next to each other mostly share their window. Called from several threads at once.
        """
        ...


@dataclass(frozen=True, slots=True)
class Job:
    spark: SparkSession
    source: Source
    store: Store
    size: int | None = None
    """Runs in one Spark job; if absent as many as Spark runs at a time, and more where there are many runs."""

    def missing(self, runs: Sequence[Run]) -> list[Run]:
        """Those that have not been kept yet, each key once, in their order."""
        known = self.store.known()
        return list({run.key: run for run in runs if run.key not in known}.values())

    def run(self, missing: Sequence[Run], progress: Progress) -> None:
        """Raises PySparkException when a run fails; what has been kept stays."""
        context: Any = self.spark.sparkContext
        size = self.size or max(1, context.defaultParallelism, len(missing) // _JOBS)
        jobs = [missing[first : first + size] for first in range(0, len(missing), size)]
        lock = Lock()

        def one(batch: Sequence[Run]) -> None:
            context.setJobGroup(_GROUP, f"{len(batch)} runs from {batch[0].case} on")
            for row in self.source.told(self.spark, batch).toArrow().to_pylist():
                self.store.keep(row["key"], pa.ipc.open_stream(row["told"]).read_all())
                with lock:
                    progress()

        with ThreadPoolExecutor(_IN_FLIGHT) as threads:
            futures = [threads.submit(one, batch) for batch in jobs]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:  # Ctrl-C, too, must end Spark's jobs: they would hold the threads until they are done
                self._stop(threads)
                raise

    def _stop(self, threads: ThreadPoolExecutor) -> None:
        threads.shutdown(wait=False, cancel_futures=True)
        context: Any = self.spark.sparkContext
        context.cancelJobGroup(_GROUP)


class Scenarios:
    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        """Raises InvalidField for two of one name."""
        self._documents = {each.name: each.to_dict() for each in scenarios}
        if len(self._documents) < len(scenarios):
            names = [each.name for each in scenarios]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidField("--scenario", twice, "two scenarios have this name: rename one")
        self.left_out: Mapping[str, str] = {}
        self.windows = tuple(
            Window(each.name, digest("Scenario", self._documents[each.name]["spec"]), each.spec.seed)
            for each in scenarios
        )

    def told(self, spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
        needed = {run.case.window for run in runs}
        documents = {name: document for name, document in self._documents.items() if name in needed}
        tasks = spark.range(0, len(runs), 1, len(runs))
        return tasks.mapInArrow(_task(list(runs), documents), TOLD)


def _task(runs: list[Run], documents: Mapping[str, Any]) -> Callable[[Batches], Batches]:
    def task(batches: Batches) -> Batches:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                trial = ScenarioTrial(Scenario.parse(documents[runs[index].case.window]))
                yield told(runs[index], trial)

    return task
