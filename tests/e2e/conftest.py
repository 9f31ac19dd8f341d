"""One cluster with Ballast in it, and one job that runs through the whole session. The journeys have their own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples.demo.installation import await_gating, install, keep_logs
from examples.demo.pool import POOL_LABEL, SYSTEM
from examples.demo.streaming.application import Job
from examples.demo.streaming.records import Stream
from examples.demo.streaming.running import RunningJob
from tests.e2e.cluster import COMPONENT, NOISE_NAMESPACE, Cluster, nodes
from tests.testbed.testbed import KEPT_LOGS, Testbed

SpawnJob = Callable[[Job], RunningJob]

STEADY_NAMESPACE = "analytics"
TOPOLOGY = "clickstream"
LABELS = {"ballast.dev/topology": TOPOLOGY, "ballast.dev/component": COMPONENT}
TOPOLOGY_OBJECT = {
    "apiVersion": "ballast.dev/v1alpha1",
    "kind": "SparkTopology",
    "metadata": {"name": TOPOLOGY, "namespace": STEADY_NAMESPACE},
    "spec": {
        "components": [
            {"name": COMPONENT, "workload": "Streaming", "executors": 3, "exchange": {"bytesPerSecond": "10Mi"}}
        ]
    },
}


FIRST = ("test_journeys.py", "test_running_job.py", "test_replay.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the running job come before those that replace an executor: Spark may leave a new one without tasks.

    The replay comes before other jobs: a history has no word of deletions, so it would count their executors. The
    journeys end their cluster before the session's begins.
    """
    rank = {name: number for number, name in enumerate(FIRST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with installed("e2e") as found:
        yield found


@contextmanager
def installed(name: str) -> Iterator[Cluster]:
    """Seven nodes, Prometheus, and Ballast as the chart installs it. A policy places; none levels yet.

    `name`: of the folder that its logs are kept in.
    """
    with (
        tempfile.TemporaryDirectory(prefix="ballast-e2e-") as folder,
        Testbed(progress=print).up(nodes=nodes()) as testbed,
    ):
        try:
            install(testbed, node_selector={POOL_LABEL: SYSTEM})
            testbed.create_namespace(NOISE_NAMESPACE)
            testbed.create_namespace(STEADY_NAMESPACE)
            found = Cluster(testbed, Path(folder))
            found.enforce()
            yield found
        finally:
            keep_logs(testbed, KEPT_LOGS / name)


@pytest.fixture(scope="session")
def spawn(cluster: Cluster) -> Iterator[SpawnJob]:
    """Submits jobs; those that still run are ended after the last test."""
    with spawning(cluster) as submit:
        yield submit


@contextmanager
def spawning(cluster: Cluster) -> Iterator[SpawnJob]:
    running: list[RunningJob] = []

    def submit(job: Job) -> RunningJob:
        running.append(RunningJob.submit(cluster.testbed, job))
        return running[-1]

    yield submit
    for job in running:
        job.abandon()


@pytest.fixture(scope="session")
def steady(cluster: Cluster, spawn: SpawnJob) -> RunningJob:
    return steady_job(cluster, spawn)


def steady_job(cluster: Cluster, spawn: SpawnJob) -> RunningJob:
    """Three executors with a SparkTopology, placed by Ballast, fed all the time."""
    cluster.testbed.apply(TOPOLOGY_OBJECT)
    await_gating(cluster.testbed, STEADY_NAMESPACE, labels=LABELS)
    stream = Stream(records_per_second=150)
    job = spawn(
        cluster.job("steady", STEADY_NAMESPACE, executors=3, stream=stream, partitions=6, executor_labels=LABELS)
    )
    job.await_executors()
    job.feed()
    job.await_batches(3)
    return job
