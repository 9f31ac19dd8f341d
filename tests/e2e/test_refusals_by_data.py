"""A job whose data is uneven and whose executors can't leave gracefully: it is left alone, and told why."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import pytest

from ballast.enums import Preset
from ballast.prometheus.preset import queries
from examples.demo.installation import await_gating
from examples.demo.streaming.records import Stream
from examples.demo.streaming.running import RunningJob
from tests.e2e.cluster import COMPONENT, WINDOW_SECONDS, Cluster, names_by_node
from tests.e2e.conftest import SpawnJob

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

NAMESPACE = "skewed"
# The policy's limit on this component keeps each on a node of its own: only one of them is on the hot node.
SKEWED = {"ballast.dev/topology": "skewed", "ballast.dev/component": COMPONENT}
TOPOLOGY_OBJECT = {
    "apiVersion": "ballast.dev/v1alpha1",
    "kind": "SparkTopology",
    "metadata": {"name": "skewed", "namespace": NAMESPACE},
    "spec": {"components": [{"name": COMPONENT, "workload": "Streaming"}]},
}
UNEVEN = 2.0
UNEVENLY = {
    "spark.decommission.enabled": "false",
    # A partition stays with the executor that holds its state, and each executor holds one from the first batch on.
    "spark.locality.wait": "20s",
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}


@pytest.fixture(scope="module")
def skewed(cluster: Cluster, spawn: SpawnJob) -> Iterator[RunningJob]:
    """Most of its bytes have one key, and its tasks stay where their state is; it can't leave gracefully."""
    cluster.testbed.create_namespace(NAMESPACE)
    cluster.testbed.apply(TOPOLOGY_OBJECT)
    await_gating(cluster.testbed, NAMESPACE, labels=SKEWED)
    stream = Stream(records_per_second=60, hot_ratio=0.6, hot_padding=600)
    job = cluster.job(
        "uneven",
        NAMESPACE,
        executors=3,
        stream=stream,
        partitions=3,
        # One window for all: a key's records always go to the same partition.
        window="30 days",
        executor_labels=SKEWED,
        conf=UNEVENLY,
    )
    running = spawn(job)
    running.await_executors()
    assert len(names_by_node(running)) == running.job.executors
    running.feed()
    running.await_batches(6)
    yield running
    running.abandon()


@pytest.fixture(scope="module")
def burdened(cluster: Cluster, skewed: RunningJob) -> Iterator[str]:
    """The executor with most of the data, on a node that is hot, but not so hot that its tasks never end."""
    query = queries(Preset.KUBE_PROMETHEUS_STACK, {}).rendered(30)["executorBytes"]

    def uneven() -> str | None:
        found = cluster.figures.by_label(f"({query}) and on(application_id) {ours(skewed)}", "executor_id")
        volumes = {number: volume for number, volume in found.items() if number != "driver"}
        most = max(volumes, key=lambda number: volumes[number], default=None)
        return most if most and volumes[most] > UNEVEN * median(volumes.values()) else None

    number = cluster.await_(uneven, "one executor's tasks carry most of the bytes", timeout_seconds=90)
    executor = next(each for each in skewed.running_executors() if each.name.endswith(f"-exec-{number}"))
    assert executor.node is not None
    with cluster.noise(executor.node, cores=0.36):
        yield executor.name


def ours(job: RunningJob) -> str:
    return f'metrics_executor_totalCores{{application_id="{job.job.application}"}}'


def test_an_executor_that_can_not_leave_gracefully_stays(cluster: Cluster, burdened: str) -> None:
    refusal = cluster.await_refusal(
        cluster.enforce(moves={"mode": "Recommend"}, namespace=NAMESPACE), "NoDecommissioning"
    )
    assert refusal["executor"] == burdened
    assert "spark.decommission.enabled=true" in refusal["message"]


def test_an_executor_whose_data_is_the_cause_stays(cluster: Cluster, burdened: str) -> None:
    moves = {"mode": "Recommend", "allowUngraceful": True, "allowUnknownState": True}
    metrics = {"prometheus": {"url": cluster.testbed.prometheus_url}, "window": f"{WINDOW_SECONDS}s", "maxAge": "30s"}
    name = cluster.enforce(moves=moves, namespace=NAMESPACE, metrics=metrics)
    refusal = cluster.await_refusal(name, "DataSkew")
    assert refusal["executor"] == burdened
    assert "a move takes the data along" in refusal["message"]
