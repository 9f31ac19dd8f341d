"""A backtest as Spark jobs: what is run in, which runs are missing, and how they share the cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from ballast.errors import InvalidField
from ballast.simulation.replay import ScenarioTrial
from ballast.simulation.scenario import Scenario
from ballast.spark.backtest.cases import Run, Window, digest, told
from ballast.spark.backtest.store import ROWS, Store

Progress = Callable[[int], None]
"""Is told of how many runs have ended and are kept now."""

_IN_FLIGHT = 3
"""Spark jobs at a time. A job's rows are kept when its last task ends; while that runs, the tasks of the next jobs keep
the other cores busy, so jobs can be small, and little is lost when the program is killed."""

_RUNS_A_JOB = 48
"""Where there are many. A job takes as much CPU to plan and to commit as a short run."""

_TAG = "ballast-backtest"

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

    def task(self, runs: Sequence[Run]) -> Callable[[Batches], Batches]:
        """What does these runs: from rows whose column `id` has their places to their rows of `cases.SCHEMA`.

        Places that follow each other mostly share their window.
        """
        ...


@dataclass(frozen=True, slots=True)
class Job:
    spark: SparkSession
    source: Source
    store: Store
    size: int | None = None
    """Runs in one Spark job; if absent some dozens where there are many runs, and as many as Spark runs at a time."""

    def missing(self, runs: Sequence[Run]) -> list[Run]:
        """Those that have not been kept yet, each key once, in their order."""
        known = self.store.known()
        return list({run.key: run for run in runs if run.key not in known}.values())

    def run(self, missing: Sequence[Run], progress: Progress) -> None:
        """Raises PySparkException when a run fails; what has been kept stays."""
        if not missing:
            return
        cores = parallelism(self.spark)
        size = self.size or max(cores, min(_RUNS_A_JOB, len(missing) // (4 * _IN_FLIGHT)))
        batches = [missing[first : first + size] for first in range(0, len(missing), size)]
        lock = Lock()

        def one(batch: Sequence[Run]) -> None:
            self.spark.addTag(_TAG)
            self.store.keep(self._rows(batch, tasks=2 * cores))
            with lock:
                progress(len(batch))

        with ThreadPoolExecutor(_IN_FLIGHT) as threads:
            futures = [threads.submit(one, batch) for batch in batches]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:  # Ctrl-C, too, must end Spark's jobs: they would hold the threads until they are done
                threads.shutdown(wait=False, cancel_futures=True)
                self.spark.interruptTag(_TAG)
                raise

    def _rows(self, batch: Sequence[Run], *, tasks: int) -> DataFrame:
        """A row for each run. Neighbors share a task, and with it what is read of their window.

        `range` lays them out so without a shuffle, in a number of partitions that adaptive execution leaves alone.
        """
        places = self.spark.range(0, len(batch), 1, min(tasks, len(batch)))
        return places.mapInArrow(self.source.task(batch), ROWS)


def parallelism(spark: SparkSession) -> int:
    """Tasks that Spark runs at a time: it cuts a range into as many."""
    return spark.range(1 << 20).select(sql.spark_partition_id()).distinct().count()


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

    def task(self, runs: Sequence[Run]) -> Callable[[Batches], Batches]:
        needed = {run.case.window for run in runs}
        documents = {name: document for name, document in self._documents.items() if name in needed}
        return _task(list(runs), documents)


def _task(runs: list[Run], documents: Mapping[str, Any]) -> Callable[[Batches], Batches]:
    def task(batches: Batches) -> Batches:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                trial = ScenarioTrial(Scenario.parse(documents[runs[index].case.window]))
                yield told(runs[index], trial)

    return task
