from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.api.topology_sizing import Goal, Sizing
from ballast.errors import InvalidField
from ballast.sizing.event_log import Profile
from ballast.sizing.executor_metrics import ExecutorMetrics
from ballast.sizing.facts import Facts
from ballast.sizing.gc_log import Cycle, GcLog, Generation, Pause
from ballast.sizing.memory import GIB, MIB
from ballast.sizing.provenance import Origin
from ballast.sizing.recommendation import Recommendation, recommend
from ballast.sizing.run_time import predict
from tests.unit.sizing.test_variables import NOTES
from tests.unit.sizing.values import log, progress, sharp, spans, stage, task

READING = log(
    *(stage(n, task(n, start=2.0 * n, seconds=1.0, input_records=1000.0, input_bytes=2e5)) for n in range(10)),
    settings={"spark.executor.memory": "2g"},
)
"""A millisecond of a core per record."""


SLOW = [(float(rows), 0.3 + 6e-4 * rows) for rows in range(100, 4000, 100)]
"""On two cores, 0.5 of the 0.6 ms per record are the tasks' work."""


def of(**fields: Any) -> Recommendation:
    return recommend(Facts(Sizing.model_validate({**NOTES, **fields})))


def told(found: Recommendation, words: str) -> bool:
    return any(words in warning for warning in found.warnings)


def test_nothing_known_is_refused_with_what_to_give() -> None:
    with pytest.raises(InvalidField, match="--progress"):
        recommend(Facts())


def test_the_notes_pipeline_in_sparks_terms() -> None:
    found = of()
    assert found.spark_conf["spark.executor.instances"] == "4"
    assert found.spark_conf["spark.executor.cores"] == "4"
    assert found.spark_conf["spark.sql.shuffle.partitions"] == "16"
    assert found.source_options == {
        "maxOffsetsPerTrigger": "1600",
        "kafka.max.partition.fetch.bytes": "100000",
        "kafka.receive.buffer.bytes": "131072",
    }
    assert found.headline == "Run 4 executors of 4 cores: batches of 1600 records pass 2000 records/s."
    assert told(found, "declared 4 (stage spout), but the formula gives 16")


def test_a_trigger_caps_the_pace_and_leaves_room_to_catch_up() -> None:
    found = of(recordsPerSecond=1600)
    assert found.source_options["trigger(processingTime)"] == "800 milliseconds"
    assert "1.25 times the rate (aim: 1.25 times)" in found.headline


def test_for_latency_no_trigger_delays_a_batch() -> None:
    found = of(recordsPerSecond=1600, goal="Latency")
    assert "trigger(processingTime)" not in found.source_options
    assert told(found, "Java below 21")


def test_machines_that_are_too_few_for_the_rate_are_told() -> None:
    found = of(recordsPerSecond=4000)
    assert told(found, "needs 40 cores: the declared machines have 16")
    assert found.headline.startswith("Add machines first: the rate of 4000 records/s needs 40 cores instead of 16")
    assert not told(of(recordsPerSecond=1600), "needs")


def test_a_fetch_that_is_too_small_for_the_batch_is_told() -> None:
    small = of(source={"brokers": 4, "partitions": 16, "maxFetch": 50_000})
    assert told(small, "gives 800 records at most, fewer than the 1600")
    assert not told(of(source={"brokers": 4, "partitions": 16, "maxFetch": 100_000}), "one fetch")


def test_more_cores_than_partitions_split_them() -> None:
    found = of(source={"partitions": 8})
    assert found.source_options["minPartitions"] == "16"
    assert told(found, "8 of 16 cores have no partition")


def test_work_in_flight_that_crowds_the_heap_is_told() -> None:
    machine = {"count": 4, "cores": 4, "memory": "1Gi"}
    assert told(of(machine=machine, recordBytes=1_000_000), "in flight per executor")
    assert not told(of(machine=machine), "in flight per executor")


@pytest.mark.parametrize(("memory", "words"), [("16Gi", "above 12 GiB"), ("64Gi", "above 12 GiB")])
def test_large_heaps_are_warned_of(memory: str, words: str) -> None:
    assert told(of(machine={"count": 4, "cores": 4, "memory": memory}), words)


def test_a_remote_limit_is_what_to_change_first() -> None:
    stages = [{"component": "lookup", "latency": "8ms", "remoteRateLimit": 100}]
    found = of(stages=stages, recordsPerSecond=1000)
    assert found.headline.startswith("Change stage lookup first: its remote service takes 100 records/s")
    assert told(found, "stage lookup passes 100 records/s")


