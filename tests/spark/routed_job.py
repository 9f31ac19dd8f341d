"""`python -m tests.spark.routed_job BOOTSTRAP JARS`: a stream into the topic `out`, and what a reader of it says.

Its own process, because Spark takes the connector's jars only at its start. Prints the records that it read, and the
consumer's `client.rack`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import functions as f

from ballast.spark.routing import KafkaTopic, client_rack, with_partition
from tests.spark.session import local_session

RECORDS = 1000
BATCHES = 3


def main(bootstrap: str, jars: Path) -> None:
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {','.join(map(str, jars.glob('*.jar')))} pyspark-shell"
    spark = local_session("routed")
    log = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    log.core.config.Configurator.setLevel("org.apache.kafka.clients.consumer.ConsumerConfig", log.Level.INFO)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(BATCHES):
            rows = spark.range(number * RECORDS, (number + 1) * RECORDS, numPartitions=2)
            rows.write.mode("append").parquet(f"{folder}/in")
        records = spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 2).parquet(f"{folder}/in")
        # Every tenth record has a key, which decides its partition.
        keyed = records.select(
            f.when(f.col("id") % 10 == 0, f.lit("one key")).alias("key"), f.col("id").cast("string").alias("value")
        )
        topic = KafkaTopic(bootstrap, "out")
        writer = (
            with_partition(keyed, topic).writeStream.format("kafka").option("checkpointLocation", f"{folder}/state")
        )
        writer = writer.option("kafka.bootstrap.servers", bootstrap).option("topic", "out")
        writer.trigger(availableNow=True).start().awaitTermination()
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", "out")
    print("read", reader.options(**client_rack()).load().count())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
