"""The running operator next to the real Kueue and the real YuniKorn, on a control plane of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ballast.kube import names
from ballast.kube.kinds import BALANCING_POLICY, POD
from benchmarks.compared.kueue import QUEUE, Queue, kueue
from tests.cluster.chart.installation import Installation, installation
from tests.cluster.controller.pool import ENFORCE, POOL_LABEL, ZONE_LABEL, Pool, gates_of, pool, required_labels, zones
from tests.cluster.controller.process import leader_of
from tests.cluster.controller.yunikorn import yunikorn
from tests.testbed.fixtures import SESSION_SECONDS
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import stays, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

QUEUED = {"kueue.x-k8s.io/queue-name": QUEUE}
KUEUES = ["kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"]
FOREIGN = "example.com/quota"
PROFILE = "optimize-utilization"
"""Of kube-scheduler, by the name that GKE gives its own."""


@pytest.fixture(scope="module")
def apart() -> Iterator[Installation]:
    """The chart on a control plane that keeps the webhooks and kinds of Kueue to itself."""
    testbed = Testbed(progress=print)
    profiles = [{"schedulerName": name} for name in ("default-scheduler", PROFILE)]
    with (
        testbed.up(
            kubelet=False,
            prometheus=False,
            kwok=True,
            node_grace_seconds=SESSION_SECONDS,
            scheduler_profiles=profiles,
        ) as plane,
        installation(plane) as found,
    ):
        yield found


def test_what_kueue_admits_is_placed_within_what_it_wrote_and_the_rest_waits(
    apart: Installation, tmp_path: Path
) -> None:
    """Of a flavor without a topology: Kueue gives these pods both of its gates all the same."""
    space = "kueue-plain"
    nodes = {POOL_LABEL: space, ZONE_LABEL: "b"}
    queue = Queue(space, cores="2", nodes=nodes, by_topology=False)
    with (
        pool(apart.testbed, space, zones()) as mine,
        leader_of(apart, tmp_path),
        kueue(apart.testbed, tmp_path, namespace=space, queue=queue),
    ):
        mine.policy()
        mine.await_gating()
        pods = mine.executors(3, gates=(), labels=QUEUED)
        assert all("kueue.x-k8s.io/managed" in mine.pod(name)["metadata"]["finalizers"] for name in pods)
        admitted = wait_until(lambda: _released(mine, pods, 2), what="two executors are placed", timeout_seconds=60)
        (waiting,) = set(pods) - set(admitted)
        assert all(node.startswith("b") for node in mine.nodes_of(admitted))
        assert all(required_labels(mine.pod(name))[ZONE_LABEL] == ["b"] for name in admitted)
        both = {*KUEUES, names.GATE}
        stays(lambda: set(gates_of(mine.pod(waiting))) == both, what="the third waits for quota", seconds=12.0)
        # Its quota is free again.
        mine.delete(POD, admitted[0])
        assert all(node.startswith("b") for node in mine.nodes_of([waiting]))
        assert required_labels(mine.pod(waiting))[ZONE_LABEL] == ["b"]
        for name in {*pods} - {admitted[0]}:
            mine.delete(POD, name)
        wait_until(lambda: not mine.pods(), what="Kueue lets go of its pods", timeout_seconds=60)


def test_executors_of_a_profile_of_kube_scheduler_that_the_policy_names_are_placed(
    apart: Installation, tmp_path: Path
) -> None:
    with pool(apart.testbed, "profile", zones()) as mine, leader_of(apart, tmp_path):
        mine.policy(placement={**ENFORCE, "schedulerNames": ["default-scheduler", PROFILE]})
        wait_until(lambda: _gates(mine, PROFILE), what="executors of the profile are gated")
        pods = mine.executors(2, gates=(), schedulerName=PROFILE)
        placed = mine.nodes_of(pods)
        (zone,) = {required_labels(mine.pod(name))[ZONE_LABEL][0] for name in pods}
        assert all(node.startswith(zone) for node in placed)


def test_yunikorn_binds_executors_where_ballast_requires(apart: Installation, tmp_path: Path) -> None:
    placement = {**ENFORCE, "schedulerNames": ["default-scheduler", "yunikorn"]}
    with (
        pool(apart.testbed, "by-yunikorn", zones()) as mine,
        leader_of(apart, tmp_path) as leader,
        yunikorn(apart.testbed, tmp_path) as scheduler,
    ):
        mine.policy(placement=placement)
        wait_until(lambda: _gates(mine, "yunikorn"), what="executors of YuniKorn are gated")
        waiting = mine.executors(3, gates=[{"name": FOREIGN}], schedulerName="yunikorn")
        held = {FOREIGN, names.GATE}
        stays(lambda: all(set(gates_of(mine.pod(name))) == held for name in waiting), what="they wait", seconds=3.0)
        for name in waiting:
            gates = gates_of(mine.pod(name))
            gone = [{"op": "remove", "path": f"/spec/schedulingGates/{gates.index(FOREIGN)}"}]
            mine.admin.patch(POD, name, gone, namespace=mine.name)
        placed = mine.nodes_of(waiting)
        (zone,) = {required_labels(mine.pod(name))[ZONE_LABEL][0] for name in waiting}
        assert all(node.startswith(zone) for node in placed)
        # Its gang is refused, with the cause where everything reads it.
        task_group = {"yunikorn.apache.org/task-group-name": "workers"}
        (member,) = mine.executors(1, first=9, gates=(), annotations=task_group, schedulerName="yunikorn")
        mine.await_released([member])
        assert required_labels(mine.pod(member)) == {}
        wait_until(
            lambda: leader.metric(f'ballast_unplaced_executors{{cause="Gang",policy="{mine.name}"}}') == 1.0,
            what="the metric counts it",
        )
        condition = wait_until(lambda: _not_placed(mine), what="the condition says so")
        assert "annotation yunikorn.apache.org/task-group-name: workers" in condition
        assert scheduler.poll() is None, (tmp_path / "yunikorn.log").read_text()[-4000:]


def _released(mine: Pool, pods: list[str], count: int) -> list[str] | None:
    found = [name for name in pods if not gates_of(mine.pod(name))]
    return found if len(found) == count else None


def _gates(mine: Pool, scheduler: str) -> bool:
    probe = mine.executor(1, application="probe", gates=(), dry=True, schedulerName=scheduler)
    return names.GATE in gates_of(probe)


def _not_placed(mine: Pool) -> str | None:
    found = mine.condition(BALANCING_POLICY, "ExecutorsPlaced")
    return found["message"] if found is not None and "Gang" in found["message"] else None