def test_memory_is_what_to_change_first_where_collections_are_full() -> None:
    full = Pause(1.0, 2.0, Generation.FULL, "Full (G1 Compaction Pause)", 9e8, 8e8)
    found = recommend(Facts(gc=GcLog("G1", 17, GIB, 100.0, (full,))))
    assert found.headline.startswith("Change memory first")
    assert found.gc[0].healthy is False


def test_batches_with_a_sharp_regime_give_the_batch_size_and_its_gain() -> None:
    found = recommend(Facts(progress=progress(sharp(), arriving=1000.0), log=READING))
    rows = int(found.source_options["maxOffsetsPerTrigger"])
    assert 2100 <= rows <= 2400
    assert found.headline.startswith(f"Set maxOffsetsPerTrigger to {rows}")
    assert "more than over the measured batches" in found.headline
    assert found.table.variables["batchRecords"].value.origin is Origin.MEASURED
    assert found.spark_conf["spark.executor.instances"] == "1"


def test_batches_of_one_size_are_told_not_to_tell() -> None:
    found = recommend(Facts(progress=progress([(1000.0, 0.5)] * 30, arriving=1000.0), log=READING))
    assert told(found, "about the same size")
    assert found.headline.startswith("Keep 1 executor")


def test_batches_that_end_before_sharp_growth_may_be_enlarged() -> None:
    pairs = [(rows, 0.3 + 1e-4 * rows) for rows in range(100, 4000, 100)]
    assert told(recommend(Facts(progress=progress(pairs, arriving=1000.0), log=READING)), "none shows sharp growth")


def test_a_rate_that_no_cores_reach_is_told() -> None:
    found = recommend(Facts(progress=progress(sharp(), arriving=1e6), log=READING))
    assert found.table.short is True
    assert told(found, "no number of cores passes the rate")


def test_a_measured_rate_decides_on_the_executors() -> None:
    metrics = ExecutorMetrics(
        "spark-1", 2, 8, task_seconds_per_second=16.0, records_per_second=1000.0, input_bytes_per_second=1e5
    )
    found = recommend(Facts(metrics=metrics))
    assert found.table.amount("recordSeconds") == pytest.approx(0.016)
    assert found.table.amount("recordBytes") == pytest.approx(100.0)
    assert found.headline.startswith("Change the executors from 2 to 5 first, of 4 cores each")


def test_tasks_that_took_no_time_in_the_window_tell_no_seconds_for_a_record() -> None:
    metrics = ExecutorMetrics("spark-1", 2, 8, task_seconds_per_second=0.0, records_per_second=1000.0)
    assert recommend(Facts(metrics=metrics)).table.amount("recordSeconds") is None


def test_a_declared_value_that_measurements_exclude_is_told() -> None:
    sizing = Sizing.model_validate({"stages": [{"component": "work", "latency": "8ms"}]})
    found = recommend(
        Facts(sizing, log=replace(READING, executors=spans({"1": 2})), progress=progress(sharp(), arriving=900.0))
    )
    assert found.table.amount("recordSeconds") == 0.008
    stages = [stage(n, task(n, start=float(n), seconds=1.0 + n / 10, input_records=1000.0)) for n in range(9)]
    found = recommend(Facts(sizing, log=log(*stages)))
    assert told(found, "recordSeconds: declared 0.008 s, but measured 0.0014")


