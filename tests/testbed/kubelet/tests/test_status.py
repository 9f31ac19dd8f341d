from typing import Any

import pytest

from tests.testbed.kubelet.status import (
    Condition,
    ContainerStatus,
    Running,
    State,
    Terminated,
    Waiting,
    condition_json,
    conditions,
    container_json,
    phase,
)

WAITING, RUNNING = Waiting(), Running(1.0)
DONE, FAILED = Terminated(0, "Completed", 1.0, 2.0), Terminated(3, "Error", 1.0, 2.0)


def main(state: State, **fields: Any) -> ContainerStatus:
    return ContainerStatus("main", "host", state, **fields)


def init(state: State, **fields: Any) -> ContainerStatus:
    return ContainerStatus("init", "host", state, is_init=True, **fields)


@pytest.mark.parametrize(
    ("policy", "containers", "expected"),
    [
        ("Never", [main(WAITING)], "Pending"),
        ("Never", [main(RUNNING)], "Running"),
        ("Never", [main(RUNNING), main(DONE)], "Running"),
        ("Never", [main(RUNNING), main(WAITING)], "Pending"),
        ("Never", [main(DONE), main(DONE)], "Succeeded"),
        ("Never", [main(DONE), main(FAILED)], "Failed"),
        ("OnFailure", [main(FAILED)], "Running"),
        ("OnFailure", [main(DONE)], "Succeeded"),
        ("Always", [main(DONE)], "Running"),
        ("Always", [main(Waiting("CrashLoopBackOff"), last=FAILED)], "Running"),
        ("Never", [init(RUNNING), main(WAITING)], "Pending"),
        ("Never", [init(FAILED), main(WAITING)], "Failed"),
        ("Always", [init(FAILED), main(WAITING)], "Pending"),
        ("Never", [init(DONE), main(DONE)], "Succeeded"),
        ("Never", [init(RUNNING, is_sidecar=True, started=True), main(DONE)], "Running"),
        ("Never", [init(DONE, is_sidecar=True), main(DONE)], "Succeeded"),
    ],
)
def test_the_phase_follows_from_the_containers(policy: str, containers: list[ContainerStatus], expected: str) -> None:
    assert phase(containers, restart_policy=policy) == expected


def held(containers: list[ContainerStatus], phase_now: str, gates: list[bool]) -> set[str]:
    return {c.type for c in conditions(containers, phase_now=phase_now, gates=gates) if c.holds}


STARTED = {"PodReadyToStartContainers", "PodScheduled"}


@pytest.mark.parametrize(
    ("containers", "phase_now", "gates", "expected"),
    [
        ([main(RUNNING, ready=True)], "Running", [], {*STARTED, "Initialized", "ContainersReady", "Ready"}),
        ([main(RUNNING)], "Running", [], {*STARTED, "Initialized"}),
        ([main(RUNNING, ready=True)], "Running", [False], {*STARTED, "Initialized", "ContainersReady"}),
        ([init(RUNNING), main(WAITING)], "Pending", [], STARTED),
        ([main(DONE)], "Succeeded", [], {"PodScheduled", "Initialized"}),
    ],
)
def test_a_pod_is_ready_when_its_containers_and_gates_are(
    containers: list[ContainerStatus], phase_now: str, gates: list[bool], expected: set[str]
) -> None:
    assert held(containers, phase_now, gates) == expected


def test_a_condition_keeps_its_time_until_it_turns() -> None:
    first = condition_json(Condition("Ready", holds=False), None, 0.0)
    same = condition_json(Condition("Ready", holds=False, reason="other"), first, 60.0)
    turned = condition_json(Condition("Ready", holds=True), same, 120.0)
    assert [c["lastTransitionTime"] for c in (first, same, turned)] == [
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:02:00Z",
    ]


def test_an_exit_code_and_its_reason_are_told() -> None:
    told = container_json(main(Terminated(137, "OOMKilled", 1.0, 2.0, signal=9), restarts=2))
    assert told["restartCount"] == 2
    assert told["state"]["terminated"]["exitCode"] == 137
    assert told["state"]["terminated"]["reason"] == "OOMKilled"
    assert told["state"]["terminated"]["signal"] == 9
