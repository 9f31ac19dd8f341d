from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ballast.controller.stale import StaleGates
from ballast.kube.actions import Released
from ballast.model import Reason
from tests.unit.kube.builders import CREATED_AT, GATE, driver, executor
from tests.unit.kube.scripted import Answer, Scripted, scripted

AS_IT_IS = Released(reason=Reason.GATE_TIMEOUT)
FOREIGN = {"name": "example.com/quota"}


def stale_gates(script: Scripted, folder: Path, *, waited_seconds: float) -> StaleGates:
    return StaleGates(script.client(folder), clock=lambda: CREATED_AT + waited_seconds)


def listed(*pods: dict[str, Any]) -> Answer:
    return Answer(body={"metadata": {}, "items": list(pods)})


@pytest.mark.parametrize(("waited_seconds", "released"), [(11.0, 0), (12.0, 1)])
def test_executors_are_released_once_they_have_waited_too_long(
    tmp_path: Path, waited_seconds: float, released: int
) -> None:
    with scripted(listed(executor(gates=[GATE])), Answer()) as script:
        gates = stale_gates(script, tmp_path, waited_seconds=waited_seconds)
        assert gates.release(older_than_seconds=11.5) == [AS_IT_IS] * released
        assert len(script.writes) == released


def test_whom_others_hold_too_has_not_waited_for_us(tmp_path: Path) -> None:
    with scripted(listed(executor(gates=[FOREIGN, GATE])), Answer()) as script:
        assert stale_gates(script, tmp_path, waited_seconds=60).release(older_than_seconds=0.0) == []


def test_whoever_is_no_executor_does_not_wait_at_all(tmp_path: Path) -> None:
    with scripted(listed(driver(node=None, gates=[GATE])), Answer()) as script:
        assert stale_gates(script, tmp_path, waited_seconds=0).release(older_than_seconds=11.5) == [AS_IT_IS]


def test_all_means_also_those_whom_others_hold_but_not_their_gates(tmp_path: Path) -> None:
    with scripted(listed(executor(gates=[FOREIGN, GATE])), Answer()) as script:
        assert stale_gates(script, tmp_path, waited_seconds=0).release_all() == [AS_IT_IS]
        assert script.writes[0].body[-1] == {"op": "remove", "path": "/spec/schedulingGates/1"}


def test_who_is_on_its_way_out_is_not_touched(tmp_path: Path) -> None:
    with scripted(listed(executor(gates=[GATE], leaving=True)), Answer()) as script:
        assert stale_gates(script, tmp_path, waited_seconds=60).release_all() == []
