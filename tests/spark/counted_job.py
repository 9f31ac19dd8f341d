"""`python -m tests.spark.counted_job`: prints how many cores of executors each zone has, as its executors are told.

Its own process, because a session of its own master can't be made next to another one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from ballast.spark.routing.executors import Senders, executors_of
from tests.spark.session import PATHS
from tests.testbed.waiting import wait_until

EXECUTORS, CORES = 2, 1


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = PATHS
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "500m",
        "spark.executor.memory": "500m",
        "spark.executorEnv.PYTHONPATH": PATHS,
        "spark.executorEnv.SPARK_EXECUTOR_ATTRIBUTE_BALLAST_ZONE": "b",
        "spark.ui.port": "0",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    }
    builder = SparkSession.builder.master(f"local-cluster[{EXECUTORS},{CORES},500]").appName("counted")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    senders = executors_of(spark, "BALLAST_ZONE")
    rows = spark.range(1, numPartitions=1).mapInArrow(told(senders), "told string")
    print("told", rows.collect()[0].told)
    spark.stop()


def told(senders: Senders) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            found = wait_until(senders.read, what="an answer of Spark's UI")
            yield pa.RecordBatch.from_pydict({"told": [str(dict(found))]})

    return each


if __name__ == "__main__":
    main()
