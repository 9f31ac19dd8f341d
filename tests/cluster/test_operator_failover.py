"""No pod stays gated when the leader dies, hangs or stops."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ballast.kube import names
from ballast.kube.kinds import BALANCING_POLICY, POD
from tests.cluster.chart.installation import Installation
from tests.cluster.controller.pool import Pool, gates_of, pool, required_labels, zones
from tests.cluster.controller.process import Replica, replica, switch
from tests.faults.invariants import watched
from tests.testbed.nodes import ZONE_LABEL
from tests.testbed.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

JSON = dict[str, Any]

LEASE_SECONDS = 6.0
GATE_TIMEOUT_SECONDS = 10.0
HOLD = {"mode": "Enforce", "debounce": "10s", "gateTimeout": "10s"}
"""As long as a policy may hold a set."""


def test_a_dead_leader_is_followed(installed: Installation, tmp_path: Path) -> None:
    plane = installed.testbed
    with (
        pool(plane, "failover", zones()) as mine,
        replica(plane, "first", tmp_path) as first,
        replica(plane, "second", tmp_path) as second,
    ):
        mine.policy(placement=HOLD)
        leader, standby = _roles(first, second)
        wait_until(lambda: switch(installed)["gating"], what="the leader turns the switch on")
        with watched(plane, mine.name):
            _the_standby_takes_over(mine, leader, standby)


def _roles(*replicas: Replica) -> tuple[Replica, Replica]:
    for each in replicas:
        each.await_ready()
    wait_until(lambda: any(each.leads() for each in replicas), what="somebody leads")
    leading = [each for each in replicas if each.leads()]
    assert len(leading) == 1, "both lead"
    (standby,) = (each for each in replicas if each is not leading[0])
    return leading[0], standby


def _the_standby_takes_over(mine: Pool, leader: Replica, standby: Replica) -> None:
    held = mine.executors(2, gates=())
    created = time.monotonic()
    assert all(mine.gated(name) for name in held)
    leader.kill()
    wait_until(standby.leads, what="the standby takes over", timeout_seconds=2 * LEASE_SECONDS)
    left = GATE_TIMEOUT_SECONDS + 5.0 - (time.monotonic() - created)
    mine.await_released(held, seconds=left)
    assert mine.nodes_of(held).total() == 2


def test_the_last_replica_leaves_no_executor_gated_when_it_stops(installed: Installation, tmp_path: Path) -> None:
    """As by `kubectl scale --replicas=0`, or by the drain of the one node that all replicas run on."""
    plane = installed.testbed
    with pool(plane, "scaled", zones(per_zone=4, cpu="64")) as mine:
        mine.policy(placement={**HOLD, "maxExecutorsPerNodePercent": 100})
        with replica(plane, "last", tmp_path) as last:
            _leads(last)
            mine.await_gating()
            with ThreadPoolExecutor(16) as threads:
                list(threads.map(lambda number: mine.executor(number, gates=(), cpu="100m"), range(50)))
            assert last.stop() == 0
        assert "stopping: " in last.log.read_text(), "some were gated"
        assert not any(names.GATE in gates_of(pod) for pod in mine.pods())
        assert not switch(installed)["gating"]


FAILING = "spark-failing"


def test_a_new_leader_goes_on_counting_the_executors_that_failed(installed: Installation, tmp_path: Path) -> None:
    """No replica was there before: what the first one saw is known to the second one by status alone."""
    plane = installed.testbed
    with pool(plane, "failing", zones(1)) as mine:
        mine.topology("clicks", {"name": "ingest", "workload": "Streaming", "executors": 2})
        mine.policy(placement=HOLD)
        _, *doomed = (_running(mine, number) for number in range(2, 6))
        with replica(plane, "first", tmp_path) as first:
            _leads(first)
            _fails_and_is_gone(mine, doomed[0])
            wait_until(lambda: _failed(mine) == (1, [3]), what="the first failure is in status", timeout_seconds=20.0)
            _fails_and_is_gone(mine, doomed[1])
            wait_until(lambda: _failed(mine) == (2, [3, 4]), what="the second one is", timeout_seconds=20.0)
            first.kill()
        with replica(plane, "second", tmp_path) as second:
            _leads(second)
            _fails_and_is_gone(mine, doomed[2])
            wait_until(lambda: _failed(mine) == (3, [3, 4, 5]), what="the third one counts, too", timeout_seconds=20.0)
            second.stop()


def _running(mine: Pool, number: int) -> JSON:
    labels = {names.TOPOLOGY: "clicks"}
    node = mine.node("a1" if number % 2 else "a2")
    (name,) = mine.executors(1, first=number, application=FAILING, labels=labels, gates=(), nodeName=node)
    mine.nodes_of([name])
    return mine.pod(name)


def _leads(one: Replica) -> None:
    one.await_ready()
    wait_until(one.leads, what=f"{one.identity} leads", timeout_seconds=3 * LEASE_SECONDS)


def _fails_and_is_gone(mine: Pool, pod: JSON) -> None:
    """As Spark has it: it deletes a failed executor's pod at once."""
    name = pod["metadata"]["name"]
    mine.admin.patch(POD, name, {"status": {"phase": "Failed"}}, namespace=mine.name, subresource="status")
    mine.delete(POD, name)


