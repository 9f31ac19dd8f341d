"""`python -m benchmarks.routed.piped SETTINGS`: a stream from Kafka through state into Kafka, in several ways in turn.

Prints a JSON line for each run. SETTINGS is JSON: the fields of `Settings`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ballast.spark.routing import KafkaTopic, client_rack, with_partition
from tests.testbed.instance import Instance
from tests.testbed.network import crossed

IN, OUT = "in", "out"
PARTITIONS = 12
RECORDS = 200_000
BATCHES = 4
_SCHEMA = "id LONG, user INT, page STRING"


@dataclass(frozen=True, slots=True)
class Settings:
    master: str
    address: str
    """Of the driver."""
    bootstrap: str
    jars: str
    instance: int
    executors: int
    ways: tuple[tuple[bool, bool], ...]
    """Of each run of a round: whether `client.rack` is set, and whether partitions are chosen."""
    rounds: int
    zone: str = ""
    """That of all executors, if they are in one."""
    fill: bool = False
    """Write the topic that is read from, and nothing else."""


@dataclass(frozen=True, slots=True)
class Run:
    round: int
    client_rack: bool
    routed: bool
    seconds: float
    racks_bytes: int
    zones_bytes: int


def session(chosen: Settings) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.jars": ",".join(map(str, Path(chosen.jars).glob("*.jar"))),
        "spark.driver.host": chosen.address,
        "spark.driver.bindAddress": chosen.address,
        "spark.executor.memory": "500m",
        "spark.executor.cores": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(chosen.executors),
        "spark.locality.wait": "0s",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        "spark.cores.max": str(chosen.executors),
    }
    builder = SparkSession.builder.master(chosen.master).appName("piped")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def fill(spark: SparkSession, bootstrap: str) -> None:
    page = f.concat(f.sha2(f.col("id").cast("string"), 512), f.sha2((-f.col("id")).cast("string"), 256))
    views = spark.range(RECORDS, numPartitions=PARTITIONS).select(
        f.to_json(f.struct("id", (f.col("id") % 1000).alias("user"), page.alias("page"))).alias("value"),
        (f.col("id") % PARTITIONS).cast("int").alias("partition"),
    )
    views.write.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", IN).save()


def piped(spark: SparkSession, bootstrap: str, *, with_rack: bool, routed: bool, folder: str) -> None:
    """Each view once, by a state of the ids seen: every record goes to the executor that has its id's state."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", IN)
    reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", str(RECORDS // BATCHES))
    views: DataFrame = reader.options(**(client_rack() if with_rack else {})).load()
    parsed = views.select(f.from_json(f.col("value").cast("string"), _SCHEMA).alias("view")).select("view.*")
    once = parsed.dropDuplicates(["id"]).select(f.to_json(f.struct("*")).alias("value"))
    sent = with_partition(once, KafkaTopic(bootstrap, OUT)) if routed else once
    writer = sent.writeStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", OUT)
    query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()


def main(chosen: Settings) -> None:
    spark, instance = session(chosen), Instance(chosen.instance, Path())
    if chosen.fill:
        fill(spark, chosen.bootstrap)
    for number in range(chosen.rounds):
        for with_rack, routed in chosen.ways:
            before, began = crossed(instance), time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                piped(spark, chosen.bootstrap, with_rack=with_rack, routed=routed, folder=folder)
            seconds, sent = time.perf_counter() - began, crossed(instance).since(before)
            run = Run(number, with_rack, routed, seconds, sent.racks_bytes, sent.zones_bytes)
            print(json.dumps(asdict(run)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(TypeAdapter(Settings).validate_json(sys.argv[1]))
