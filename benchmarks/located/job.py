"""`job.py FOLDER ROUNDS`: a shuffle-bound and a CPU-bound job, one after the other, in one Spark application.

Before each begins it writes the file `ready-NAME` and waits for `go-NAME`, so that what crosses the links meanwhile can
be counted. `done-NAME` has the seconds of each of its rounds, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

SHUFFLED_RECORDS, HASHED_RECORDS = 24_000, 900_000
WARM_ROUNDS = 3
_RECORD_PARTS = 16
"""Of 64 characters each."""
_POLL_SECONDS = 0.2


def shuffling(spark: SparkSession, partitions: int) -> Callable[[int], None]:
    """Records of 1 KiB that the executors hold in memory go to other partitions in each round."""
    parts = [f.sha2(f.concat(f.col("id").cast("string"), f.lit(f"/{part}")), 256) for part in range(_RECORD_PARTS)]
    records = spark.range(SHUFFLED_RECORDS, numPartitions=partitions).select("id", f.concat(*parts).alias("payload"))
    held = records.persist()
    held.count()

    def run(number: int) -> None:
        _ended(held.repartition(partitions, f.xxhash64("id", f.lit(number))))

    return run


def hashing(spark: SparkSession, partitions: int) -> Callable[[int], None]:
    """Next to nothing is exchanged."""

    def run(number: int) -> None:
        records = spark.range(HASHED_RECORDS, numPartitions=partitions)
        text = f.concat(f.col("id").cast("string"), f.lit(f"/{number}"))
        _ended(records.select(f.max(f.sha2(text, 512))))

    return run


def _ended(result: DataFrame) -> None:
    result.write.format("noop").mode("overwrite").save()


def main(folder: Path, rounds: int) -> None:
    spark = SparkSession.builder.getOrCreate()
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    jobs = {"shuffle": shuffling(spark, partitions), "cpu": hashing(spark, partitions)}
    for name, run in jobs.items():
        for number in range(WARM_ROUNDS):
            run(-1 - number)
        (folder / f"ready-{name}").touch()
        while not (folder / f"go-{name}").exists():
            time.sleep(_POLL_SECONDS)
        seconds = [_timed(run, number) for number in range(rounds)]
        written = folder / f"writing-{name}"
        written.write_text(json.dumps(seconds))
        written.rename(folder / f"done-{name}")
    spark.stop()


def _timed(run: Callable[[int], None], number: int) -> float:
    started = time.perf_counter()
    run(number)
    return time.perf_counter() - started


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
