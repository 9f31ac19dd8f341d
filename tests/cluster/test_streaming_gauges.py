"""Gauges of streaming queries as Spark 4.3 exports them, asked of a real Prometheus (2.42)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ballast.prometheus import Endpoint, Preset, Prometheus, Series, queries
from tests.spark.filled_prometheus import holding

pytestmark = pytest.mark.cluster

BEGUN, SCRAPE_SECONDS, WINDOW_SECONDS = 1_790_000_000, 5, 60.0
DRIVER = 'application_id="{}",namespace="analytics",pod="driver"'


def lines(query: str, gauge: str, values: list[float], application: str = "spark-1") -> list[str]:
    name = f"metrics_orders_driver_spark_streaming_{query}_{gauge}_Value"
    samples = (
        f"{name}{{{DRIVER.format(application)}}} {value} {BEGUN + SCRAPE_SECONDS * at}"
        for at, value in enumerate(values)
    )
    return [f"# TYPE {name} gauge", *samples]


def batches(folder: Path, gauges: dict[str, dict[str, list[float]]]) -> tuple[Series, ...]:
    """Batch times at the time of the last sample. `gauges`: values by query and gauge."""
    found = [
        line for query, own in gauges.items() for name, values in own.items() for line in lines(query, name, values)
    ]
    text = queries(Preset.CADVISOR, {}).rendered(WINDOW_SECONDS)["batchMilliseconds"]
    with holding((f"{line}\n" for line in (*found, "# EOF")), folder) as filled:
        return Prometheus(Endpoint(filled.url)).query(text, at=BEGUN + SCRAPE_SECONDS * 11.0).series


def test_a_batch_time_counts_only_while_records_were_processed(tmp_path: Path) -> None:
    """Batches take 5.8 s; ten seconds later an empty trigger leaves 8 ms. Another query has been idle throughout."""
    busy, idle = [1.0] * 6 + [0.0] * 6, [0.0] * 12
    (series,) = batches(
        tmp_path,
        {
            "clicks": {
                "latency": [5800.0 if each else 8.0 for each in busy],
                "processingRate_total": [345.0 * each for each in busy],
            },
            "views": {"latency": [35.0] * 12, "processingRate_total": idle},
        },
    )
    assert set(series.values) == {5800.0}
    assert series.labels["application_id"] == "spark-1"


def test_a_query_without_input_has_no_batch_time(tmp_path: Path) -> None:
    assert batches(tmp_path, {"clicks": {"latency": [8.0] * 12, "processingRate_total": [0.0] * 12}}) == ()


STATES = {
    "in-memory": ("clicks", {"latency": 900.0, "states_usedBytes": 5e8, "states_rowsTotal": 1e6}),
    "in-rocksdb": ("clicks", {"latency": 900.0, "states_usedBytes": 21e6, "states_rowsTotal": 4e6}),
    "in-rocksdb-uncounted": ("clicks", {"latency": 900.0, "states_usedBytes": 21e6, "states_rowsTotal": 0.0}),
    "before-the-first-batch": ("clicks", {"latency": 0.0, "states_usedBytes": 0.0, "states_rowsTotal": 0.0}),
    "stateless": ("clicks", {"latency": 900.0, "states_usedBytes": 0.0, "states_rowsTotal": 0.0}),
}


def test_state_is_unknown_before_the_first_batch_and_where_it_is_rocksdbs_memory(tmp_path: Path) -> None:
    """Spark 4.3.0 showed 21 MB for 413 MB of state in RocksDB. One unknown query makes the application unknown."""
    gauges = [(name, query, own) for name, (query, own) in STATES.items()]
    gauges.append(("in-rocksdb", "views", {"latency": 900.0, "states_usedBytes": 5e8, "states_rowsTotal": 1e6}))
    found: dict[str, list[str]] = {}
    for application, query, own in gauges:
        for gauge, value in own.items():
            head, *samples = lines(query, gauge, [value], application)
            found.setdefault(head, []).extend(samples)
    text = queries(Preset.CADVISOR, {}).rendered(WINDOW_SECONDS)["stateBytes"]
    exposed = (f"{line}\n" for head, samples in found.items() for line in (head, *samples))
    with holding((*exposed, "# EOF\n"), tmp_path) as filled:
        answer = Prometheus(Endpoint(filled.url)).query(text, at=float(BEGUN))
    assert {each.labels["application_id"]: each.values[0] for each in answer.series} == {
        "in-memory": 5e8,
        "stateless": 0.0,
    }
