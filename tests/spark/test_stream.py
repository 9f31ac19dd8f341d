from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession

from tests.spark import known_data
from tests.spark.driver import driver
from tests.spark.filled_prometheus import FilledPrometheus
from tests.testbed.waiting import wait_until

HOURS = 2
PATIENCE_SECONDS = 300.0


def options(prometheus: FilledPrometheus) -> dict[str, str]:
    """The first two hours of the data are what is ripe, in batches of half an hour."""
    delay = time.time() - (known_data.START + HOURS * 3600)
    return {
        "url": prometheus.url,
        "query": "load",
        "start": str(known_data.START),
        "step": "60s",
        "delay": str(delay),
        "labels": "pod",
        "maxSpanPerTrigger": "30m",
        "partitionSpan": "20m",
    }


def stream(spark: SparkSession, prometheus: FilledPrometheus) -> DataFrame:
    return spark.readStream.format("prometheus").options(**options(prometheus)).load()


def rows_of(frame: DataFrame) -> Counter[tuple[str, float, float]]:
    return counted(frame.collect())


def counted(rows: list[Row]) -> Counter[tuple[str, float, float]]:
    return Counter((row.pod, row.timestamp.timestamp(), row.value) for row in rows)


def own_rows(prometheus: FilledPrometheus, last: float) -> Counter[tuple[str, float, float]]:
    asked = prometheus.matrix("load", start=str(known_data.START), end=str(last), step="60s")
    return Counter((one["metric"]["pod"], at, float(text)) for one in asked for at, text in one["values"])


def assert_each_point_once(prometheus: FilledPrometheus, found: Counter[tuple[str, float, float]]) -> None:
    last = max(at for _, at, _ in found)
    assert last >= known_data.START + HOURS * 3600
    assert found == own_rows(prometheus, last)


def test_what_is_available_is_read_in_bounded_batches_once_and_a_batch_that_failed_is_read_again_just_the_same(
    spark: SparkSession, prometheus: FilledPrometheus, tmp_path: Path
) -> None:
    batches: dict[int, list[Row]] = {}
    before_the_crash: list[Row] = []

    def crash_once(frame: DataFrame, batch: int) -> None:
        batches[batch] = frame.collect()
        if batch == 2 and not before_the_crash:
            before_the_crash.extend(batches[batch])
            raise RuntimeError("the driver died here")

    def run() -> None:
        writer = stream(spark, prometheus).writeStream.foreachBatch(crash_once).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    with pytest.raises(StreamingQueryException, match="the driver died here"):
        run()
    assert sorted(batches) == [0, 1, 2]
    run()
    assert counted(batches[2]) == counted(before_the_crash)
    assert_each_point_once(prometheus, counted([row for rows in batches.values() for row in rows]))
    spans = [{row.timestamp for row in rows} for _, rows in sorted(batches.items())]
    assert [len(span) for span in spans[:4]] == [30, 30, 30, 30]


@pytest.mark.soak
def test_a_stream_whose_driver_was_killed_goes_on_from_its_checkpoint(
    spark: SparkSession, prometheus: FilledPrometheus, tmp_path: Path
) -> None:
    checkpoint, sink = tmp_path / "checkpoint", tmp_path / "sink"
    asked = [f"{name}={value}" for name, value in options(prometheus).items()]
    log = tmp_path / "log"
    with driver("tests.spark.following", str(checkpoint), str(sink), *asked, log=log) as process:

        def committed_one() -> bool:
            assert process.poll() is None, log.read_text()
            return (checkpoint / "commits" / "0").exists()

        # The end of the block kills the driver.
        wait_until(committed_one, what="a batch is committed", timeout_seconds=PATIENCE_SECONDS, explain=log.read_text)
    committed = len([path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()])
    assert committed < 5  # it had not got to the end
    writer = stream(spark, prometheus).writeStream.format("parquet").trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).option("path", str(sink)).start().awaitTermination()
    assert_each_point_once(prometheus, rows_of(spark.read.parquet(str(sink))))
