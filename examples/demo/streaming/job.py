"""The streaming job itself: a PySpark program that spark-submit runs in the driver's pod.

Reads files of numbered records, gathers them in windows per key (that is the state, kept across batches and
executors), works on every record of a closed window and writes it once: the folder of a batch is overwritten when the
batch is run again, so the output is exactly-once. It ends when the file `stop` appears.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

SCHEMA = "id LONG, key INT, at DOUBLE, value LONG, padding STRING"
POLL_SECONDS = 1


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True, help="holds source, sink, checkpoint and progress")
    parser.add_argument("--query", default="windows")
    parser.add_argument("--trigger", default="2 seconds")
    parser.add_argument("--window", default="2 seconds", help="how long a window of event time is")
    parser.add_argument("--rounds", type=int, default=50, help="rounds of hashing per record")
    return parser.parse_args(arguments)


def windows(records: DataFrame, *, window: str, rounds: int) -> DataFrame:
    """Every record once, in the window and under the key that it belongs to, worked on when the window closes."""
    record = f.struct("id", "value", "padding")
    closed = (
        records.withColumn("at", f.timestamp_seconds("at"))
        .withWatermark("at", "1 second")
        .groupBy(f.window("at", window), "key")
        .agg(f.collect_list(record).alias("records"))
    )
    digest = f"aggregate(sequence(1, {rounds}), r.padding, (text, turn) -> sha2(concat(text, turn), 256))"
    worked = f.expr(f"transform(records, r -> struct(r.id, r.value, substring({digest}, 1, 8) AS digest))")
    return closed.select("key", worked.alias("records"))


def start(spark: SparkSession, chosen: argparse.Namespace) -> StreamingQuery:
    folder: Path = chosen.folder
    records = spark.readStream.schema(SCHEMA).json(str(folder / "source"))

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.write.mode("overwrite").json(str(folder / "sink" / f"batch={batch_id}"))

    return (
        windows(records, window=chosen.window, rounds=chosen.rounds)
        .writeStream.queryName(chosen.query)
        .outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime=chosen.trigger)
        .foreachBatch(write)
        .start()
    )


def follow(query: StreamingQuery, folder: Path) -> None:
    """Write down the progress of every batch until told to stop, or until the query fails."""
    seen = -1
    with (folder / "progress.jsonl").open("a") as progress:
        while query.isActive and not (folder / "stop").exists():
            query.awaitTermination(POLL_SECONDS)
            for each in query.recentProgress:
                if each["batchId"] > seen:
                    seen = each["batchId"]
                    progress.write(json.dumps(json.loads(each.json)) + "\n")
            progress.flush()


def main() -> None:
    chosen = options()
    spark = SparkSession.builder.getOrCreate()
    query = start(spark, chosen)
    (chosen.folder / "started").touch()
    follow(query, chosen.folder)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
