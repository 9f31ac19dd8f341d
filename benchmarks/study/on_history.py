"""`python -m benchmarks.study.on_history DAYS`: a history of so many days, backtested on one core."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from time import perf_counter

from pyspark.sql import SparkSession

from ballast.api import BalancingPolicy
from ballast.simulation.policies import by_name, policy_in
from ballast.simulation.replay import Replay
from ballast.spark.backtest import Job, Recordings, Selection, Store, runs
from ballast.spark.history import Day, Part
from ballast.spark.history.schema import SORT, Metadata, columns
from benchmarks.study.days import FIGURES, Outcome, day, policies
from benchmarks.study.workers import Workers
from tests.spark.session import local_session
from tests.unit.simulation.histories import Row, history
from tests.unit.simulation.recordings import recorded

FIRST = Day.parse("2026-01-05", field="day")
RUNS = 30
"""However many days there are, since a worker that runs longer has come across more."""

_STEP_MS, _WINDOW_MS = 120_000, 240_000
"""As the policies of `benchmarks.study.days` have it."""


def write(spark: SparkSession, folder: Path, rows: Iterable[Row], days: int) -> None:
    """As `ballast history` leaves it: every day the same."""
    frame = spark.createDataFrame(
        [tuple(row) for row in rows if row.time_ms < FIRST.end_ms],
        "time_ms long, signal string, node string, namespace string, pod string, detail string, value double",
    ).persist()
    for number in range(days):
        one = FIRST.plus(number)
        dated = frame.selectExpr(
            f"timestamp_millis(time_ms + {one.start_ms - FIRST.start_ms}) as time",
            *[name for name in SORT if name != "time"],
        )
        staged, part = folder / "_staged", folder / str(Part(one, "streaming"))
        dated.coalesce(1).sortWithinPartitions(*SORT).select(
            *columns(Metadata(one.end_ms, _STEP_MS, _WINDOW_MS))
        ).write.parquet(str(staged))
        part.mkdir(parents=True)
        (file,) = staged.glob("*.parquet")
        file.rename(part / "history.parquet")
        shutil.rmtree(staged)
    frame.unpersist()


def main() -> None:
    days = int(sys.argv[1])
    spark = local_session("backtest", cores=1)
    world = day(1)
    still = policy_in(BalancingPolicy.parse(by_name("None", FIGURES)), world)
    with tempfile.TemporaryDirectory(prefix="backtest-bench-") as name:
        folder = Path(name)
        write(spark, folder / "history", history(recorded(world, still)[1]), days)
        spark.catalog.clearCache()
        source = Recordings(spark, str(folder / "history"), Selection(), Replay())
        wanted = (runs(dict(islice(policies().items(), 1)), source.windows, seeds=1) * RUNS)[:RUNS]
        with Workers() as workers:
            began = perf_counter()
            Job(spark, source, Store(spark, str(folder / "out"))).run(wanted, lambda _: None)
            Outcome(perf_counter() - began, workers.peak_bytes).tell()
    spark.stop()


if __name__ == "__main__":
    main()
