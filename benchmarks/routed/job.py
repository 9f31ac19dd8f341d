"""`python -m benchmarks.routed.job BOOTSTRAP JARS ROUNDS`: one job, with the partition chosen in several ways in turn.

Prints a JSON line for each run. Its own process, since Spark takes the connector's jars only at its start.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ballast.spark.routing import KafkaTopic
from benchmarks.routed.ways import NONE, PLAIN, ROUND_ROBIN, ROUTED, ways
from tests.spark.session import local_session

TOPIC = "out"
CORES = 2
KAFKA, THROWN_AWAY = "kafka", "noop"
RECORDS = {KAFKA: 1_000_000, THROWN_AWAY: 4_000_000}
"""By sink. Where records are thrown away, what differs between the ways is the cost of choosing."""
WAYS = {KAFKA: (ROUND_ROBIN, ROUTED), THROWN_AWAY: (NONE, ROUTED, PLAIN)}


@dataclass(frozen=True, slots=True)
class Run:
    round: int
    sink: str
    way: str
    seconds: float
    cpu_seconds: float
    """Of the driver, its JVM and the Python workers."""


def records(spark: SparkSession, count: int) -> DataFrame:
    """Page views as JSON, of some 90 characters."""
    view = f.struct(
        "id",
        (f.col("id") % 10_000).alias("user"),
        f.rand(seed=1).alias("amount"),
        f.concat(f.lit("/articles/"), f.col("id") % 500).alias("page"),
    )
    return spark.range(count, numPartitions=CORES).select(f.to_json(view).alias("value"))


def written(df: DataFrame, sink: str, bootstrap: str) -> None:
    writer = df.write.format(sink).mode("append")
    if sink == KAFKA:
        writer = writer.option("kafka.bootstrap.servers", bootstrap).option("topic", TOPIC)
    writer.save()


def cpu_seconds() -> float:
    here = psutil.Process()
    return sum(sum(each.cpu_times()[:4]) for each in [here, *here.children(recursive=True)])


def main(bootstrap: str, jars: Path, rounds: int) -> None:
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {','.join(map(str, jars.glob('*.jar')))} pyspark-shell"
    spark = local_session("routed", cores=CORES, memory="1500m")
    known = ways(KafkaTopic(bootstrap, TOPIC))
    for number in range(rounds):
        for sink, chosen in WAYS.items():
            # Which way comes first changes, so that none has the warmer machine.
            for way in chosen if number % 2 else reversed(chosen):
                used, began = cpu_seconds(), time.perf_counter()
                written(known[way](records(spark, RECORDS[sink])), sink, bootstrap)
                seconds = time.perf_counter() - began
                print(json.dumps(asdict(Run(number, sink, way, seconds, cpu_seconds() - used))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
