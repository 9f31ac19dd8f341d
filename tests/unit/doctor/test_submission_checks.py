"""Each finding of an application is provoked by one change to a good one, and removed by its own patch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.doctor.catalog import SUBMISSION, Finding, Severity, found
from ballast.doctor.command import from_properties
from ballast.doctor.resources import from_documents
from ballast.doctor.submission_checks import Expectations, check, patch
from ballast.errors import InvalidField
from tests.unit.doctor.provoked import ALSO, CHANGES, REMEDY_ELSEWHERE, as_properties, settings


def findings(changes: dict[str, str], expected: Expectations | None = None) -> list[Finding]:
    return check([from_properties(as_properties(settings(changes)), "app.conf")], expected or Expectations())


def ids(found: list[Finding]) -> list[str]:
    return [each.id for each in found]


def test_a_good_application_has_no_finding() -> None:
    assert findings({}) == []


def test_each_finding_is_provoked_here() -> None:
    assert set(CHANGES) == set(SUBMISSION)


@pytest.mark.parametrize("id_", CHANGES)
def test_one_change_provokes_one_finding(id_: str) -> None:
    assert ids(findings(dict(CHANGES[id_]))) == [*ALSO.get(id_, []), id_]


@pytest.mark.parametrize("id_", CHANGES)
def test_the_settings_of_a_finding_remove_it(id_: str) -> None:
    finding = findings(dict(CHANGES[id_]))[-1]
    assert (not finding.settings) is (id_ in REMEDY_ELSEWHERE)
    if finding.settings:
        assert findings({**CHANGES[id_], **finding.settings}) == []


def test_a_name_with_line_breaks_adds_nothing_to_the_patch() -> None:
    named = replace(found("FailuresNeverExpire", "a.yaml", "", settings={"a": "b"}), subject="x\nspark.jars evil.jar")
    assert patch([named], {}).splitlines() == ["# x spark.jars evil.jar: FailuresNeverExpire", "a b"]


@pytest.mark.parametrize(("grace", "flagged"), [("59s", True), ("60s", False), ("1m", False)])
def test_the_grace_period_needs_two_migration_passes(grace: str, flagged: bool) -> None:
    key = "spark.kubernetes.executor.terminationGracePeriodSeconds"
    found = findings({"spark.storage.decommission.enabled": "true", key: grace})
    assert (ids(found) == ["StorageDecommissionGrace"]) is flagged


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({"spark.kubernetes.container.image": "apache/spark:3.5.1"}, {"spark.stage.ignoreDecommissionFetchFailure"}),
        ({}, set()),
    ],
)
def test_departures_that_are_retained_also_have_to_be_ignored(changes: dict[str, str], asked: set[str]) -> None:
    batch = {
        "spark.kubernetes.executor.label.ballast.dev/workload": "Batch",
        "spark.scheduler.maxRetainedRemovedDecommissionExecutors": "100",
    }
    found = findings({**batch, **changes})
    assert {key for each in found for key in each.settings if each.id == "DeparturesNotRetained"} == asked


def test_one_level_that_waits_is_enough_for_locality() -> None:
    (finding,) = findings({"spark.locality.wait.node": "500ms"})
    assert "spark.locality.wait.node is 500ms" in finding.what
    assert finding.settings == {"spark.locality.wait": "0s", "spark.locality.wait.node": "0s"}


def test_spark_waits_496_s_for_a_departed_executor_by_default() -> None:
    (finding,) = findings(
        {"spark.shuffle.io.connectionCreationTimeout": "", "spark.shuffle.io.retryWait": "", "spark.app.name": "x"}
    )
    assert "may wait 495s: 4 attempts of 120s" in finding.what


def test_the_network_timeout_is_the_connections_default() -> None:
    changes = {"spark.shuffle.io.connectionCreationTimeout": "", "spark.network.timeout": "10s"}
    assert findings(changes) == []


def test_the_number_of_failures_that_end_the_application_is_named() -> None:
    changes = {"spark.executor.failuresValidityInterval": "", "spark.executor.instances": "6"}
    (finding,) = findings(changes)
    assert "failure number 13 ends the application" in finding.what


def test_unbounded_dynamic_allocation_has_no_limit_of_failures() -> None:
    changes = {"spark.executor.failuresValidityInterval": "", "spark.dynamicAllocation.enabled": "true"}
    assert findings(changes) == []


def test_the_gate_timeout_of_the_policy_counts() -> None:
    changes = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.executorIdleTimeout": "8s",
    }
    assert findings(changes, Expectations(gate_timeout_seconds=5.0)) == []


def test_a_kafka_job_that_names_a_rack_is_fine() -> None:
    kafka = {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"}
    assert findings({**kafka, "spark.clicks.options": "kafka.client.rack=a"}) == []


@pytest.mark.parametrize(("labels", "severity"), [("role: driver", Severity.WARNING), ("app: clicks", Severity.INFO)])
def test_a_selector_that_matches_the_driver_alone_is_a_warning(labels: str, severity: Severity) -> None:
    text = f"""
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {{name: clicks}}
spec:
  driver: {{labels: {{app: clicks, role: driver}}}}
  executor: {{labels: {{app: clicks, ballast.dev/topology: clicks}}}}
---
apiVersion: ballast.dev/v1alpha1
kind: SparkTopology
metadata: {{name: clicks}}
spec: {{components: [{{name: ingest, selector: {{matchLabels: {{{labels}}}}}}}]}}
"""
    found = check(from_documents(text, "app.yaml"), Expectations())
    (finding,) = [each for each in found if each.id == "SelectorMatchesDriver"]
    assert finding.severity is severity
    assert "component ingest matches the driver" in finding.what


@pytest.mark.parametrize(
    ("key", "value"),
    [("spark.locality.wait", "soon"), ("spark.decommission.enabled", "yes"), ("spark.shuffle.io.maxRetries", "few")],
)
def test_a_value_that_spark_would_refuse_is_named(key: str, value: str) -> None:
    with pytest.raises(InvalidField, match=f"app.conf: {key}: '{value}'"):
        findings({key: value})


@pytest.mark.parametrize(
    ("more", "limit"),
    [
        ({}, "1408 MiB"),
        ({"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "134217728"}, "1536 MiB"),
        ({"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "384m"}, None),
        ({"spark.memory.offHeap.size": "4g"}, "1408 MiB"),
        ({"spark.executor.pyspark.memory": "2g", "spark.kubernetes.resource.type": "python"}, None),
    ],
)
def test_all_memory_of_an_executors_container_counts(more: dict[str, str], limit: str | None) -> None:
    found = [each for each in findings({"spark.executor.memory": "1g", **more}) if each.id == "SerialCollector"]
    assert [each.what for each in found] == ([f"An executor's memory limit is {limit}."] if limit else [])


def test_defaults_below_the_policys_gate_timeout_are_named() -> None:
    changes = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "2"}
    named = {each.id: each.what for each in findings(changes, Expectations(gate_timeout_seconds=60.0))}
    assert "executorIdleTimeout is unset, by default 60s" in named["IdleTimeoutBelowGate"]
    assert "WaitingTime is unset, by default 30s" in named["RegisteredWaitBelowGate"]
