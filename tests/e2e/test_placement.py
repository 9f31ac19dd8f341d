"""Real executors, opted in by each of the three ways and out again, and where Ballast lets them run."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from examples.demo.installation import await_gating
from examples.demo.streaming.running import RunningJob
from tests.e2e.cluster import Cluster, Json, place_of, zones_of
from tests.e2e.conftest import STEADY_NAMESPACE, TOPOLOGY, SpawnJob

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

ZONE = "topology.kubernetes.io/zone"
GATE = "ballast.dev/gate"


@dataclass(frozen=True, slots=True)
class Choices:
    """The executor of each job of one executor, by how the job opted in or out."""

    by_namespace: Json
    by_label: Json
    out: Json
    never_in: Json


@pytest.fixture(scope="module")
def choices(cluster: Cluster, spawn: SpawnJob) -> Choices:
    cluster.testbed.create_namespace("opted-in", labels={GATE: "enabled"})
    cluster.testbed.create_namespace("elsewhere")
    await_gating(cluster.testbed, "opted-in", labels={})

    def one(name: str, namespace: str, labels: dict[str, str]) -> RunningJob:
        return spawn(cluster.job(name, namespace, executors=1, executor_labels=labels))

    jobs = [
        one("whole", "opted-in", {}),
        one("labeled", "elsewhere", {"ballast.dev/topology": "reports"}),
        one("excused", "opted-in", {GATE: "disabled"}),
        one("stranger", "elsewhere", {}),
    ]
    placed = [job.await_placed(1)[0].document for job in jobs]
    for job in jobs:
        job.abandon()
    return Choices(*placed)


def test_a_real_job_is_placed_in_one_zone_on_a_node_for_each_executor(cluster: Cluster, steady: RunningJob) -> None:
    executors = steady.running_executors()
    assert len(executors) == 3
    assert len(zones_of(steady)) == 1
    assert len({executor.node for executor in executors}) == 3

    def ratio() -> object:
        locality = cluster.topology(STEADY_NAMESPACE, TOPOLOGY).get("status", {}).get("locality") or {}
        return locality.get("crossZoneRatio") == 0

    cluster.await_(ratio, "its topology's status says that nothing crosses zones", timeout_seconds=75)


def test_executors_go_where_their_driver_is(steady: RunningJob) -> None:
    assert zones_of(steady) == {"zone-b"}


@pytest.mark.parametrize("how", ["by_namespace", "by_label"])
def test_an_executor_that_opted_in_is_placed(choices: Choices, how: str) -> None:
    assert place_of(getattr(choices, how))[ZONE] == ["zone-b"]


@pytest.mark.parametrize("how", ["out", "never_in"])
def test_an_executor_that_did_not_is_left_to_kube_scheduler(choices: Choices, how: str) -> None:
    assert place_of(getattr(choices, how)) == {}
