"""Ballast taken away while executors run and one is held. Named so that it comes last."""

from __future__ import annotations

import pytest

from examples.demo.installation import NAMESPACE, RELEASE, await_gating
from examples.demo.streaming.running import RunningJob
from tests.e2e.cluster import Cluster, Json

pytestmark = pytest.mark.e2e

LEFT = "left-behind"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "waiting-exec-1", "namespace": LEFT, "labels": {"spark-role": "executor"}},
    "spec": {
        # Ballast waits for this one: it would hold the pod for as long as the test lasts.
        "schedulingGates": [{"name": "example.com/quota"}],
        "containers": [{"name": "executor", "image": "pause"}],
    },
}


def gates(cluster: Cluster) -> list[str]:
    pod: Json = cluster.testbed.api.get(f"/api/v1/namespaces/{LEFT}/pods/waiting-exec-1")
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


def test_an_uninstallation_turns_the_switch_off_and_lets_everybody_go(cluster: Cluster, steady: RunningJob) -> None:
    steady.await_executors()
    before = {executor.uid for executor in steady.running_executors()}
    cluster.enforce()
    cluster.testbed.create_namespace(LEFT, labels={"ballast.dev/gate": "enabled"})
    await_gating(cluster.testbed, LEFT, labels={})
    cluster.testbed.apply(POD)
    assert "ballast.dev/placement" in gates(cluster)

    cluster.testbed.helm("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--wait", "--timeout=180s")

    assert gates(cluster) == ["example.com/quota"]
    switch = cluster.testbed.api.get(f"/apis/ballast.dev/v1alpha1/gateswitches/{RELEASE}")
    assert (switch["spec"]["gating"], switch["status"]["reason"]) == (False, "Uninstalled")
    cluster.await_(lambda: not cluster.operator_pods(), "the operator's pods are gone")
    assert {executor.uid for executor in steady.running_executors()} == before
    assert steady.compared_so_far().agree
