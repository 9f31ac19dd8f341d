"""What Spark writes: progress of queries, event logs, and metrics in Prometheus."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.errors import InvalidField
from ballast.sizing import event_log, executor_metrics, gc_log_reader, progress
from ballast.sizing.facts import Facts, measured_inputs, what_was_read


def batch(number: int, rows: int = 1000, *, run: str = "r", query: str = "q", millis: float = 500, **more: Any) -> str:
    durations = {"triggerExecution": millis, "addBatch": millis / 2, "queryPlanning": 20, "walCommit": 30}
    return json.dumps(
        {
            "id": query,
            "runId": run,
            "batchId": number,
            "numInputRows": rows,
            "durationMs": durations,
            "sources": [],
            **more,
        }
    )


def test_each_line_is_a_batch_without_the_first_of_a_run() -> None:
    found = progress.read([batch(0), "", batch(1, 2000), batch(2, run="again"), batch(3, 3000, run="again")], "p")
    assert found.rows == [2000, 3000]
    assert found.seconds == [0.5, 0.5]
    assert found.bookkeeping_share == pytest.approx(0.1)


def test_idle_triggers_are_no_batches() -> None:
    assert progress.read([batch(0, 0), batch(1), batch(1, 0), batch(2, 7)], "p").rows == [7]


def test_of_several_queries_the_one_that_took_most_time_is_read() -> None:
    lines = [batch(n, n + 1, query="small", millis=10) for n in range(3)] + [batch(n, 50) for n in range(3)]
    found = progress.read(lines, "p")
    assert (found.query, found.rows) == ("q", [50, 50])


def test_what_arrives_and_what_waits_in_kafka_is_read() -> None:
    source = {"inputRowsPerSecond": 120.5, "metrics": {"maxOffsetsBehindLatest": "42"}}
    _, *rest = (batch(n, sources=[source, {"inputRowsPerSecond": "NaN"}]) for n in range(2))
    (found,) = progress.read([batch(0), *rest], "p").batches
    assert (found.arriving_per_second, found.behind_rows) == (120.5, 42)


@pytest.mark.parametrize("lines", [[], [batch(0)], ["{"], ["[]"], ['{"batchId": 1}'], [batch(0, 0), batch(1, 0)]])
def test_what_is_no_progress_is_refused_with_what_to_write(lines: list[str]) -> None:
    with pytest.raises(InvalidField, match="StreamingQueryProgress"):
        progress.read(lines, "p")


def test_a_line_that_is_none_is_named() -> None:
    with pytest.raises(InvalidField, match=r"'p:2'"):
        progress.read([batch(0), "nonsense"], "p")


START = {"Event": "SparkListenerApplicationStart", "App Name": "clicks", "Timestamp": 1000}
END = {"Event": "SparkListenerApplicationEnd", "Timestamp": 61_000}
ENVIRONMENT = {
    "Event": "SparkListenerEnvironmentUpdate",
    "JVM Information": {"Java Version": "17.0.15 (Debian)"},
    "Spark Properties": {"spark.executor.memory": "4g"},
}


def added(executor: str, cores: int = 2, at: float = 0.0) -> dict[str, Any]:
    info = {"Total Cores": cores}
    return {
        "Event": "SparkListenerExecutorAdded",
        "Timestamp": at * 1000.0,
        "Executor ID": executor,
        "Executor Info": info,
    }


def removed(executor: str, at: float) -> dict[str, Any]:
    return {"Event": "SparkListenerExecutorRemoved", "Timestamp": at * 1000.0, "Executor ID": executor}


def completed(number: int = 0, *, parents: tuple[int, ...] = (), rdd: str = "") -> dict[str, Any]:
    info = {"Stage ID": number, "Stage Name": "save", "Parent IDs": list(parents), "RDD Info": [{"Name": rdd}]}
    return {"Event": "SparkListenerStageCompleted", "Stage Info": info}


def ended(number: int = 0, *, reason: str = "Success", **metrics: Any) -> dict[str, Any]:
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": number,
        "Task End Reason": {"Reason": reason},
        "Task Info": {"Executor ID": "1", "Launch Time": 2000, "Finish Time": 5000},
        "Task Metrics": {
            "Executor Run Time": 2900,
            "Executor CPU Time": 2_000_000_000,
            "JVM GC Time": 100,
            "Input Metrics": {"Bytes Read": 4000, "Records Read": 4},
            "Shuffle Read Metrics": {"Remote Bytes Read": 10, "Local Bytes Read": 5, "Fetch Wait Time": 250},
            "Shuffle Write Metrics": {"Shuffle Bytes Written": 20},
            "Disk Bytes Spilled": 7,
            **metrics,
        },
    }


def read(*events: dict[str, Any]) -> event_log.EventLog:
    return event_log.read([json.dumps(each) for each in events], "log")


def test_an_event_log_is_read_whole() -> None:
    found = read(START, ENVIRONMENT, added("driver", 4), added("1"), added("2"), completed(), ended(), END)
    assert (found.application, found.java, found.seconds) == ("clicks", 17, 60)
    assert found.settings == {"spark.executor.memory": "4g"}
    assert [(each.name, each.cores) for each in found.executors] == [("1", 2), ("2", 2)]
    assert found.peak == (2, 4)
    assert (found.python, found.failed_tasks) == (False, 0)
    (one,) = found.tasks
    assert (one.seconds, one.run_seconds, one.cpu_seconds, one.gc_seconds) == (3, 2.9, 2, 0.1)
    assert (one.input_records, one.input_bytes, one.shuffle_read_bytes, one.shuffle_write_bytes) == (4, 4000, 15, 20)
    assert (one.fetch_wait_seconds, one.spilled_bytes) == (0.25, 7)
    assert found.stages[0].name == "save"


def test_executors_that_come_and_go_count_for_as_long_as_they_are_there() -> None:
    churn = [event for n in range(6) for event in (added(str(n), at=10.0 * n), removed(str(n), at=10.0 * n + 10.0))]
    found = read(START, *churn, added("last", 4, at=30.0), ended(), END)
    assert len(found.executors) == 7
    assert found.peak == (2, 6)
    assert found.mean_cores == pytest.approx((30 * 2 + 30 * 6) / 60)


@pytest.mark.parametrize(
    "operator",
    [
        "ArrowAggregatePython",
        "ArrowEvalPython",
        "ArrowEvalPythonUDTF",
        "ArrowWindowPython",
        "BatchEvalPython",
        "BatchEvalPythonUDTF",
        "FlatMapCoGroupsInArrow",
        "FlatMapCoGroupsInPandas",
        "FlatMapGroupsInArrow",
        "FlatMapGroupsInPandas",
        "FlatMapGroupsInPandasWithState",
        "MapInArrow",
        "MapInPandas",
        "TransformWithStateInPySpark",
        "AggregateInPandas",
        "WindowInPandas",
    ],
)
def test_each_operator_of_python_workers_in_spark_3_3_to_4_3_is_known(operator: str) -> None:
    event = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
    plan = {"Event": event, "physicalPlanDescription": f"== Physical Plan ==\n* {operator} (2)"}
    assert read(added("1"), plan, ended()).python


def test_local_mode_has_the_driver_as_its_only_executor() -> None:
    assert read(added("driver", 2), ended()).peak == (1, 2)


def test_a_task_without_metrics_ran_for_as_long_as_it_lasted() -> None:
    assert event_log.read([json.dumps({**ended(), "Task Metrics": None})], "log").tasks[0].run_seconds == 3


def test_failed_tasks_are_counted_and_left_out() -> None:
    found = read(ended(), ended(reason="ExceptionFailure"))
    assert (len(found.tasks), found.failed_tasks) == (1, 1)


@pytest.mark.parametrize(
    "event",
    [
        completed(rdd="PythonRDD"),
        {
            "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
            "physicalPlanDescription": "+- ArrowEvalPython [f(x)]",
        },
    ],
)
def test_python_workers_are_noticed(event: dict[str, Any]) -> None:
    assert read(event, ended()).python is True


def test_a_log_that_is_still_written_may_end_within_a_line() -> None:
    found = event_log.read([json.dumps(START), "", json.dumps(ended()), '{"Event": "Spark'], "log")
    assert found.seconds == 4.0


@pytest.mark.parametrize("lines", [[], ["PK\x03"], [json.dumps(START)], ['{"Event": "SparkListenerTaskEnd"}']])
def test_what_is_no_event_log_is_refused_with_what_writes_one(lines: list[str]) -> None:
    with pytest.raises(InvalidField, match=r"spark\.eventLog\.enabled"):
        event_log.read(lines, "log")


@pytest.mark.parametrize("number", ["NaN", 1e400, "-Infinity", "soon"])
def test_a_number_that_is_none_is_refused(number: object) -> None:
    with pytest.raises(InvalidField, match="log:1"):
        event_log.read([json.dumps({**ended(), "Task Metrics": {"Executor Run Time": number}})], "log")


@pytest.mark.parametrize("line", ["[]", "3", '{"Event": "SparkListenerExecutorAdded"}'])
def test_a_line_that_is_no_event_is_named(line: str) -> None:
    with pytest.raises(InvalidField, match="log:2"):
        event_log.read([json.dumps(START), line], "log")


ONE = {"application_id": "spark-1"}


def answers(**values: float) -> dict[str, executor_metrics.Samples]:
    return {
        name: [(ONE, value)] for name, value in {"cores": 8.0, "executors": 2.0, "seconds": 600.0, **values}.items()
    }


def test_metrics_are_those_of_the_only_application() -> None:
    found = executor_metrics.read(answers(rate=1000.0, taskSeconds=3600.0), application=None)
    assert (found.application, found.executors, found.cores, found.busy_ratio) == ("spark-1", 2, 8, 0.75)
    assert (found.records_per_second, found.gc_seconds_per_second) == (1000, None)


def test_increases_are_told_per_second_of_the_time_that_there_are_values_of() -> None:
    found = executor_metrics.read(answers(seconds=60.0, taskSeconds=360.0, inputBytes=120.0), application=None)
    assert (found.task_seconds_per_second, found.input_bytes_per_second) == (6.0, 2.0)


def test_the_drivers_metrics_have_the_application_as_names_of_metrics_write_it() -> None:
    found = executor_metrics.read({**answers(), "rate": [({"application_id": "spark_1"}, 7.0)]}, application=None)
    assert found.records_per_second == 7.0


def test_without_task_times_it_is_not_known_how_busy_cores_are() -> None:
    assert executor_metrics.read(answers(), application="spark-1").busy_ratio is None


def test_values_that_are_no_amounts_are_passed_over() -> None:
    found = executor_metrics.read(answers(rate=float("nan"), taskSeconds=-1.0), application=None)
    assert (found.records_per_second, found.task_seconds_per_second) == (None, None)


def test_less_than_one_core_counts_as_one() -> None:
    """An exporter may tell anything."""
    found = executor_metrics.read(answers(cores=0.5, executors=1e-3, rate=1e300, taskSeconds=60.0), application=None)
    assert (found.executors, found.cores, found.records_per_second) == (1, 1, None)
    assert found.busy_ratio == pytest.approx(0.1)


@pytest.mark.parametrize("absurd", [1e300, -1e19])
def test_amounts_beyond_any_measurement_are_refused(absurd: float) -> None:
    with pytest.raises(InvalidField):
        progress.read([batch(0), batch(1, inputRowsPerSecond=1, numInputRows=absurd)], "p")
    with pytest.raises(InvalidField):
        event_log.read([json.dumps(START), json.dumps({**START, "Timestamp": absurd}), json.dumps(ended())], "log")


@pytest.mark.parametrize(
    ("cores", "application", "words"),
    [
        ([], None, "metrics/executors/prometheus"),
        ([ONE, {"application_id": "spark-2"}], None, "2 applications .spark-1, spark-2"),
        ([ONE], "spark-9", "it has spark-1"),
        ([], "spark-9", "it has none"),
        ([{}], None, "no metrics_executor_totalCores"),
    ],
)
def test_an_application_that_is_not_clear_is_asked_for(
    cores: list[dict[str, str]], application: str | None, words: str
) -> None:
    with pytest.raises(InvalidField, match=words):
        executor_metrics.read({"cores": [(labels, 1.0) for labels in cores]}, application=application)


def test_what_another_namespace_exports_about_the_application_does_not_count() -> None:
    """A user's pod may export the id of any application: its cores and rates were added to that one's."""
    own, others = {"namespace": "orders", **ONE}, {"namespace": "nosy", **ONE}
    both = {name: [(own, value), (others, 1e12)] for name, ((_, value),) in answers(rate=1000.0).items()}
    found = executor_metrics.read(both, application="orders/spark-1")
    assert (found.application, found.executors, found.cores, found.records_per_second) == ("spark-1", 2, 8, 1000)
    for application in (None, "spark-1"):
        with pytest.raises(InvalidField, match="name one of nosy/spark-1, orders/spark-1"):
            executor_metrics.read(both, application=application)


def test_every_query_is_about_an_application() -> None:
    assert all("by (namespace, application_id)" in text for text in executor_metrics.QUERIES.values())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([START, ENVIRONMENT, added("1"), completed(), ended()]), st.data())
def test_an_event_with_anything_in_a_field_is_read_or_refused(event: dict[str, Any], data: st.DataObject) -> None:
    field = data.draw(st.sampled_from(sorted(set(event) - {"Event"})))
    broken = {**event, field: data.draw(JSON)}
    with suppress(InvalidField):
        event_log.read([json.dumps(START), json.dumps(broken), json.dumps(ended())], "log")


@given(st.data())
def test_a_batch_with_anything_in_a_field_is_read_or_refused(data: st.DataObject) -> None:
    whole = json.loads(batch(1))
    broken = {**whole, data.draw(st.sampled_from(sorted(whole))): data.draw(JSON)}
    with suppress(InvalidField):
        progress.read([batch(0), json.dumps(broken), batch(2)], "p")


@pytest.mark.parametrize("reader", [event_log.read, progress.read], ids=["event log", "progress"])
def test_a_line_that_is_nested_too_deeply_is_refused(reader: Callable[[list[str], str], object]) -> None:
    with pytest.raises(InvalidField):
        reader(["[" * 100_000], "log")


@given(st.lists(st.text(max_size=80), max_size=20))
def test_any_text_is_a_gc_log_or_refused(lines: list[str]) -> None:
    with suppress(InvalidField):
        gc_log_reader.read(lines, "gc.log")


def of_profile(name: str, number: int, cores: int) -> dict[str, Any]:
    found = added(name)
    info = {**found["Executor Info"], "Resource Profile Id": number, "Total Cores": cores}
    return {**found, "Executor Info": info}


def test_resource_profiles_of_executors_are_counted() -> None:
    assert read(START, added("1"), ended(), END).resource_profiles == 1
    assert read(START, added("1"), of_profile("2", 1, 4), ended(), END).resource_profiles == 2


def test_an_executor_of_a_profile_takes_tasks_of_the_size_that_the_profile_asks_for() -> None:
    asked = {
        "Event": "SparkListenerResourceProfileAdded",
        "Resource Profile Id": 1,
        "Executor Resource Requests": {"cores": {"Resource Name": "cores", "Amount": 8}},
        "Task Resource Requests": {"cpus": {"Resource Name": "cpus", "Amount": 4.0}},
    }
    found = read(START, asked, of_profile("1", 0, 2), of_profile("2", 1, 8), ended(), END)
    assert (found.slots, found.peak) == (2 + 8 // 4, (2, 10))
    assert found.of_profile(1).peak == (1, 8)


def test_of_several_profiles_the_default_one_tells_what_the_settings_describe() -> None:
    found = read(START, of_profile("1", 0, 2), of_profile("2", 1, 8), ended(), END)
    facts = Facts(log=found)
    values = measured_inputs(facts)
    assert (values["executors"].amount, values["executorCores"].amount) == (1, 2)
    assert "of the default resource profile" in values["executors"].source
    (told,) = what_was_read(facts)
    assert "2 resource profiles (profile 0: at most 1 at once with 2 cores, profile 1: at most 1 at once with" in told


def health(name: str, seconds: float, **who: str) -> dict[str, Any]:
    """As Spark 4.3 writes what its protocol doesn't name."""
    return {"Event": f"org.apache.spark.scheduler.SparkListener{name}", "time": seconds * 1000, **who}


