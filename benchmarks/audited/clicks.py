"""Streams over clicks in Kafka, each of which runs with and without its audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ballast.spark.audit import Audit

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.readwriter import DataStreamWriter

USERS = 5_000
WITHOUT_USER = 100
"""One of so many clicks."""


def fill(spark: SparkSession, bootstrap: str, topic: str, *, clicks: int) -> None:
    """Each as an id of 40 characters and a user."""
    user = f.when(f.col("id") % WITHOUT_USER != 0, (f.col("id") * 7919 % USERS).cast("string")).otherwise("")
    rows = spark.range(clicks).select(f.concat(f.sha1(f.col("id").cast("string")), user).alias("value"))
    rows.write.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", topic).save()


def read(spark: SparkSession, bootstrap: str, topic: str, *, per_batch: int) -> DataFrame:
    """Parsing takes next to nothing: a format such as JSON would only make the audit's share smaller."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    source = source.option("subscribe", topic).option("startingOffsets", "earliest")
    text = source.option("maxOffsetsPerTrigger", per_batch).load().select(f.col("value").cast("string"))
    return text.selectExpr("substr(value, 1, 40) AS click_id", "try_cast(substr(value, 41) AS BIGINT) AS user")


def counted(clicks: DataFrame, audit: Audit | None) -> DataStreamWriter:
    """Clicks of each user, by Spark's own state and without Python: no record takes less time."""
    if audit is not None:
        clicks = audit.stage(clicks, "source", id="click_id", keeps="user IS NOT NULL")
    valid = clicks.where("user IS NOT NULL")
    if audit is not None:
        valid = audit.stage(valid, "valid", id="click_id", ends=True)
    users = valid.groupBy("user").count()
    return users.selectExpr("CAST(user AS STRING) AS key", "CAST(count AS STRING) AS value").writeStream.outputMode(
        "update"
    )


def numbered(clicks: DataFrame, audit: Audit | None) -> DataFrame:
    """Each click with its number among its user's clicks, by state in Python."""
    if audit is not None:
        clicks = audit.stage(clicks, "source", id="click_id", keeps="user IS NOT NULL")
    valid = clicks.where("user IS NOT NULL").select("click_id", "user")
    numbers = valid.groupBy("user").applyInPandasWithState(
        _number, "click_id STRING, user BIGINT, number BIGINT", "clicks BIGINT", "append", "NoTimeout"
    )
    return numbers if audit is None else audit.stage(numbers, "numbered", id="click_id")


def _number(_: tuple[Any, ...], clicks: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    (seen,) = state.get if state.exists else (0,)
    for part in clicks:
        yield part.assign(number=range(seen + 1, seen + 1 + len(part)))
        seen += len(part)
    state.update((seen,))


def to_kafka(bootstrap: str, topic: str) -> Callable[[DataFrame, int], None]:
    def write(batch: DataFrame, number: int) -> None:
        value = f.to_json(f.struct(f.lit(number).alias("batch"), "click_id", "user", "number"))
        out = batch.select(value.alias("value")).write.format("kafka")
        out.option("kafka.bootstrap.servers", bootstrap).option("topic", topic).save()

    return write


Job = Callable[[DataFrame, Audit | None, str, str], "DataStreamWriter"]


def _counting(clicks: DataFrame, audit: Audit | None, bootstrap: str, topic: str) -> DataStreamWriter:
    writer = counted(clicks, audit).format("kafka")
    return writer.option("kafka.bootstrap.servers", bootstrap).option("topic", topic)


def _numbering(clicks: DataFrame, audit: Audit | None, bootstrap: str, topic: str) -> DataStreamWriter:
    numbers, write = numbered(clicks, audit), to_kafka(bootstrap, topic)
    return numbers.writeStream.foreachBatch(write if audit is None else audit.sink(write, "written", id="click_id"))


JOBS: Mapping[str, Job] = {"counted in Spark": _counting, "numbered in Python": _numbering}
