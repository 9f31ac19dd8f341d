from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ballast.controller.ungated import NOTICED_SECONDS, Ungated
from ballast.kube.pods import PodReader
from tests.unit.kube.builders import CREATED_AT, GATE, executor

ENABLED = {"analytics": {"ballast.dev/gate": "enabled"}}
PLAIN: Mapping[str, Mapping[str, str]] = {"analytics": {}}
SCHEDULERS = frozenset({"default-scheduler", "optimize-utilization"})
LONG_AGO = CREATED_AT - NOTICED_SECONDS


def found(
    *,
    namespaces: Mapping[str, Mapping[str, str]] = ENABLED,
    on_since: float = LONG_AGO,
    seen_at: float = CREATED_AT + 1.0,
    on: bool = True,
    **pod: Any,
) -> tuple[str, ...]:
    """After a look before the executor was created, and one when it was first seen."""
    ungated = Ungated()
    ungated.look((), namespaces, gates=lambda _: SCHEDULERS if on else frozenset(), now=on_since)
    pods = [PodReader().read(executor(1, **pod))]
    return ungated.look(pods, namespaces, gates=lambda _: SCHEDULERS if on else frozenset(), now=seen_at)


def test_an_executor_that_was_meant_to_be_gated_and_is_not_is_found() -> None:
    assert found() == ("analytics/spark-1-exec-1",)
    assert found(schedulerName="optimize-utilization") == ("analytics/spark-1-exec-1",)
    assert found(namespaces=PLAIN, labels={"ballast.dev/topology": "clicks"}) == ("analytics/spark-1-exec-1",)


@pytest.mark.parametrize(
    "case",
    [
        {"gates": [GATE]},
        {"namespaces": PLAIN},
        {"on": False},
        {"on_since": CREATED_AT - 1.0},
        {"seen_at": CREATED_AT + NOTICED_SECONDS + 1.0},
        {"labels": {"ballast.dev/gate": "disabled"}},
        {"schedulerName": "another"},
    ],
    ids=[
        "gated",
        "not opted in",
        "off",
        "only just on",
        "it may have been released meanwhile",
        "opted out",
        "of a scheduler that is not gated",
    ],
)
def test_others_are_not(case: Mapping[str, Any]) -> None:
    assert found(**case) == ()


def test_executors_that_were_there_before_this_replica_led_are_not_judged() -> None:
    pods = [PodReader().read(executor(1))]
    assert Ungated().look(pods, ENABLED, gates=lambda _: SCHEDULERS, now=CREATED_AT + 1.0) == ()


def test_one_that_was_released_is_not_taken_for_one() -> None:
    ungated, reader = Ungated(), PodReader()
    ungated.look((), ENABLED, gates=lambda _: SCHEDULERS, now=LONG_AGO)
    for gates in ([GATE], []):
        pods = [reader.read(executor(1, gates=gates))]
        assert ungated.look(pods, ENABLED, gates=lambda _: SCHEDULERS, now=CREATED_AT + 1.0) == ()


def test_it_counts_as_long_as_its_pod_exists() -> None:
    ungated, pods = Ungated(), [PodReader().read(executor(1))]
    ungated.look((), ENABLED, gates=lambda _: SCHEDULERS, now=LONG_AGO)
    counts = [
        len(ungated.look(seen, ENABLED, gates=lambda _: SCHEDULERS, now=CREATED_AT + at))
        for seen, at in ((pods, 1.0), (pods, 60.0), ([], 61.0))
    ]
    assert counts == [1, 1, 0]


def test_it_counts_only_while_executors_are_gated_in_its_namespace() -> None:
    ungated, pods = Ungated(), [PodReader().read(executor(1))]
    ungated.look((), ENABLED, gates=lambda _: SCHEDULERS, now=LONG_AGO)
    assert ungated.look(pods, ENABLED, gates=lambda _: SCHEDULERS, now=CREATED_AT + 1.0)
    assert ungated.look(pods, ENABLED, gates=lambda _: frozenset(), now=CREATED_AT + 2.0) == ()


def test_a_scheduler_whose_executors_are_gated_only_now_has_none_that_are_missed() -> None:
    ungated, pods = Ungated(), [PodReader().read(executor(1, schedulerName="optimize-utilization"))]
    ungated.look((), ENABLED, gates=lambda _: frozenset({"default-scheduler"}), now=LONG_AGO)
    assert ungated.look(pods, ENABLED, gates=lambda _: SCHEDULERS, now=CREATED_AT + 1.0) == ()
