"""Which executors count as failed, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from ballast.controller.failures import Failure, FailureReports, Failures, failure
from ballast.kube.pods import Pod, PodReader
from tests.unit.kube.builders import driver, executor, pod

JSON = dict[str, Any]
OURS = ("analytics", "spark-1")
FAILED = executor(1, phase="Failed")
ALIVE = executor(2, node="node-1")


def read(*pods: JSON) -> list[Pod]:
    reader = PodReader()
    return [reader.read(each) for each in pods]


def reported(body: JSON) -> list[Failure]:
    found = failure(*read(body))
    return [] if found is None else [found]


NO_FAILURES = [
    pytest.param(executor(1, node="node-1"), id="runs"),
    pytest.param(executor(1, phase="Succeeded"), id="ended well"),
    pytest.param(executor(1, phase="Failed", leaving=True), id="was deleted, which ended it"),
    pytest.param(pod("other", phase="Failed"), id="no executor"),
]


@pytest.mark.parametrize("body", NO_FAILURES)
def test_no_failure(body: JSON) -> None:
    assert reported(body) == []
    assert Failures().after(read(body)).counts() == {}


def test_who_failed_counts_once_however_it_became_known() -> None:
    known = Failures().after(read(FAILED, ALIVE), reported(FAILED) * 2)
    assert known.counts() == {OURS: 1}
    assert known.after(read(FAILED, ALIVE), reported(FAILED)) == known


def test_who_failed_counts_although_no_list_has_its_pod() -> None:
    known = Failures().after(read(ALIVE), reported(FAILED))
    assert known.after(read(ALIVE)).counts() == {OURS: 1}


@pytest.mark.parametrize("there", [driver(), ALIVE, FAILED], ids=["driver", "executor", "failed executor"])
def test_failures_are_remembered_while_their_application_is_there(there: JSON) -> None:
    known = Failures().after((), reported(executor(9, phase="Failed")))
    assert known.after(read(there)).counts()[OURS] >= 1


@pytest.mark.parametrize(
    "left",
    [driver(phase="Succeeded"), driver("spark-2"), executor(1, namespace="other"), pod("other")],
    ids=["ended driver", "another application", "another namespace", "no Spark"],
)
def test_failures_are_forgotten_with_their_application(left: JSON) -> None:
    known = Failures().after((), reported(FAILED))
    assert known.after(read(left)).counts() == {}


def test_what_failed_before_its_application_was_listed_is_kept_for_the_next_look() -> None:
    known = Failures().after((), reported(FAILED))
    assert known.after(read(ALIVE)).counts() == {OURS: 1}


def test_of_too_many_failures_the_first_ones_are_forgotten() -> None:
    many = [Failure(f"uid-{number}", OURS) for number in range(100_001)]
    known = Failures().after((), many)
    assert next(iter(known.applications)) == "uid-1"
    assert known.counts() == {OURS: 100_000}


def test_reports_are_taken_once_in_their_order() -> None:
    reports = FailureReports()
    for number in (1, 2):
        reports.put(Failure(f"uid-{number}", OURS))
    assert [each.uid for each in reports.take()] == ["uid-1", "uid-2"]
    assert reports.take() == []
