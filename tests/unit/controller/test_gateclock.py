from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from ballast.controller.gateclock import GateClock, StaleGates
from ballast.kube.actions import Deleted, Released
from ballast.kube.pods import Pod, PodReader
from ballast.model import Reason
from ballast.tenancy.lane import LATE_SECONDS
from tests.apiserver import Answer, ApiServer, Asked, scripted
from tests.unit.kube.builders import CREATED, CREATED_AT, GATE, driver, executor

FOREIGN = {"name": "kueue.x-k8s.io/admission"}
UID = "uid-spark-1-exec-1"
AS_IT_IS = Released(reason=Reason.GATE_TIMEOUT)
QUOTA = {"name": "example.com/quota"}


def gated(*others: dict[str, Any]) -> list[Pod]:
    return [PodReader().read(executor(gates=[*others, GATE]))]


def test_a_pod_with_our_gate_alone_has_waited_since_its_creation() -> None:
    assert GateClock().after(gated(), CREATED_AT + 50).alone_since == {UID: CREATED_AT}


@pytest.mark.parametrize(("read", "since"), [(0.0, 0.0), (0.6, 0.6), (50.0, 1.0)])
def test_a_pod_is_first_read_within_the_second_of_its_stamp_and_has_waited_since_its_creation(
    read: float, since: float
) -> None:
    clock = GateClock(created_within_seconds=1.0).after(gated(), CREATED_AT + read)
    assert (clock.alone_since, clock.first_read) == ({UID: CREATED_AT}, {UID: CREATED_AT + since})
    clock = clock.after(gated(), CREATED_AT + 60)
    assert (clock.alone_since, clock.first_read) == ({UID: CREATED_AT}, {UID: CREATED_AT + since})


def test_a_pod_is_first_read_when_ours_is_its_only_gate() -> None:
    clock = GateClock(created_within_seconds=1.0).after(gated(FOREIGN), CREATED_AT + 50)
    assert clock.first_read == {}
    assert clock.after(gated(), CREATED_AT + 60).first_read == {UID: CREATED_AT + 60}


def test_a_gate_whose_owner_waits_for_all_others_is_not_waited_for() -> None:
    """Volcano's: both would wait for good."""
    volcanos = {"name": "scheduling.volcano.sh/queue-allocation-gate"}
    assert GateClock().after(gated(volcanos), CREATED_AT + 50).alone_since == {UID: CREATED_AT}
    assert GateClock().after(gated(volcanos, FOREIGN), CREATED_AT + 50).alone_since == {UID: None}


def test_the_clock_stands_while_another_gate_is_there() -> None:
    assert GateClock().after(gated(FOREIGN), CREATED_AT + 50).alone_since == {UID: None}


def test_the_clock_starts_at_the_first_look_without_the_other_gate_and_then_stays() -> None:
    clock = GateClock().after(gated(FOREIGN), CREATED_AT + 50).after(gated(), CREATED_AT + 60)
    assert clock.alone_since == {UID: CREATED_AT + 60}
    assert clock.after(gated(), CREATED_AT + 70).alone_since == {UID: CREATED_AT + 60}


def test_nobody_waits_until_a_clock_that_is_behind_has_caught_up() -> None:
    clock = GateClock().after(gated(), CREATED_AT - 50)
    assert clock.alone_since == {UID: CREATED_AT - 50}
    assert clock.after(gated(), CREATED_AT - 40).alone_since == {UID: CREATED_AT - 50}
    assert clock.after(gated(), CREATED_AT - 3600).alone_since == {UID: CREATED_AT - 3600}


def test_the_clock_forgets_pods_that_are_not_gated_any_more() -> None:
    released = [PodReader().read(executor())]
    assert GateClock().after(gated(), CREATED_AT).after(released, CREATED_AT + 1).alone_since == {}


@pytest.mark.parametrize(
    ("gates", "leaving", "alone"),
    [((GATE,), False, True), ((FOREIGN, GATE), False, False), ((GATE,), True, False), ((), False, False)],
    ids=["our gate alone", "another gate, too", "a pod that is leaving", "no gate"],
)
def test_a_pod_waits_for_ballast_alone_unless_something_else_keeps_it(
    gates: tuple[dict[str, Any], ...], leaving: bool, alone: bool
) -> None:
    pod = executor(gates=list(gates))
    if leaving:
        pod["metadata"] |= {"deletionTimestamp": CREATED, "deletionGracePeriodSeconds": 30}
    pods = [PodReader().read(pod)]
    assert GateClock().after(pods, CREATED_AT).holds_alone(pods) is alone


def stale_gates(script: ApiServer, folder: Path, *, waited_seconds: float) -> StaleGates:
    return StaleGates(script.client(folder), clock=lambda: CREATED_AT + waited_seconds)


def listed(*pods: dict[str, Any]) -> Answer:
    return Answer(body={"metadata": {}, "items": list(pods)})


