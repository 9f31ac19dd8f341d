"""`python -m benchmarks.study.on_spark CORES RUNS`: that many policy-days as `ballast backtest` runs them."""

from __future__ import annotations

import math
import sys
import tempfile
from time import perf_counter

from ballast.spark.backtest import Job, Scenarios, Store, runs
from benchmarks.study.days import POLICIES, Outcome, day, policies
from benchmarks.study.workers import Workers
from tests.spark.session import local_session


def main() -> None:
    cores, count = (int(text) for text in sys.argv[1:])
    spark = local_session("backtest", cores=cores)
    source = Scenarios([day(number) for number in range(math.ceil(count / POLICIES))])
    wanted = runs(policies(), source.windows, seeds=1)[:count]
    with tempfile.TemporaryDirectory(prefix="backtest-bench-") as folder, Workers() as workers:
        store = Store(spark, folder)
        # The workers have started and loaded their code when the clock starts.
        Job(spark, source, store).run(runs(policies(), source.windows[:1], seeds=2)[-cores:], lambda _: None)
        began = perf_counter()
        Job(spark, source, store).run(wanted, lambda _: None)
        seconds = perf_counter() - began
        store.study(wanted)
    Outcome(seconds, workers.peak_bytes).tell()
    spark.stop()


if __name__ == "__main__":
    main()
