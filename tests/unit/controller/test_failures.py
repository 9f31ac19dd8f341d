"""Which executors count as failed, and for how long."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.api import BalancingPolicy
from ballast.controller.failures import (
    Application,
    Failed,
    Failure,
    FailureReports,
    Failures,
    failure,
)
from ballast.controller.memory import failures_status, recalled_failures
from ballast.kube.pods import Pod, PodReader
from tests.unit.kube.builders import container, driver, executor, pod

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


def beside_a_proxy(code: int, **more: Any) -> JSON:
    """An executor whose own container has ended, while a service mesh's runs on."""
    statuses = [
        {"name": "istio-proxy", "state": {"running": {"startedAt": "2026-11-21T10:00:00Z"}}},
        {"name": "spark-kubernetes-executor", "state": {"terminated": {"exitCode": code}}},
    ]
    containers = [container("istio-proxy"), container()]
    return executor(3, node="node-1", containers=containers, status={"containerStatuses": statuses}, **more)


def test_an_executor_failed_when_its_own_container_did_whatever_runs_beside_it() -> None:
    (found,) = reported(beside_a_proxy(52))
    assert (found.application, found.executor) == (OURS, 3)
    assert Failures().after(read(beside_a_proxy(52))).counts() == {OURS: 1}


NO_FAILURES = [
    pytest.param(beside_a_proxy(0), id="ended well, and its proxy runs"),
    pytest.param(beside_a_proxy(143, leaving=True), id="was deleted, and its proxy runs"),
    pytest.param(executor(1, node="node-1"), id="runs"),
    pytest.param(executor(1, phase="Succeeded"), id="ended well"),
    pytest.param(executor(1, phase="Failed", leaving=True), id="was deleted, which ended it"),
    pytest.param(pod("other", phase="Failed"), id="no executor"),
    *(
        pytest.param(
            executor(1, phase="Failed", labels={"spark-exec-id": number}), id=f"numbered {number or 'nothing'}"
        )
        for number in ("EXECID", "", "-1", "\u0663", "1" * 63)
    ),
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
    known = Failures().after((), reported(FAILED), {OURS: Failed(frozenset({7}), earlier=2)})
    assert known.after(read(left)).counts() == {}
    assert Failures().after(read(left), recalled={OURS: Failed(frozenset({7}))}).counts() == {}


def test_what_failed_before_its_application_was_listed_is_kept_for_the_next_look() -> None:
    known = Failures().after((), reported(FAILED))
    assert known.after(read(ALIVE)).counts() == {OURS: 1}


def test_of_too_many_failures_the_first_ones_are_known_by_their_number_only() -> None:
    many = [Failure(OURS, number) for number in range(1, 3001)]
    known = Failures().after(read(ALIVE), many)
    assert (known.counts(), len(known.applications[OURS].latest)) == ({OURS: 3000}, 1000)
    again = known.after(read(ALIVE), [*many, Failure(OURS, 3001)])
    assert (again.counts(), len(again.applications[OURS].latest)) == ({OURS: 3001}, 1000)


def test_reports_are_taken_once_in_their_order() -> None:
    reports = FailureReports()
    for number in (2, 1):
        reports.put(Failure(OURS, number))
    assert [each.executor for each in reports.take()] == [2, 1]
    assert reports.take() == []


def test_a_standby_that_takes_none_keeps_a_bounded_number() -> None:
    reports = FailureReports()
    for number in range(20_005):
        reports.put(Failure(OURS, number))
    assert [each.executor for each in reports.take()] == list(range(5, 20_005))


# What a new leader makes of it


def policy(*failures: JSON, team: str = "a") -> BalancingPolicy:
    return BalancingPolicy.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": team},
            "spec": {"namespaceSelector": {"matchLabels": {"team": team}}},
            "status": {"failures": list(failures)},
        }
    )


TEAMS = {"analytics": {"team": "a"}, "other": {"team": "b"}}


def told(failures: Mapping[Application, Failed]) -> dict[Application, Failed]:
    """What the next process reads from a status with these."""
    entries = [each.to_dict() for each in failures_status(failures)]
    return recalled_failures([policy(*entries, team="a"), policy(*entries, team="b")], TEAMS)


def counted(before: Collection[int], after: Collection[int]) -> int:
    """Those that one leader saw and wrote, joined by those that the next leader saw."""
    first = Failures().after(read(ALIVE), [Failure(OURS, number) for number in before])
    second = Failures().after(read(ALIVE), [Failure(OURS, number) for number in after], told(first.applications))
    assert second.after(read(ALIVE), recalled=told(first.applications)) == second, "told twice"
    assert second.after(read(ALIVE), recalled=told(second.applications)) == second, "told by itself"
    return second.counts()[OURS]


ids = st.sets(st.integers(0, 60), max_size=25)


@given(ids, ids)
def test_a_new_leader_counts_everybody_once_whoever_of_the_two_saw_them_fail(before: set[int], after: set[int]) -> None:
    assert counted(before, after) == len(before | after)


@pytest.mark.parametrize(
    ("after", "count"),
    [((), 100), (range(90, 101), 100), (range(1, 101), 100), (range(90, 104), 103), (range(1, 104), 103)],
)
def test_of_more_than_a_status_names_none_is_counted_twice(after: Collection[int], count: int) -> None:
    assert counted(range(1, 101), after) == count


def test_a_policy_tells_only_of_the_namespaces_that_it_selects() -> None:
    entry = {"application": "spark-1", "count": 9}
    ours, theirs, gone = ({**entry, "namespace": name} for name in ("analytics", "other", "gone"))
    assert recalled_failures([policy(ours, theirs, gone)], TEAMS) == {OURS: Failed(earlier=9)}


def test_a_count_below_the_executors_that_it_names_is_put_right() -> None:
    entry = {"namespace": "analytics", "application": "spark-1", "count": 1, "executors": [1, 2, 2]}
    assert recalled_failures([policy(entry)], TEAMS)[OURS].count == 2


def test_what_two_policies_tell_of_one_application_is_counted_once() -> None:
    entry = {"namespace": "analytics", "application": "spark-1"}
    policies = [policy({**entry, "count": 2, "executors": [1, 2]}), policy({**entry, "count": 2, "executors": [2, 3]})]
    assert recalled_failures(policies, TEAMS)[OURS] == Failed(frozenset({1, 2, 3}))


def test_a_status_holds_whatever_was_counted() -> None:
    (entry,) = failures_status({OURS: Failed(frozenset(range(2**31 - 30, 2**31)), earlier=2_000_000)})
    assert (entry.count, len(entry.executors), max(entry.executors)) == (1_000_000, 25, 2**31 - 1)
