"""`python -m benchmarks.sized.batch EXECUTORS FOLDER`: a job of two steps with a shuffle; FOLDER gets its event log."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import functions as f

from benchmarks.sized.cluster import session

CORES = 2
READ_TASKS, READ_TASK_MILLIS = 48, 3500
GROUP_TASKS, GROUP_MILLIS = 24, 150
GROUPS = 480


def main(executors: int, folder: Path) -> None:
    settings = {
        "spark.executor.instances": str(executors),
        "spark.executor.cores": str(CORES),
        "spark.executor.memory": "1024m",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(GROUP_TASKS),
    }
    spark = session("sizing-batch", settings, folder)
    records = spark.range(0, READ_TASKS * 100, numPartitions=READ_TASKS)
    # Every fifth task takes twice as long: waves that don't fill up are part of what is predicted.
    each = READ_TASK_MILLIS // 100
    slow = f"CASE WHEN (id DIV 100) % 5 = 0 THEN {2 * each}L ELSE {each}L END"
    read = records.select("id", f.expr(f"java_method('java.lang.Thread', 'sleep', {slow})").alias("waited"))
    groups = read.groupBy((f.col("id") % GROUPS).alias("group")).agg(f.count("waited").alias("records"))
    sleep = f"java_method('java.lang.Thread', 'sleep', {GROUP_MILLIS}L + records % 1)"
    groups.select(f.expr(sleep).alias("waited")).write.format("noop").mode("append").save()
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
