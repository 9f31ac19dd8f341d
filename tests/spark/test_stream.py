from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession

from tests.spark import known_data
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


def test_what_is_available_is_read_in_bounded_batches_and_once(
    spark: SparkSession, prometheus: FilledPrometheus, tmp_path: Path
) -> None:
    batches: dict[int, list[Row]] = {}

    def keep(frame: DataFrame, batch: int) -> None:
        batches[batch] = frame.collect()

    for _ in range(2):  # the second run goes on where the first one ended
        writer = stream(spark, prometheus).writeStream.foreachBatch(keep).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    found = counted([row for rows in batches.values() for row in rows])
    assert_each_point_once(prometheus, found)
    spans = [{row.timestamp for row in rows} for rows in batches.values()]
    assert [len(span) for span in spans[:4]] == [30, 30, 30, 30]


def test_a_batch_that_failed_after_its_rows_were_written_is_read_again_just_the_same(
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


def test_a_stream_whose_driver_was_killed_goes_on_from_its_checkpoint(
    spark: SparkSession, prometheus: FilledPrometheus, tmp_path: Path
) -> None:
    checkpoint, sink = tmp_path / "checkpoint", tmp_path / "sink"
    command = [sys.executable, "-m", "tests.spark.following", str(checkpoint), str(sink)]
    asked = [f"{name}={value}" for name, value in options(prometheus).items()]
    with (tmp_path / "log").open("wb") as log:
        driver = subprocess.Popen([*command, *asked], stdout=log, stderr=log, start_new_session=True)
    try:

        def committed_one() -> bool:
            assert driver.poll() is None, (tmp_path / "log").read_text()
            return (checkpoint / "commits" / "0").exists()

        wait_until(
            committed_one,
            what="a batch is committed",
            timeout_seconds=PATIENCE_SECONDS,
            explain=(tmp_path / "log").read_text,
        )
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    committed = len([path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()])
    assert committed < 5  # it had not got to the end
    writer = stream(spark, prometheus).writeStream.format("parquet").trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).option("path", str(sink)).start().awaitTermination()
    assert_each_point_once(prometheus, rows_of(spark.read.parquet(str(sink))))