def test_a_batch_job_is_predicted_at_half_and_twice_the_cores() -> None:
    job = log(stage(0, *(task(0, start=float(n // 4), seconds=1.0) for n in range(40))), cores={"1": 4})
    found = recommend(Facts(log=job))
    assert [(each.cores, each.seconds) for each in found.run_times] == [(2, 20), (4, 10), (8, 5)]
    assert found.headline == "Raise the cores from 4 to 8 first: the job would take 5 s instead of 10."
    assert found.source_options == {}
    assert found.spark_conf["spark.sql.shuffle.partitions"] == "8"


def test_a_job_that_its_driver_holds_up_needs_no_executors() -> None:
    found = recommend(Facts(log=log(stage(0, task(seconds=1.0)), seconds=100.0)))
    assert found.headline.startswith("Don't add executors")
    assert "99 s of it are the driver's" in found.headline


def test_a_slow_task_raises_the_timeout_and_a_fast_one_does_not() -> None:
    slow = recommend(Facts(log=log(stage(0, task(seconds=50.0)))))
    assert slow.spark_conf["spark.network.timeout"] == "150s"
    assert "spark.network.timeout" not in recommend(Facts(log=READING)).spark_conf


def test_failed_tasks_and_python_are_told() -> None:
    found = recommend(Facts(log=log(stage(0, task()), python=True, failed_tasks=3)))
    assert told(found, "3 tasks failed")
    assert told(found, "Python workers compute")


def test_progress_alone_tells_the_batch_size_and_nothing_about_executors() -> None:
    found = recommend(Facts(progress=progress(sharp(), arriving=1000.0)))
    assert found.headline.startswith("Set maxOffsetsPerTrigger")
    assert not {"spark.executor.instances", "spark.executor.cores"} & set(found.spark_conf)
    assert found.table.choice is not None
    assert found.table.amount("expectedBatchSeconds") == pytest.approx(found.table.choice.seconds)
    assert found.table.short is False


def test_a_what_if_about_cores_leaves_the_measured_curve_as_it_is() -> None:
    """More cores shorten the work of the tasks only: here 1 ms per record on two cores."""
    few, many = (
        recommend(Facts(progress=progress(SLOW), log=READING, what_if={"executorCores": cores})).table
        for cores in ("2", "4")
    )
    rows = few.amount("batchRecords")
    assert rows == many.amount("batchRecords")
    saved = (few.amount("expectedBatchSeconds") or 0.0) - (many.amount("expectedBatchSeconds") or 0.0)
    assert saved == pytest.approx((rows or 0.0) * 0.001 * (1 / 2 - 1 / 4))


def test_a_declared_cost_does_not_split_a_curve_of_unknown_cores() -> None:
    sizing = Sizing.model_validate({"stages": [{"component": "work", "latency": "1ms"}]})
    found = recommend(Facts(sizing, progress=progress(SLOW)))
    assert found.table.choice is not None
    assert found.table.amount("expectedBatchSeconds") == pytest.approx(found.table.choice.seconds)


def test_where_nothing_tells_the_executors_it_says_what_would() -> None:
    found = recommend(Facts(Sizing.model_validate({"recordBytes": 100})))
    assert found.headline.startswith("How many executors to run is not known: give --event-log")


def gc(java: int, *, heap: float, old: float) -> GcLog:
    """A hundred MiB allocated each second."""
    pauses = tuple(
        Pause(10.0 * n, 0.005, Generation.YOUNG, "Young", before_bytes=1100.0 * MIB, after_bytes=100.0 * MIB)
        for n in range(5)
    )
    return GcLog("G1", java, heap, 50.0, pauses, (Cycle(20.0, Generation.OLD),), old_bytes=(old,))


def test_the_heap_follows_from_what_is_allocated_and_kept() -> None:
    found = recommend(Facts(gc=gc(17, heap=GIB, old=100.0 * MIB)))
    assert found.table.amount("newGenerationBytes") == pytest.approx(1250 * MIB)
    assert found.table.amount("oldGenerationBytes") == pytest.approx(1875 * MIB)
    assert found.spark_conf["spark.executor.memory"] == "3328m"
    assert found.headline.startswith("Set spark.executor.memory to 3328m")
    assert found.spark_conf["spark.executor.memoryOverhead"] == "384m"
    assert "-XX:+UseG1GC" in found.jvm_options


def test_a_large_heap_on_java_21_gets_generational_zgc() -> None:
    found = recommend(Facts(gc=gc(21, heap=GIB, old=8.0 * GIB)))
    assert found.spark_conf["spark.executor.memory"] == str(int(17.25 * 1024)) + "m"
    assert "-XX:+ZGenerational" in found.jvm_options


@pytest.mark.parametrize("goal", list(Goal))
def test_every_goal_gives_a_recommendation(goal: Goal) -> None:
    found = recommend(Facts(Sizing(goal=goal), progress=progress(sharp(), arriving=1000.0), log=READING))
    assert found.goal is goal
    assert found.headline.endswith(".")


def test_for_latency_and_memory_batches_are_smaller() -> None:
    sizes = {
        goal: recommend(Facts(Sizing(goal=goal), progress=progress(sharp(), arriving=1000.0), log=READING))
        for goal in Goal
    }
    rows = {goal: int(found.source_options["maxOffsetsPerTrigger"]) for goal, found in sizes.items()}
    assert rows[Goal.LATENCY] == rows[Goal.MEMORY] < rows[Goal.THROUGHPUT] == rows[Goal.COST]


def test_for_cost_no_machine_is_taken_that_the_rate_does_not_need() -> None:
    assert of(recordsPerSecond=100, goal="Cost").spark_conf["spark.executor.instances"] == "1"
    assert of(recordsPerSecond=9999, goal="Cost").spark_conf["spark.executor.instances"] == "4"
    assert of(recordsPerSecond=100).spark_conf["spark.executor.instances"] == "4"


JOB = [task(0, start=float(n // 2), seconds=1.0, input_records=10.0) for n in range(20)]
"""Ten seconds of two tasks at once, on four cores of which each task keeps two."""


def test_a_task_that_keeps_two_cores_halves_what_runs_at_once() -> None:
    job = log(stage(0, *JOB), cores={"1": 4}, settings={"spark.task.cpus": "2"})
    found = recommend(Facts(log=job))
    assert [(each.cores, each.seconds) for each in found.run_times] == [(2, 20), (4, 10), (8, 5)]
    assert found.spark_conf["spark.sql.shuffle.partitions"] == "4"
    assert found.table.amount("recordSeconds") == pytest.approx(0.2)
    assert "occupy 100% of the cores" in found.first_rule[0].evidence


def test_cores_of_an_executor_that_no_task_can_use_are_no_slots() -> None:
    job = log(stage(0, *JOB), cores={"1": 3, "2": 3}, settings={"spark.task.cpus": "2"})
    assert (job.slots, predict(job, 6).seconds) == (2, 10)


def test_with_several_resource_profiles_no_run_time_is_predicted() -> None:
    found = recommend(Facts(log=replace(log(stage(0, *JOB)), profiles={0: Profile(), 1: Profile()})))
    assert found.run_times == ()
    assert told(found, "2 resource profiles")


def options(settings: dict[str, str], java: int = 17) -> list[str]:
    made = recommend(Facts(log=replace(log(stage(0, task()), settings=settings), java=java)))
    return made.spark_conf["spark.executor.extraJavaOptions"].split()


@pytest.mark.parametrize(
    ("own", "kept", "lost"),
    [
        ("-Djavax.net.ssl.trustStore=/a/b", ["-Djavax.net.ssl.trustStore=/a/b", "-XX:+UseG1GC"], []),
        ("-XX:MaxDirectMemorySize=1g -XX:+UseParallelGC", ["-XX:MaxDirectMemorySize=1g"], ["-XX:+UseParallelGC"]),
        ("-XX:MaxGCPauseMillis=500", ["-XX:MaxGCPauseMillis=50"], ["-XX:MaxGCPauseMillis=500"]),
        ("-Xlog:gc*:file=/logs/gc.log", ["-Xlog:gc*:file=/logs/gc.log"], []),
        (
            "-XX:+IgnoreUnrecognizedVMOptions --add-opens=java.base/java.lang=ALL-UNNAMED -Da=1",
            ["-Da=1"],
            ["-XX:+IgnoreUnrecognizedVMOptions"],
        ),
        ("", [], ["-Djava.net.preferIPv4Stack=true"]),
    ],
)
def test_options_of_the_user_that_are_not_decided_are_kept(own: str, kept: list[str], lost: list[str]) -> None:
    made = options({"spark.executor.extraJavaOptions": own})
    assert set(kept) <= set(made)
    assert not set(lost) & set(made)
    assert sum(each.startswith("-Xlog:gc") for each in made) == 1


def test_java_8_gets_no_option_with_which_it_does_not_start() -> None:
    assert not any(each.startswith("-Xlog") for each in options({}, java=8))
    assert told(recommend(Facts(log=replace(log(stage(0, task())), java=8))), "Java 8 writes GC logs in a form that")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"spark.executor.extraJavaOptions": "-XX:+UseParallelGC"}, "collector from Parallel to G1"),
        ({"spark.executor.defaultJavaOptions": "-XX:+UseZGC"}, "defaultJavaOptions chooses ZGC"),
    ],
)
def test_a_change_of_the_collector_that_settings_choose_is_told(settings: dict[str, str], words: str) -> None:
    assert told(recommend(Facts(log=log(stage(0, task()), settings=settings))), words)


@pytest.mark.parametrize(("own", "proposed"), [("800s", None), ("10min", None), ("130", "150s"), ("x", "150s")])
def test_the_network_timeout_is_never_lowered(own: str, proposed: str | None) -> None:
    found = recommend(Facts(log=log(stage(0, task(seconds=50.0)), settings={"spark.network.timeout": own})))
    assert found.spark_conf.get("spark.network.timeout") == proposed


@pytest.mark.parametrize("name", ["spark.executor.memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor"])
def test_a_factor_of_the_overhead_holds_for_the_proposed_heap(name: str) -> None:
    seen = log(stage(0, task()), settings={"spark.executor.memory": "1g", name: "0.5"})
    found = recommend(Facts(gc=gc(17, heap=GIB, old=100.0 * MIB), log=seen))
    assert found.spark_conf["spark.executor.memory"] == "3328m"
    assert found.spark_conf["spark.executor.memoryOverhead"] == "1664m"
