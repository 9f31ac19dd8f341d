from __future__ import annotations

from typing import Any

import pytest

from ballast.api.topology_sizing import Sizing
from ballast.sizing.bottleneck import Resource, bottleneck
from ballast.sizing.executor_metrics import ExecutorMetrics
from ballast.sizing.facts import Facts
from ballast.sizing.gc_log import GcLog, Generation, Pause
from ballast.sizing.provenance import Origin
from tests.unit.sizing.values import log, progress, stage, task


def found(facts: Facts) -> tuple[Resource | None, str]:
    limit = bottleneck(facts, parallelism=16)
    return limit.resource, limit.stage


def of_tasks(**fields: float) -> Facts:
    return Facts(
        log=log(stage(0, task(seconds=1.0), name="read"), stage(1, task(1, seconds=9.0, **fields), name="work"))
    )


@pytest.mark.parametrize(
    ("fields", "resource"),
    [
        ({}, Resource.CPU),
        ({"cpu_seconds": 6.3}, Resource.CPU),
        ({"cpu_seconds": 1.0}, Resource.CONCURRENCY),
        ({"cpu_seconds": 1.0, "input_bytes": 1e10}, Resource.IO),
        ({"fetch_wait_seconds": 3.0}, Resource.IO),
        ({"gc_seconds": 2.0}, Resource.MEMORY),
        ({"spilled_bytes": 1.0}, Resource.MEMORY),
    ],
)
def test_what_tasks_do_with_their_time_names_the_resource(fields: dict[str, float], resource: Resource) -> None:
    limit = bottleneck(of_tasks(**fields), parallelism=16)
    assert limit.resource is resource
    assert limit.origin is Origin.MEASURED
    assert limit.evidence
    assert limit.remedy


def test_the_stage_that_takes_most_time_is_named() -> None:
    assert found(of_tasks()) == (Resource.CPU, "work")
    assert found(of_tasks(spilled_bytes=5.0)) == (Resource.MEMORY, "work")


def test_where_python_computes_the_cpu_is_assumed() -> None:
    limit = bottleneck(Facts(log=log(stage(0, task(cpu_seconds=0.1)), python=True)), parallelism=1)
    assert (limit.resource, limit.origin) == (Resource.CPU, Origin.ASSUMED)


IDLE = log(*(stage(n, task(n, start=10.0 * n, seconds=1.0)) for n in range(5)))
"""Executors have nothing to do in nine of ten seconds."""


def test_a_driver_that_waits_makes_executors_idle() -> None:
    batches = progress([(100.0, 10.0)] * 5)
    assert found(Facts(log=IDLE, progress=batches)) == (Resource.CONCURRENCY, "driver")


@pytest.mark.parametrize("with_log", [True, False])
def test_bookkeeping_that_takes_most_of_a_batch_is_named(with_log: bool) -> None:
    batches = progress([(100.0, 10.0)] * 5, bookkeeping_ratio=0.8)
    assert found(Facts(log=IDLE if with_log else None, progress=batches)) == (Resource.BOOKKEEPING, "driver")


def test_a_job_in_which_hardly_any_task_runs_is_held_up_by_its_driver() -> None:
    limit = bottleneck(Facts(log=IDLE), parallelism=1)
    assert (limit.resource, limit.stage) == (Resource.CONCURRENCY, "driver")
    assert "of the job's time" in limit.evidence


def test_garbage_collection_in_tasks_that_hardly_run_is_not_the_bottleneck() -> None:
    collecting = log(*(stage(n, task(n, start=10.0 * n, seconds=1.0, gc_seconds=0.5)) for n in range(5)))
    assert found(Facts(log=collecting, progress=progress([(100.0, 10.0)] * 5))) == (Resource.CONCURRENCY, "driver")


def test_busy_executors_of_a_stream_are_judged_by_their_tasks() -> None:
    busy = log(*(stage(n, task(n, start=float(n), seconds=1.0), name="work") for n in range(5)))
    assert found(Facts(log=busy, progress=progress([(100.0, 1.0)] * 5))) == (Resource.CPU, "work")


def gc(*pauses: Pause, stalls: tuple[float, ...] = ()) -> GcLog:
    return GcLog("G1", 17, 1e9, 100.0, pauses, stalls_seconds=stalls)


def test_a_heap_that_is_too_small_comes_before_all_but_a_remote_limit() -> None:
    full = Pause(1.0, 2.0, Generation.FULL, "Full (G1 Compaction Pause)")
    facts = Facts(gc=gc(full), log=log(stage(0, task())))
    assert found(facts) == (Resource.MEMORY, "executors")
    assert found(Facts(gc=gc(stalls=(0.1,)))) == (Resource.MEMORY, "executors")


def test_a_collection_that_the_code_asked_for_is_no_lack_of_memory() -> None:
    asked = Pause(1.0, 2.0, Generation.FULL, "Full (System.gc())")
    assert found(Facts(gc=gc(asked), log=log(stage(0, task())))) == (Resource.CPU, "stage 0")


def declared(**fields: Any) -> Facts:
    stages = [{"component": "read", "latency": "1ms"}, {"component": "lookup", "latency": "8ms", **fields}]
    return Facts(Sizing.model_validate({"stages": stages}))


def test_a_remote_limit_that_is_the_narrowest_place_comes_first() -> None:
    limit = bottleneck(declared(remoteRateLimit=500), parallelism=16)
    assert (limit.resource, limit.stage, limit.origin) == (Resource.REMOTE_RATE, "lookup", Origin.DECLARED)
    assert "500 records/s" in limit.evidence
    assert "2000" in limit.evidence


def test_a_remote_limit_that_is_wide_enough_is_none() -> None:
    limit = bottleneck(declared(remoteRateLimit=5000), parallelism=16)
    assert (limit.resource, limit.stage, limit.origin) == (Resource.CPU, "lookup", Origin.ASSUMED)


@pytest.mark.parametrize(
    ("fields", "resource"),
    [
        ({"task_seconds_per_second": 7.0}, Resource.CPU),
        ({"task_seconds_per_second": 3.0, "gc_seconds_per_second": 1.0}, Resource.MEMORY),
        ({"task_seconds_per_second": 3.0}, None),
        ({}, None),
    ],
)
def test_metrics_tell_busy_cores_and_garbage_collection(fields: dict[str, float], resource: Resource | None) -> None:
    assert found(Facts(metrics=ExecutorMetrics("spark-1", 2, 8, **fields)))[0] is resource


def test_with_nothing_known_it_says_what_would_tell() -> None:
    limit = bottleneck(Facts(), parallelism=1)
    assert (limit.resource, limit.origin) == (None, Origin.ASSUMED)
    assert "--event-log" in limit.remedy
