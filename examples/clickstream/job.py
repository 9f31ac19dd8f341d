"""The job: clicks from Kafka, numbered per user in the state of a streaming query, to Kafka.

spark-submit runs it in the driver's pod. Four lines of it are Ballast's: `Audit`, `client_rack`, `KafkaTopic` and
`with_partition`. With `--plain`, it does without what reads and writes near. It ends when the file `stop` appears.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from ballast.spark.audit import Audit
from ballast.spark.routing import KafkaTopic, client_rack, with_partition

CLICK = "click_id long, user long, page string, padding string"
NUMBERED = f"{CLICK}, nth long"
RECORD = f"{NUMBERED}, batch long"
QUERY = "clicks"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--source", default="clicks")
    parser.add_argument("--sink", default="visits")
    parser.add_argument("--reader", default="dashboard", help="the consumer group that reads the sink")
    parser.add_argument("--handled-per-second", type=float, default=1000.0, help="by the reader of one partition")
    parser.add_argument("--folder", type=Path, required=True, help="holds checkpoint, ledger and progress")
    parser.add_argument("--trigger", default="2 seconds")
    parser.add_argument("--plain", action="store_true", help="read and write anywhere")
    return parser.parse_args()


def numbered(_user: Any, frames: Iterable[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """The clicks of one user, counted over all micro-batches."""
    count = state.get[0] if state.exists else 0
    for frame in frames:
        yield frame.assign(nth=range(count + 1, count + len(frame) + 1))
        count += len(frame)
    state.update((count,))


def start(spark: SparkSession, audit: Audit, chosen: argparse.Namespace) -> StreamingQuery:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", chosen.bootstrap)
    source = source.option("subscribe", chosen.source).option("startingOffsets", "earliest")
    if not chosen.plain:
        source = source.options(**client_rack())
    clicks = source.load().select(f.from_json(f.col("value").cast("string"), CLICK).alias("click")).select("click.*")
    clicks = audit.stage(clicks, "read", id="click_id")
    visits = clicks.groupBy("user").applyInPandasWithState(numbered, NUMBERED, "clicks long", "append", "NoTimeout")
    visits = audit.stage(visits, "numbered", id="click_id")
    handled = chosen.handled_per_second
    topic = KafkaTopic(chosen.bootstrap, chosen.sink, group=chosen.reader, handled_per_second=handled)

    def write(batch: DataFrame, number: int) -> None:
        records = batch.withColumn("batch", f.lit(number)).select(f.to_json(f.struct("*")).alias("value"))
        routed = records if chosen.plain else with_partition(records, topic)
        sink = routed.write.format("kafka").option("kafka.bootstrap.servers", chosen.bootstrap)
        sink.option("topic", chosen.sink).save()

    writer = visits.writeStream.queryName(QUERY).outputMode("append").trigger(processingTime=chosen.trigger)
    writer = writer.option("checkpointLocation", str(chosen.folder / "checkpoint"))
    return writer.foreachBatch(write).start()


def follow(query: StreamingQuery, folder: Path) -> None:
    """Writes down the progress of every batch until told to stop."""
    seen = -1
    with (folder / "progress.jsonl").open("a") as progress:
        while not (folder / "stop").exists():
            query.awaitTermination(1)
            for each in query.recentProgress:
                if each["batchId"] > seen:
                    seen = each["batchId"]
                    progress.write(json.dumps(json.loads(each.json)) + "\n")
            progress.flush()
            if not query.isActive:
                raise SystemExit("the query has ended")


def main() -> None:
    chosen = options()
    spark = SparkSession.builder.getOrCreate()
    audit = Audit(spark, str(chosen.folder / "ledger"))
    query = start(spark, audit, chosen)
    follow(query, chosen.folder)
    query.processAllAvailable()
    query.stop()
    arrived = spark.read.format("kafka").option("kafka.bootstrap.servers", chosen.bootstrap)
    records = arrived.option("subscribe", chosen.sink).load().select(f.from_json(f.col("value").cast("string"), RECORD))
    # Spark writes to Kafka at least once: what a task wrote that ran again has the same micro-batch and id.
    found = records.toDF("record").select("record.*").dropDuplicates(["batch", "click_id"])
    audit.delivered(found, "delivered", id="click_id", batch="batch", query=QUERY, after="numbered")
    spark.stop()


if __name__ == "__main__":
    main()
