"""Running what is missing on Spark, and keeping each result as it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from ballast.spark.backtest.cases import Run
from ballast.spark.backtest.source import Source
from ballast.spark.backtest.store import Store

Progress = Callable[[], None]
"""Is told of each run that has ended and is kept."""

_IN_FLIGHT = 3
"""Spark jobs at a time. Results reach the driver job by job, and while one job's last task runs, the tasks of the next
keep the other cores busy; so jobs can be small, and little is lost when the program is killed."""
_JOBS = 100
"""More would not be visible, and planning one takes as much CPU as a short run."""
_GROUP = "ballast backtest"


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