def test_an_excluded_executor_counts_for_no_cores_until_it_takes_tasks_again() -> None:
    first, second = added("1"), added("2")
    start = first["Timestamp"] / 1000
    out, back = (
        health("ExecutorExcluded", start + 10, executorId="1"),
        health("ExecutorUnexcluded", start + 30, executorId="1"),
    )
    doubled = health("ExecutorBlacklisted", start + 10, executorId="1")  # Spark writes both
    found = read(START, first, second, out, doubled, back, ended(), END)
    assert [
        (e.name, e.added_seconds - start, e.removed_seconds and e.removed_seconds - start) for e in found.executors
    ] == [
        ("1", 0, 10),
        ("1", 30, None),
        ("2", 0, None),
    ]
    assert (found.registered, found.excluded) == (2, 1)


def test_an_excluded_host_takes_all_of_its_executors_out() -> None:
    members = [added("1"), added("2"), added("3")]
    for each, host in zip(members, ("a", "a", "b"), strict=True):
        each["Executor Info"]["Host"] = host
    at = members[0]["Timestamp"] / 1000 + 5
    found = read(START, *members, health("NodeExcluded", at, hostId="a"), ended(), END)
    assert [each.removed_seconds is None for each in found.executors] == [False, False, True]
    assert found.excluded == 2


