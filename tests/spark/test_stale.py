from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.filled_prometheus import FilledPrometheus, running
from tests.testbed.waiting import wait_until
from tests.unit.spark.faults import Answer, serving

pytestmark = pytest.mark.soak
PLAIN = {"Content-Type": "text/plain; version=0.0.4"}


def config(address: str) -> str:
    targets = [{"targets": [address]}]
    job = {"job_name": "target", "scrape_interval": "1s", "scrape_timeout": "1s", "static_configs": targets}
    return json.dumps({"scrape_configs": [job]})


def seen(prometheus: FilledPrometheus) -> int:
    now = time.time()
    matrix = prometheus.matrix("here", start=str(now - 60), end=str(now), step="1")
    return len(matrix[0]["values"]) if matrix else 0


def here_now(prometheus: FilledPrometheus) -> bool:
    now = str(time.time())
    return bool(prometheus.matrix("here", start=now, end=now, step="1"))


def test_a_series_that_went_stale_has_no_rows_from_then_on(spark: SparkSession, tmp_path: Path) -> None:
    with (
        serving(Answer(b"here 1\n", headers=PLAIN)) as target,
        running(tmp_path, config(target.url.removeprefix("http://"))) as own,
    ):
        wait_until(lambda: seen(own) >= 3, what="three samples are there")
        target.answers[:] = [Answer(b"gone 1\n", headers=PLAIN)]
        wait_until(lambda: not here_now(own), what="the series is stale")
        end = int(time.time()) + 1  # a whole second by which it is stale
        asked = {"url": own.url, "query": "here", "start": str(end - 60), "end": str(end), "step": "1"}
        rows = spark.read.format("prometheus").options(**asked).load().collect()
        (series,) = own.matrix("here", start=asked["start"], end=asked["end"], step="1")
    assert sorted(row.timestamp.timestamp() for row in rows) == [at for at, _ in series["values"]]
    assert all(row.timestamp.timestamp() < end for row in rows)
