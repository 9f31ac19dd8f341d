"""`many_windows.py CORES WINDOWS`: hours of a history × 4 policies, on executors apart from the driver.

It is a program rather than a module, so that an earlier commit's packages can run it: those that come first in
PYTHONPATH.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import threading
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import psutil
from pyspark.sql import SparkSession

from ballast.api import BalancingPolicy
from ballast.simulation.policies import by_name, policy_in
from ballast.simulation.replay import Replay
from ballast.spark.backtest import Job, Recordings, Selection, Store, runs
from ballast.spark.source import register
from benchmarks.study.days import FIGURES, day, policies
from benchmarks.study.on_history import FIRST, write
from tests.unit.simulation.histories import history
from tests.unit.simulation.recordings import recorded

POLICIES = 4
HOUR_MS = 3_600_000
LOOK_SECONDS = 0.1
RETAINED = ("spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.ui.retainedTasks",
            "spark.sql.ui.retainedExecutions", "spark.ui.retainedDeadExecutors")  # fmt: skip


class Driver:
    """Looks at the memory of this process and of its JVM, while it lasts."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        own = psutil.Process()
        self._processes = [own, *(each for each in own.children() if "java" in each.name())]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self.peak_bytes = max(self.peak_bytes, sum(each.memory_info().rss for each in self._processes))


def session(cores: int) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master(f"local-cluster[{cores},1,1024]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "700m")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC")
        .config("spark.executor.memory", "700m")
        .config("spark.executor.extraJavaOptions", "-XX:+UseSerialGC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    )
    for name in RETAINED:
        builder = builder.config(name, "10")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    return spark


def live_heap_bytes(spark: SparkSession) -> int:
    """What the driver's JVM holds after a collection."""
    jvm: Any = spark._jvm  # noqa: SLF001 -- a benchmark asks what PySpark doesn't show
    for _ in range(3):
        jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def main() -> None:
    cores, count = (int(text) for text in sys.argv[1:])
    spark = session(cores)
    world = day(1)
    still = policy_in(BalancingPolicy.parse(by_name("None", FIGURES)), world)
    with tempfile.TemporaryDirectory(prefix="backtest-bench-") as name:
        folder = Path(name)
        write(spark, folder / "history", history(recorded(world, still)[1]), math.ceil(count / 24))
        spark.catalog.clearCache()
        chosen = Selection(start_ms=FIRST.start_ms, end_ms=FIRST.start_ms + count * HOUR_MS, window_ms=HOUR_MS)
        source = Recordings(spark, str(folder / "history"), chosen, Replay())
        wanted = runs(dict(islice(policies().items(), POLICIES)), source.windows, seeds=1)
        store = Store(spark, str(folder / "out"))
        # The workers have started and loaded their code when the clock starts.
        Job(spark, source, Store(spark, str(folder / "warm"))).run(wanted[: 2 * cores], lambda *_: None)
        with Driver() as driver:
            began = perf_counter()
            Job(spark, source, store).run(wanted, lambda *_: None)
            seconds = perf_counter() - began
            heap = live_heap_bytes(spark)
        assert store.known() == {run.key for run in wanted}
        told = {"runs": len(wanted), "seconds": seconds, "heap_bytes": heap, "driver_bytes": driver.peak_bytes}
    json.dump(told, sys.stdout)
    spark.stop()


if __name__ == "__main__":
    main()
