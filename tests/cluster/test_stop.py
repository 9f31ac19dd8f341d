"""`kubectl ballast stop` stops all that a policy does, on the real API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from ballast.kube import names
from ballast.kube.kinds import BALANCING_POLICY
from tests.cluster.chart.installation import Installation
from tests.cluster.controller.pool import gates_of, pool, required_labels, zones
from tests.cluster.controller.process import leader_of
from tests.testbed.waiting import wait_until
from tests.unit.cli.program import run

pytestmark = pytest.mark.cluster


def test_a_stopped_policy_gates_and_places_nothing_and_a_started_one_does_again(
    installed: Installation, tmp_path: Path
) -> None:
    plane = installed.testbed
    with pool(plane, "stop", zones()) as mine, leader_of(installed, tmp_path):
        mine.policy(placement={"mode": "Enforce", "debounce": "10s", "gateTimeout": "10s"})
        mine.await_gating()
        gated = mine.executors(2, gates=())
        assert all(mine.gated(name) for name in gated)
        asked = ("--policy", mine.name, "--kubeconfig", str(plane.kubeconfig))
        assert run("stop", *asked).out == f"BalancingPolicy {mine.name} is stopped\n"
        assert mine.await_released(gated) < 6.0, "well before their gate timeout"
        assert not any(required_labels(mine.pod(name)) for name in gated)
        ungated = wait_until(
            lambda: names.GATE not in gates_of(mine.executor(9, gates=(), dry=True)), what="nothing is gated"
        )
        assert ungated
        assert wait_until(lambda: mine.condition(BALANCING_POLICY, "Stopped"), what="a condition")["status"] == "True"
        assert "is stopped, so it gates, places and moves nothing" in run("status", *asked).out
        assert run("start", *asked).out == f"BalancingPolicy {mine.name} is started\n"
        mine.await_gating()
        wait_until(lambda: mine.condition(BALANCING_POLICY, "Stopped") is None, what="no condition")