@pytest.mark.parametrize(("waited_seconds", "released"), [(11.0, 0), (12.0, 1)])
def test_executors_are_released_once_they_have_waited_too_long(
    tmp_path: Path, waited_seconds: float, released: int
) -> None:
    with scripted(listed(executor(gates=[GATE])), Answer()) as script:
        gates = stale_gates(script, tmp_path, waited_seconds=waited_seconds)
        assert list(gates.release(older_than_seconds=11.5, replace=True).values()) == [AS_IT_IS] * released
        assert len(script.writes) == released


def test_whom_others_hold_too_has_not_waited_for_us(tmp_path: Path) -> None:
    with scripted(listed(executor(gates=[QUOTA, GATE])), Answer()) as script:
        assert stale_gates(script, tmp_path, waited_seconds=60).release(older_than_seconds=0.0, replace=True) == {}


def test_whoever_is_no_executor_does_not_wait_at_all(tmp_path: Path) -> None:
    with scripted(listed(driver(node=None, gates=[GATE])), Answer()) as script:
        found = stale_gates(script, tmp_path, waited_seconds=0).release(older_than_seconds=11.5, replace=True)
        assert found == {"analytics/spark-1-driver": AS_IT_IS}


def test_all_means_also_those_whom_others_hold_but_not_their_gates(tmp_path: Path) -> None:
    with scripted(listed(executor(gates=[QUOTA, GATE])), Answer()) as script:
        assert stale_gates(script, tmp_path, waited_seconds=0).release_all(replace=True) == {
            "analytics/spark-1-exec-1": AS_IT_IS
        }
        assert script.writes[0].body[-1] == {"op": "remove", "path": "/spec/schedulingGates/1"}


@pytest.mark.parametrize(
    ("labels", "of_namespace", "deletions"),
    [
        ({}, Answer(body={"metadata": {"name": "analytics", "labels": {"ballast.dev/gate": "enabled"}}}), 1),
        ({"ballast.dev/topology": "clicks"}, Answer(404, {"message": "no such namespace"}), 1),
        ({}, Answer(body={"metadata": {"name": "analytics"}}), 0),
        ({}, Answer(403, {"message": "no"}), 0),
    ],
    ids=["opted in by its namespace", "opted in by its own label", "not opted in", "the namespace can't be read"],
)
def test_of_executors_whose_release_is_refused_only_those_that_opted_in_are_deleted(
    tmp_path: Path, labels: dict[str, str], of_namespace: Answer, deletions: int
) -> None:
    """An administrator who runs `ballast release --all` has rights that no fence limits."""
    pod = executor(gates=[GATE], labels=labels)

    def answer(asked: Asked) -> Answer:
        path = asked.path.split("?")[0]
        if asked.method == "PATCH":
            return Answer(400, {"message": 'admission webhook "no.example" denied the request: no'})
        if path.endswith("/namespaces/analytics"):
            return of_namespace
        return Answer(body=pod) if path.endswith(pod["metadata"]["name"]) else listed(pod)

    with scripted() as script:
        script.by = answer
        client = script.client(tmp_path)
        rest = lambda found: dict.fromkeys(found, CREATED_AT)  # noqa: E731
        gates = StaleGates(client, clock=lambda: CREATED_AT, rest=rest)
        gates.release_all(replace=False)
        assert not [asked for asked in script.writes if asked.method == "DELETE"], (
            "after a first refusal none is deleted"
        )
        gates.release_all(replace=True)
    assert len([asked for asked in script.writes if asked.method == "DELETE"]) == deletions


def test_a_deletion_that_takes_long_is_waited_for(tmp_path: Path) -> None:
    """`ballast release --all` ends with it, and would tell of an executor that is still gated."""
    pod = executor(gates=[GATE], labels={"ballast.dev/topology": "clicks"})

    def answer(asked: Asked) -> Answer:
        if asked.method == "PATCH":
            return Answer(400, {"message": 'admission webhook "no.example" denied the request: no'})
        if asked.method == "DELETE":
            threading.Event().wait(LATE_SECONDS + 0.5)
        return Answer(body=pod) if asked.path.split("?")[0].endswith(pod["metadata"]["name"]) else listed(pod)

    with scripted() as script:
        script.by = answer
        rest = lambda found: dict.fromkeys(found, CREATED_AT)  # noqa: E731
        gates = StaleGates(script.client(tmp_path), clock=lambda: CREATED_AT, rest=rest)
        assert gates.release_all(replace=True) == {"analytics/spark-1-exec-1": Deleted()}


def test_who_is_on_its_way_out_is_not_touched(tmp_path: Path) -> None:
    with scripted(listed(executor(gates=[GATE], leaving=True)), Answer()) as script:
        assert stale_gates(script, tmp_path, waited_seconds=60).release_all(replace=True) == {}
