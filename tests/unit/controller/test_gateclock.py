from __future__ import annotations

from typing import Any

from ballast.controller.gateclock import GateClock
from ballast.kube.pods import Pod, PodReader
from tests.unit.kube.builders import CREATED_AT, GATE, executor

FOREIGN = {"name": "kueue.x-k8s.io/admission"}
UID = "uid-spark-1-exec-1"


def gated(*others: dict[str, Any]) -> list[Pod]:
    return [PodReader().read(executor(gates=[*others, GATE]))]


def test_a_pod_with_our_gate_alone_has_waited_since_its_creation() -> None:
    assert GateClock().after(gated(), CREATED_AT + 50).alone_since == {UID: CREATED_AT}


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
