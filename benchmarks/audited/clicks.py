"""Streams over clicks in Kafka, each of which runs with and without its audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from ballast.spark.audit import Audit

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.readwriter import DataStreamWriter

USERS = 5_000
BY_POSITION, BY_TEXT = "counted in Spark", "counted in Spark, by an id that the job does not read"
NUMBERED = "numbered in Python"
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
    records = source.option("maxOffsetsPerTrigger", per_batch).load().withColumn("value", f.col("value").cast("string"))
    return records.selectExpr(
        "partition", "offset", "substr(value, 1, 40) AS click_id", "try_cast(substr(value, 41) AS BIGINT) AS user"
    )


def counted(clicks: DataFrame, audit: Audit | None, id: Column | str) -> DataStreamWriter:  # noqa: A002 -- as the audit
    """Clicks of each user, by Spark's own state and without Python: no record takes less time."""
    if audit is not None:
        clicks = audit.stage(clicks, "source", id=id, keeps="user IS NOT NULL")
    valid = clicks.where("user IS NOT NULL")
    if audit is not None:
        valid = audit.stage(valid, "valid", id=id, ends=True)
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


def _by_position(clicks: DataFrame, audit: Audit | None, bootstrap: str, topic: str) -> DataStreamWriter:
    return _counting(counted(clicks, audit, f.struct("partition", "offset")), bootstrap, topic)


def _by_text(clicks: DataFrame, audit: Audit | None, bootstrap: str, topic: str) -> DataStreamWriter:
    return _counting(counted(clicks, audit, "click_id"), bootstrap, topic)


def _counting(users: DataStreamWriter, bootstrap: str, topic: str) -> DataStreamWriter:
    return users.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", topic)


def _numbering(clicks: DataFrame, audit: Audit | None, bootstrap: str, topic: str) -> DataStreamWriter:
    numbers, write = numbered(clicks, audit), to_kafka(bootstrap, topic)
    return numbers.writeStream.foreachBatch(write if audit is None else audit.sink(write, "written", id="click_id"))


JOBS: Mapping[str, Job] = {BY_POSITION: _by_position, BY_TEXT: _by_text, NUMBERED: _numbering}
