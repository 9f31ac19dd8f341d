"""`python -m benchmarks.source.worker URL STEPS`: what a task of the data source takes, of a range of so many steps.

A separate process: looking at memory ten times a second slows down what is looked at.
"""

from __future__ import annotations

import sys
from time import perf_counter

from benchmarks.source.reader import by_pod
from benchmarks.source.span import Outcome, keep_to
from benchmarks.study.workers import Workers
from tests.spark.session import local_session


def main() -> None:
    url, steps = sys.argv[1:]
    keep_to(2)
    spark = local_session("prometheus-source", memory="512m")
    with Workers() as workers:
        began = perf_counter()
        rows = by_pod(spark, url, "columns", steps=int(steps))
        seconds = perf_counter() - began
    Outcome(sum(row["rows"] for row in rows), seconds, {}, worker_bytes=workers.peak_bytes).tell()
    spark.stop()


if __name__ == "__main__":
    main()
