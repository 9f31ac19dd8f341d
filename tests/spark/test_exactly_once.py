"""The check that every record comes out once can fail: the same query with a sink that doubles.

Each query dies after its rows were written and before Spark knows, as when its driver is killed there, and is started
again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from examples.demo.streaming.job import SCHEMA, windows
from examples.demo.streaming.records import Comparison, Source, Stream, compare
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.soak
RECORDS = Stream(records_per_second=200)
Write = Callable[[DataFrame, Path], None]


@pytest.fixture
def written(tmp_path: Path) -> int:
    source = Source(tmp_path / "source", RECORDS, period_seconds=0.1)
    source.start()
    wait_until(lambda: source.written >= 100, what="records are written")
    source.close()
    return source.written


def as_the_job_does(batch: DataFrame, folder: Path) -> None:
    batch.write.mode("overwrite").json(str(folder))


def doubling(batch: DataFrame, folder: Path) -> None:
    batch.write.mode("append").json(str(folder))


def compared(spark: SparkSession, folder: Path, write: Write, *, written: int) -> Comparison:
    deaths: list[int] = []

    def write_and_die_once(batch: DataFrame, number: int) -> None:
        write(batch, folder / "sink" / f"batch={number}")
        if not deaths and not batch.isEmpty():
            deaths.append(number)
            raise RuntimeError("killed")

    def run() -> None:
        records = spark.readStream.schema(SCHEMA).json(str(folder / "source"))
        found = windows(records, window="1 second", rounds=1).writeStream.outputMode("append")
        found = found.option("checkpointLocation", str(folder / "checkpoint")).foreachBatch(write_and_die_once)
        found.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(StreamingQueryException):
        run()
    run()
    assert len(deaths) == 1
    return compare(RECORDS, written=written, sink=folder / "sink")


def test_a_query_that_dies_after_its_rows_were_written_writes_each_record_once(
    spark: SparkSession, tmp_path: Path, written: int
) -> None:
    found = compared(spark, tmp_path, as_the_job_does, written=written)
    assert found.agree, found


def test_a_sink_that_doubles_what_is_written_again_is_caught(spark: SparkSession, tmp_path: Path, written: int) -> None:
    found = compared(spark, tmp_path, doubling, written=written)
    assert (found.agree, found.lost, found.duplicated) == (False, 0, written)