def _failed(mine: Pool) -> tuple[int, list[int]] | None:
    """How many and which, as the policy's status has it."""
    told = (mine.read(BALANCING_POLICY).get("status") or {}).get("failures") or ()
    return next(((entry["count"], entry["executors"]) for entry in told if entry["application"] == FAILING), None)


def test_while_the_leader_hangs_and_keeps_its_lease_the_standby_releases_each_set_into_one_zone(
    installed: Installation, tmp_path: Path
) -> None:
    plane, lasting = installed.testbed, 120
    with (
        pool(plane, "hung", zones()) as mine,
        replica(plane, "first", tmp_path, lease_seconds=lasting) as first,
        replica(plane, "second", tmp_path, lease_seconds=lasting) as second,
        watched(plane, mine.name),
    ):
        mine.policy(placement=HOLD)
        leader, standby = _roles(first, second)
        wait_until(lambda: switch(installed)["gating"], what="the leader turns the switch on")
        leader.process.send_signal(signal.SIGSTOP)
        try:
            held = mine.executors(2, gates=())
            assert all(mine.gated(name) for name in held)
            mine.await_released(held, seconds=GATE_TIMEOUT_SECONDS + 5.0)
            assert not standby.leads()
            first_required, second_required = (required_labels(mine.pod(name)) for name in held)
            assert first_required.keys() == {ZONE_LABEL}
            assert first_required == second_required
            assert mine.nodes_of(held).total() == 2
        finally:
            # No other replica could lead before the lease is over, so it is given back.
            leader.process.send_signal(signal.SIGCONT)
            standby.stop()
            leader.stop()


def test_a_leader_that_wakes_up_late_finds_that_another_leads(installed: Installation, tmp_path: Path) -> None:
    plane = installed.testbed
    with replica(plane, "first", tmp_path) as first, replica(plane, "second", tmp_path) as second:
        sleeper, standby = _roles(first, second)
        sleeper.process.send_signal(signal.SIGSTOP)
        wait_until(standby.leads, what="the standby takes over", timeout_seconds=2 * LEASE_SECONDS)
        sleeper.process.send_signal(signal.SIGCONT)
        wait_until(lambda: not sleeper.leads(), what="the sleeper knows that it leads no more", timeout_seconds=3.0)
        assert standby.leads()


def test_a_clean_stop_turns_the_switch_off_and_leaves_the_lease_to_others(
    installed: Installation, tmp_path: Path
) -> None:
    plane = installed.testbed
    with pool(plane, "stop", zones(1)) as mine, replica(plane, "first", tmp_path) as first:
        mine.policy(placement=HOLD)
        first.await_ready()
        wait_until(lambda: switch(installed)["gating"], what="the leader turns the switch on")
        assert first.stop() == 0
        assert not switch(installed)["gating"]
        with replica(plane, "second", tmp_path) as second:
            second.await_ready()
            wait_until(second.leads, what="the next one leads", timeout_seconds=3.0)
            wait_until(lambda: switch(installed)["gating"], what="the switch is on again")
            second.stop()
