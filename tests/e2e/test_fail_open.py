"""Ballast killed: in the middle of a move, and wholly. Nothing stays half done, and no pod stays held."""

from __future__ import annotations

import time
from typing import Any

import pytest

from examples.demo.installation import NAMESPACE, RELEASE, await_gating, upgrade
from examples.demo.streaming.running import RunningJob
from tests.e2e.cluster import ENDED, Cluster, Json, names_by_node, place_of
from tests.e2e.conftest import STEADY_NAMESPACE

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

LEFT_ALONE_SECONDS = 150.0
"""With everything of ours dead but the CronJob, no executor is held for longer."""
HELD = "held"
WHERE = f"--namespace={NAMESPACE}"


def test_a_move_goes_on_when_every_replica_is_killed_in_its_middle(cluster: Cluster, steady: RunningJob) -> None:
    cluster.come_to_rest(steady)
    before = {executor.uid for executor in steady.running_executors()}
    node = min(names_by_node(steady))
    with cluster.noise(node):
        cluster.enforce(moves={"mode": "Enforce", "budgets": [{"moves": 1, "per": "1h"}]})
        cluster.await_move(STEADY_NAMESPACE, phases=frozenset({"Leaving", "Arriving"}))
        cluster.kill_outright(cluster.operator_pods())
        ended = cluster.await_move(STEADY_NAMESPACE, phases=ENDED)
    steady.await_executors()
    after = {executor.uid for executor in steady.running_executors()}
    assert len(cluster.moves(STEADY_NAMESPACE)) == 1
    assert before - after == {ended["spec"]["executor"]["uid"]}
    assert after - before == {ended["status"]["replacement"]["uid"]}
    assert steady.compared_so_far().agree


def test_an_executor_is_released_by_the_cron_job_when_all_of_ballast_is_gone(cluster: Cluster) -> None:
    cluster.testbed.create_namespace(HELD, labels={"ballast.dev/gate": "enabled"})
    await_gating(cluster.testbed, HELD, labels={})
    let_nobody_replace_the_replicas(cluster)
    created = hold_an_executor(cluster)
    try:
        cluster.await_(
            lambda: not gates(read_executor(cluster)), "the executor is released", timeout_seconds=LEFT_ALONE_SECONDS
        )
        assert time.time() - created < LEFT_ALONE_SECONDS
        assert place_of(read_executor(cluster)) == {}
        cluster.await_(lambda: not gating(cluster), "the switch is off, so that the next one is not held at all")
    finally:
        # As an executor that runs, later tests would count it.
        cluster.testbed.kubectl("delete", "pod", "waiting-exec-1", f"--namespace={HELD}", "--wait=true")
        upgrade(cluster.testbed)


def let_nobody_replace_the_replicas(cluster: Cluster) -> None:
    """Deployment and ReplicaSet first, without their pods; then the pods, which get no chance to stop cleanly."""
    pods = cluster.operator_pods()
    cluster.testbed.kubectl("delete", f"deployment/{RELEASE}", WHERE, "--cascade=orphan")
    cluster.testbed.kubectl(
        "delete", "replicasets", WHERE, "--selector=app.kubernetes.io/name=ballast", "--cascade=orphan"
    )
    cluster.kill_outright(pods)
    names = [pod["metadata"]["name"] for pod in pods]
    cluster.testbed.kubectl("delete", "pods", *names, WHERE, "--grace-period=0", "--force")
    assert gating(cluster), "the leader must not have had the time to turn the switch off"


def hold_an_executor(cluster: Cluster) -> float:
    """Create what the gate holds; when that was."""
    cluster.testbed.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "waiting-exec-1", "namespace": HELD, "labels": {"spark-role": "executor"}},
            "spec": {"containers": [{"name": "executor", "image": "pause"}]},
        }
    )
    created = time.time()
    assert gates(read_executor(cluster))
    return created


def read_executor(cluster: Cluster) -> Json:
    return cluster.testbed.api.get(f"/api/v1/namespaces/{HELD}/pods/waiting-exec-1")


def gates(pod: Json) -> list[Any]:
    found: list[Any] = pod["spec"].get("schedulingGates", [])
    return found


def gating(cluster: Cluster) -> bool:
    switch = cluster.testbed.api.get(f"/apis/ballast.dev/v1alpha1/gateswitches/{RELEASE}")
    return bool(switch["spec"]["gating"])
