"""`ballast size --prometheus` against a real Prometheus that scrapes a real Spark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from ballast.prometheus import Preset, queries
from tests.spark.filled_prometheus import FilledPrometheus, running
from tests.spark.measured_stream import CORES, RECORD_SECONDS, RECORDS_PER_SECOND
from tests.testbed.instance import free_port
from tests.testbed.waiting import wait_until
from tests.unit.cli.program import run

pytestmark = pytest.mark.soak
PATIENCE_SECONDS = 300.0
BUSY_SECONDS = 30.0
"""Time in tasks from which on the stream counts as measured."""
INPUT_RATE = '{__name__=~"metrics_.+_driver_spark_streaming_clicks_inputRate_total_Value"}'
RATES = f"count_over_time(({INPUT_RATE} > 0)[10m:5s])"
"""At every fifth second: the first micro-batch may last so long that all tasks have run with it."""
RATES_AT_LEAST = 6


def scraping(port: int) -> str:
    """Both of the driver's endpoints, every second."""
    jobs = [
        {
            "job_name": path.rpartition("/")[0].replace("/", "-"),
            "metrics_path": path,
            "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
        }
        for path in ("/metrics/executors/prometheus", "/metrics/prometheus/")
    ]
    return json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs})


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilledPrometheus]:
    """A Prometheus that has watched the stream for a while."""
    tmp_path = tmp_path_factory.mktemp("measured")
    port = free_port("127.0.0.1")
    log = tmp_path / "driver.log"
    with log.open("wb") as file, running(tmp_path, scraping(port)) as prometheus:
        command = [sys.executable, "-m", "tests.spark.measured_stream", str(port)]
        driver = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        try:

            def busy() -> bool:
                assert driver.poll() is None, log.read_text()
                found = prometheus.vector("metrics_executor_totalDuration_seconds_total")
                rates = prometheus.vector(RATES)
                return max(rates, default=0.0) >= RATES_AT_LEAST and max(found, default=0.0) > BUSY_SECONDS

            wait_until(busy, what="tasks have run", timeout_seconds=PATIENCE_SECONDS, explain=log.read_text)
            yield prometheus
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()


def test_rate_cost_and_cores_of_a_running_stream_come_from_prometheus(measured: FilledPrometheus) -> None:
    told = run("size", "--prometheus", measured.url, "-o", "json")
    assert told.code == 0, told.err
    values = {each["name"]: each for each in json.loads(told.out)["variables"]}

    def amount(name: str) -> Any:
        assert values[name]["origin"] == "Measured"
        return values[name]["value"]

    assert amount("executorCores") == CORES
    # The source gives whole seconds of records: on a busy machine batches hold one or two of them, and rates vary.
    assert amount("rate") == pytest.approx(RECORDS_PER_SECOND, rel=0.3)
    # On an idle machine all rates are alike, each a millisecond of the trigger below what the source gives.
    assert 0.0 < values["rate"]["low"] <= RECORDS_PER_SECOND * 1.01
    assert values["rate"]["high"] >= RECORDS_PER_SECOND * 0.99
    # Tasks of a busy machine also wait for it, at their begin and end.
    assert RECORD_SECONDS <= amount("recordSeconds") < 2.0 * RECORD_SECONDS
    # The stream asks for 0.8 of a core and has two.
    assert amount("executors") == 1


@pytest.mark.parametrize("preset", list(Preset))
def test_the_presets_tell_how_busy_the_task_slots_are(measured: FilledPrometheus, preset: Preset) -> None:
    (slots,) = measured.vector(queries(preset, {}).rendered(20.0)["executorSlots"])
    assert slots == pytest.approx(RECORDS_PER_SECOND * RECORD_SECONDS / CORES, rel=0.5)