def test_decommissioned_executors_are_counted_by_what_spark_says_of_their_end() -> None:
    first = added("1")
    gone = {"Event": "SparkListenerExecutorRemoved", "Timestamp": first["Timestamp"] + 5000, "Executor ID": "1"}
    reason = "Executor decommission: spark scale down"
    found = read(START, first, {**gone, "Removed Reason": reason}, added("2"), ended(), END)
    assert (found.decommissioned, found.registered) == (1, 2)
    (told,) = what_was_read(Facts(log=found))
    assert told.endswith("1 decommissioned")


@pytest.mark.parametrize(
    ("ends", "behind"),
    [(("7", "7", "7"), [None, None]), (("7", "7", "6"), [0, 0]), ((None, None, None), [0, 0])],
)
def test_nothing_waits_is_only_told_where_a_batch_left_something(
    ends: tuple[str | None, ...], behind: list[float | None]
) -> None:
    """Without maxOffsetsPerTrigger each batch reads to the end, and Kafka reports that nothing is behind it."""
    lines = [
        batch(n, sources=[{"endOffset": end, "latestOffset": "7", "metrics": {"maxOffsetsBehindLatest": "0"}}])
        for n, end in enumerate(ends)
    ]
    assert [each.behind_rows for each in progress.read(lines, "p").batches] == behind


def test_an_executor_that_is_added_again_ends_its_earlier_time() -> None:
    found = read(START, added("1", 2, at=0.0), added("1", 4, at=10.0), removed("1", 30.0), ended(), END)
    assert [(each.cores, each.added_seconds, each.removed_seconds) for each in found.executors] == [
        (2, 0, 10),
        (4, 10, 30),
    ]
    assert found.peak == (1, 4)
    assert found.mean_cores == pytest.approx((10 * 2 + 20 * 4) / 30)
