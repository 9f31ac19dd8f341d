"""`kubectl ballast stop` stops all that a policy does, on the real API server."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ballast.kube import names
from ballast.kube.kinds import BALANCING_POLICY
from tests.cluster.chart.installation import Installation
from tests.cluster.controller.pool import gates_of, pool, required_labels, zones
from tests.cluster.controller.process import leader_of, replica
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


@pytest.mark.soak
def test_the_last_replica_releases_what_it_has_gated_before_it_ends(
    installed: Installation, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Scaled to zero: 17.7 s passed until the CronJob released them. The aim on a quiet machine is 2 s."""
    plane = installed.testbed
    with pool(plane, "end", zones(4, per_zone=14)) as mine, replica(plane, "leader", tmp_path) as leader:
        leader.await_ready()
        mine.policy(placement={"mode": "Enforce", "debounce": "10s", "gateTimeout": "10s"})
        mine.await_gating()
        mine.executors(200, gates=())
        assert all(names.GATE in gates_of(pod) for pod in mine.pods())
        told_at = time.monotonic()
        leader.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not any(names.GATE in gates_of(pod) for pod in mine.pods()), what="all are released")
        seconds = time.monotonic() - told_at
        assert leader.process.wait(timeout=60) == 0
        record_property("seconds", seconds)
        print(f"200 executors released {seconds:.1f} s after SIGTERM")
