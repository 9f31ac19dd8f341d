"""A backtest as Spark jobs: what is run in, which runs are missing, and each result kept as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from ballast.errors import InvalidField
from ballast.simulation.ranking import Ranking
from ballast.simulation.replay import ScenarioTrial
from ballast.simulation.run_metrics import RunMetrics
from ballast.simulation.scenario import Scenario
from ballast.simulation.study import Study, left_out_told
from ballast.spark.backtest.cases import (
    TOLD,
    Run,
    Window,
    checked,
    digest,
    documents,
    labeled,
    reasons_left_out,
    results,
    told,
)
from ballast.spark.errors import BacktestError
from ballast.spark.file_system import FileSystem

# What runs came to, below a folder of any Hadoop file system: a file for each run, and tables of the whole study.
#
# `DIR/cases/KEY.parquet` as each run ends, `DIR/results.parquet` and `DIR/ranking.parquet` when all have. A file is
# written next to its place and takes it at once: whatever has its name is whole.

_RESULTS, _RANKING = "results.parquet", "ranking.parquet"

FIGURES = tuple(field.name for field in fields(RunMetrics))


class Store:
    """`path`: a local path, or a URI of any file system that Spark's Hadoop knows."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._files = FileSystem(spark, path)

    def known(self) -> frozenset[str]:
        """Keys of the runs that are there."""
        return frozenset(path.getName().removesuffix(".parquet") for path in self._files.found("cases/*.parquet"))

    def keep(self, key: str, table: pa.Table) -> None:
        self._write(f"cases/{key}.parquet", table)

    def study(self, runs: Sequence[Run], *, left_out: Mapping[str, str] | None = None) -> Study:
        """Of runs that are all there, in their order; published as one table, too. Raises BacktestError.

        `left_out`: windows without runs, and why.
        """
        with TemporaryDirectory(prefix="ballast-backtest-") as folder:
            tables = [labeled(self._read(f"cases/{run.key}.parquet", Path(folder)), run) for run in runs]
        table = pa.concat_tables(tables)
        self._write(_RESULTS, table)
        return _study(table, left_out or {})

    def publish(self, ranking: Ranking) -> None:
        self._write(_RANKING, ranking_table(ranking))

    def alone(self) -> AbstractContextManager[None]:
        """Two programs would do the same runs twice, and each replace the other's tables. As FileSystem.alone."""
        return self._files.alone(
            field="--out", remedy="another backtest is at work there: wait until it has ended, or name another folder"
        )

    def _write(self, name: str, table: pa.Table) -> None:
        with TemporaryDirectory(prefix="ballast-backtest-") as folder:
            file = Path(folder) / "written.parquet"
            pq.write_table(table, file, compression="zstd")
            self._files.put(file, self._files.below(name))

    def _read(self, name: str, folder: Path) -> pa.Table:
        path = self._files.below(name)
        if not self._files.system.exists(path):
            raise BacktestError(f"{path.toString()} is not there: run the backtest again")
        try:
            table = pq.read_table(self._files.fetched(path, folder))
        except (pa.ArrowInvalid, OSError) as error:
            raise BacktestError(f"{path.toString()} can't be read: delete it and run the backtest again") from error
        return checked(table, where=path.toString())


def _study(table: pa.Table, without_runs: Mapping[str, str]) -> Study:
    """Raises BacktestError when no window remains."""
    unusable = {**without_runs, **reasons_left_out(table)}
    found = [result for result in results(table) if result.case.window not in unusable]
    policies = documents(table)
    if not found:
        reasons = "; ".join(left_out_told(unusable))
        raise BacktestError(
            f"no window can be used: {reasons}. Name a shorter --window, or with --from and --to the time that there is"
        )
    order = list(policies)
    ordered = sorted(found, key=lambda result: order.index(result.case.policy))
    return Study(tuple(ordered), policies, dict(sorted(unusable.items())))


def ranking_table(ranking: Ranking) -> pa.Table:
    """Of each figure the mean, and `_low` and `_high` of its 95 % interval, null where there is none."""
    columns: dict[str, list[object]] = {
        "policy": [one.policy for one in ranking.standings],
        "recommended": [one.policy == ranking.recommended for one in ranking.standings],
        "on_front": [one.on_front for one in ranking.standings],
        "as_good_as_lowest_imbalance": [one.policy in ranking.as_good for one in ranking.standings],
        "cases": [one.cases for one in ranking.standings],
        "never_level": [one.never_level for one in ranking.standings],
    }
    table = pa.table(columns)
    for name in FIGURES:
        found = [one.estimates[name] for one in ranking.standings]
        for suffix, values in (
            ("", [each.mean for each in found]),
            ("_low", [each.low for each in found]),
            ("_high", [each.high for each in found]),
        ):
            table = table.append_column(f"{name}{suffix}", pa.array(values, pa.float64(), from_pandas=True))
    return table


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
