"""`python -m tests.spark.audited_job BOOTSTRAP JARS FOLDER`: two audited streams from Kafka over state to Kafka.

Their executors are processes of their own. The stream `leaky` has a sink that drops one record. Both run until a line
comes on the standard input, finish what has arrived, and record what the output topics have.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ballast.spark.audit import Audit
from tests.spark.session import PATHS
from tests.testbed.waiting import wait_until

if TYPE_CHECKING:
    import pandas as pd

SOUND, LEAKY = "clicks", "leaky"
TOPICS = ("in", SOUND, LEAKY)
USERS = 20
DROPPED = 77
"""The id of the record."""
WORKERS, EXECUTORS = 3, 2
"""One more, since a decommissioned executor keeps its worker's core until it has ended."""
_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "700m",
    "spark.executor.memory": "600m",
    "spark.cores.max": str(EXECUTORS),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.replicationReattemptInterval": "2s",
    # In Kubernetes, the pod's grace period ends it.
    "spark.executor.decommission.forceKillTimeout": "60s",
    "spark.locality.wait": "0s",
    # As many executors may end as it takes.
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.task.maxFailures": "100",
    "spark.stage.maxConsecutiveAttempts": "100",
}


def main(bootstrap: str, jars: Path, folder: Path) -> None:
    spark = _session(jars, folder)
    audit = Audit(spark, str(folder / "ledger"))
    queries = [_started(spark, audit, bootstrap, name, folder) for name in (SOUND, LEAKY)]
    print("started", flush=True)
    sys.stdin.readline()
    for query in queries:
        query.processAllAvailable()
        query.stop()
    for name in (SOUND, LEAKY):
        audit.delivered(
            _arrived(spark, bootstrap, name), f"{name}: delivered", id="id", batch="batch", query=name,
            after=f"{name}: written",
        )  # fmt: skip
    wait_until(lambda: _recorded(folder) == _committed(folder), what="all micro-batches in the ledger")
    spark.stop()


def _session(jars: Path, folder: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = PATHS
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["SPARK_WORKER_DIR"] = str(folder / "executors")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {','.join(map(str, jars.glob('*.jar')))} pyspark-shell"
    builder = SparkSession.builder.master(f"local-cluster[{WORKERS},1,700]").appName("audited")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _started(spark: SparkSession, audit: Audit, bootstrap: str, name: str, folder: Path) -> Any:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", "in")
    text = f.col("value").cast("string").cast("bigint")
    clicks = source.option("startingOffsets", "earliest").load().select(text.alias("id"))
    clicks = audit.stage(clicks, f"{name}: source", id="id", after=())
    numbers = clicks.withColumn("user", f.col("id") % USERS).groupBy("user").applyInPandasWithState(
        _number, "id BIGINT, user BIGINT, number BIGINT", "clicks BIGINT", "append", "NoTimeout"
    )  # fmt: skip
    numbers = audit.stage(numbers, f"{name}: numbered", id="id")
    sink = audit.sink(_writing(bootstrap, name), f"{name}: written", id="id")
    writer = numbers.writeStream.queryName(name).option("checkpointLocation", str(folder / name))
    return writer.trigger(processingTime="1 second").foreachBatch(sink).start()


def _number(_: tuple[Any, ...], clicks: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    (seen,) = state.get if state.exists else (0,)
    for part in clicks:
        yield part.assign(number=range(seen + 1, seen + 1 + len(part)))
        seen += len(part)
    state.update((seen,))


def _writing(bootstrap: str, topic: str) -> Callable[[DataFrame, int], None]:
    def write(batch: DataFrame, number: int) -> None:
        kept = batch.where(f.col("id") != DROPPED) if topic == LEAKY else batch
        value = f.to_json(f.struct(f.lit(number).alias("batch"), "id", "user", "number"))
        out = kept.select(value.alias("value")).write.format("kafka")
        out.option("kafka.bootstrap.servers", bootstrap).option("topic", topic).save()

    return write


def _arrived(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """Spark writes to Kafka at least once: the records of a task that was run again may be there twice."""
    out = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic).load()
    value = f.from_json(f.col("value").cast("string"), "batch BIGINT, id BIGINT")
    return out.select(value.alias("value")).select("value.*").dropDuplicates(["batch", "id"])


def _recorded(folder: Path) -> int:
    return len(list((folder / "ledger").glob("*-stages.parquet")))


def _committed(folder: Path) -> int:
    return sum(committed(folder, name) for name in (SOUND, LEAKY))


def committed(folder: Path, query: str) -> int:
    """How many of its micro-batches. Spark keeps the files of the last hundred."""
    commits = folder / query / "commits"
    numbers = [int(path.name) for path in commits.iterdir() if path.name.isdigit()] if commits.exists() else []
    return max(numbers, default=-1) + 1


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
