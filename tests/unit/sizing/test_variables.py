"""The table of variables of the tuning notes, and what follows for other pipelines."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.api.topology_sizing import Sizing
from ballast.errors import InvalidField
from ballast.sizing.batch_regimes import Regimes
from ballast.sizing.facts import UNITS, Facts, spark_memory
from ballast.sizing.memory import GIB
from ballast.sizing.provenance import Origin
from ballast.sizing.variables import BatchModel, Table, table

NOTES: dict[str, Any] = {
    "recordBytes": 1000,
    "batchTime": "800ms",
    "pendingPercent": 200,
    "source": {"brokers": 4, "partitions": 16},
    "machine": {"count": 4, "cores": 4},
    "stages": [
        {"component": "spout", "parallelism": 4},
        {"component": "wukong", "latency": "8ms", "outputPercent": 500},
        {"component": "esstate", "parallelism": 4},
    ],
}
"""4 machines, 4 partitions on each of 4 brokers, 8 ms a record, 1000 B records, 800 ms batches."""


def made(*, what_if: dict[str, str] | None = None, **fields: Any) -> Table:
    return table(Facts(Sizing.model_validate({**NOTES, **fields}), what_if=what_if or {}))


@pytest.mark.parametrize(
    ("name", "amount"),
    [
        ("executors", 4),
        ("executorCores", 4),
        ("parallelism", 16),
        ("stateTasks", 4),
        ("batchRecords", 1600),
        ("batchBytes", 1_600_000),
        ("fetchBytes", 100_000),
        ("maxPending", 32),
        ("expectedBatchSeconds", 0.8),
        ("capacity", 2000),
    ],
)
def test_the_table_of_the_tuning_notes(name: str, amount: float) -> None:
    assert made().amount(name) == pytest.approx(amount)


def test_the_notes_kilobytes_are_those_of_1024_bytes() -> None:
    assert (made().amount("batchBytes") or 0.0) / 1024 == 1562.5


def test_the_source_parallelism_of_the_notes_contradicts_its_formula() -> None:
    """The table has 4; `workers_count * spouts_per_worker` gives 16."""
    found = made().variables["sourceTasks"]
    assert found.value.amount == 16
    assert found.note == "declared 4 (stage spout), but the formula gives 16"


def test_a_declared_source_that_agrees_has_no_note() -> None:
    stages = [{"component": "spout", "parallelism": 16}, *NOTES["stages"][1:]]
    assert made(stages=stages).variables["sourceTasks"].note == ""


def test_buffers_hold_what_an_executor_sends_in_a_batch() -> None:
    assert made().amount("sendBufferRecords") == 2048  # 1600 × 5 ÷ 4 = 2000
    assert made().amount("socketBufferBytes") == 131_072


def test_every_value_says_where_it_comes_from() -> None:
    found = made().variables
    assert found["batchSeconds"].value.source == "spec.sizing.batchTime"
    assert found["capacity"].value.origin is Origin.DECLARED
    assert found["java"].value.origin is Origin.ASSUMED
    assert found["maxPending"].value.origin is Origin.DECLARED
    assert all(variable.value.source for variable in found.values())


def test_what_is_assumed_makes_what_follows_assumed_and_bounded() -> None:
    found = made(batchTime=None).variables["batchRecords"].value
    assert found.origin is Origin.ASSUMED
    assert found.ends == (1600, 20_000)


def test_a_rate_decides_on_the_executors_where_no_machines_are_declared() -> None:
    found = made(recordsPerSecond=4000, machine=None)
    assert found.needed_parallelism == 40  # 4000 × 8 ms ÷ 0.8
    assert (found.amount("executorCores"), found.amount("executors")) == (4, 10)
    assert found.amount("triggerSeconds") == pytest.approx(0.8 * 0.8 * 5000 / 4000)


def test_twice_the_rate_needs_twice_the_executors() -> None:
    found = made(recordsPerSecond=4000, machine=None, what_if={"rate": "2x"})
    assert found.amount("executors") == 20
    assert found.variables["rate"].value.source == "--set rate=2x of: spec.sizing.recordsPerSecond"


def test_executors_and_their_cores_can_be_set() -> None:
    found = made(what_if={"executors": "2", "executorCores": "3"})
    assert found.amount("parallelism") == 6
    assert made(what_if={"executorCores": "3"}).amount("parallelism") == 12
    assert made(machine=None, what_if={"executorCores": "3"}).amount("executorCores") == 3


@pytest.mark.parametrize(
    ("name", "text", "amount"),
    [
        ("recordBytes", "2k", 2000),
        ("batchSeconds", "1500ms", 1.5),
        ("batchSeconds", "3", 3),
        ("partitions", "0.5x", 8),
        ("rate", "100", 100),
    ],
)
def test_any_input_can_be_changed(name: str, text: str, amount: float) -> None:
    assert made(what_if={name: text}).amount(name) == pytest.approx(amount)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("speed", "2x", "set one of rate, recordBytes"),
        ("rate", "2x", "rate is not known: set a value"),
        ("rate", "fast", "or a factor such as 2x"),
        ("batchSeconds", "2parsecs", "or a factor such as 2x"),
        ("machines", "0", "above 0"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused_with_what_to_write(name: str, text: str, words: str) -> None:
    with pytest.raises(InvalidField, match=words):
        made(what_if={name: text})


def test_every_input_has_a_unit() -> None:
    assert set(made().variables) - set(UNITS) == {
        *("parallelism", "sourceTasks", "stateTasks", "batchBytes", "fetchBytes", "socketBufferBytes"),
        *("expectedBatchSeconds", "capacity", "maxPending", "pendingBytes", "sendBufferRecords"),
    }


def test_the_heap_leaves_room_for_the_overhead_in_the_machine() -> None:
    found = made(machine={"count": 4, "cores": 4, "memory": "8Gi"})
    heap, overhead = found.amount("heapBytes"), found.amount("overheadBytes")
    assert heap is not None
    assert overhead is not None
    assert 7 * GIB <= heap <= 8 * GIB - overhead


def test_no_heap_is_recommended_that_loses_compressed_pointers() -> None:
    assert made(machine={"count": 4, "cores": 4, "memory": "256Gi"}).amount("heapBytes") == 31 * GIB


def test_a_core_of_a_large_machine_is_left_to_the_system() -> None:
    assert made(machine={"count": 4, "cores": 16}).amount("executorCores") == 15


@pytest.mark.parametrize(
    ("text", "size"), [("4g", 4 * GIB), ("512m", GIB / 2), ("1024", GIB), ("1gb", GIB), ("2t", 2048 * GIB), ("", None)]
)
def test_memory_is_read_as_spark_writes_it(text: str, size: float | None) -> None:
    assert spark_memory(text) == size


def test_cores_shorten_only_what_tasks_do() -> None:
    model = BatchModel(None, core_seconds_per_record=0.008)
    assert model.seconds(1600, 16) == 0.8
    assert model.cores_for(2000, None) == 20
    assert model.cores_for(1, None) == 1


CURVES = st.builds(
    Regimes,
    base_seconds=st.floats(0.01, 2.0),
    slow_seconds_per_row=st.floats(1e-6, 1e-2),
    sharp_seconds_per_row=st.just(0.0),
    flat_until=st.none(),
    sharp_from=st.none(),
    noise_ratio=st.just(0.1),
    batches=st.just(100),
    smallest_rows=st.just(10.0),
    largest_rows=st.just(1e5),
)


@given(CURVES, st.floats(1e-6, 1e-2), st.integers(1, 64), st.floats(10.0, 1e5), st.floats(1.0, 1e6))
def test_the_cores_for_a_rate_pass_it_in_80_percent_of_the_time_and_one_less_does_not(
    curve: Regimes, core_seconds: float, measured: int, rows: float, rate: float
) -> None:
    model = BatchModel(curve, core_seconds, measured)
    cores = model.cores_for(rate, rows)
    most = 0.8 * rows / rate
    if cores is None:
        assert model.seconds(rows, 1e12) >= most * (1 - 1e-9)
        return
    assert model.seconds(rows, cores) <= most * (1 + 1e-6)
    assert cores == 1 or model.seconds(rows, cores - 1) >= most * (1 - 1e-6)
