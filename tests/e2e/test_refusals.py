"""What Spark itself can make a move wrong for: each is refused, and the policy's status says why."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from examples.demo.installation import await_gating
from examples.demo.streaming.application import RunningJob
from examples.demo.streaming.records import Stream
from tests.e2e.cluster import Cluster, names_by_node
from tests.e2e.conftest import STEADY_NAMESPACE, TOPOLOGY, SpawnJob

SKEWED = {"ballast.dev/topology": "skewed", "ballast.dev/workload": "Streaming"}
WORKLOAD = "/spec/components/0/workload"


@pytest.fixture(scope="module")
def hot(cluster: Cluster, steady: RunningJob) -> Iterator[str]:
    """The name of the steady job's executor on a node that stays hot; nothing is moved, only said."""
    steady.await_executors()
    node = min(names_by_node(steady))
    with cluster.noise(node):
        yield names_by_node(steady)[node]


@pytest.mark.parametrize(
    ("moves", "reason", "words"),
    [
        ({"minSlowness": 100}, "NothingToGain", "below minSlowness 100"),
        ({"maxStateSize": "1"}, "LargeState", "above maxStateSize"),
    ],
)
def test_a_move_that_would_not_help_is_refused(
    cluster: Cluster, hot: str, moves: dict[str, object], reason: str, words: str
) -> None:
    name = cluster.enforce(moves={"mode": "Recommend", **moves})
    refusal = cluster.await_refusal(name, reason)
    assert refusal["executor"] == hot
    assert words in refusal["message"]


def test_an_executor_of_unknown_workload_stays(cluster: Cluster, hot: str) -> None:
    change_workload(cluster, {"op": "remove", "path": WORKLOAD})
    try:
        refusal = cluster.await_refusal(cluster.enforce(moves={"mode": "Recommend"}), "UnknownWorkload")
        assert refusal["executor"] == hot
        assert "set components[].workload" in refusal["message"]
    finally:
        change_workload(cluster, {"op": "add", "path": WORKLOAD, "value": "Streaming"})


def change_workload(cluster: Cluster, change: dict[str, str]) -> None:
    where = f"--namespace={STEADY_NAMESPACE}"
    cluster.testbed.kubectl("patch", "stopo", TOPOLOGY, where, "--type=json", f"-p={json.dumps([change])}")


@pytest.fixture(scope="module")
def skewed(cluster: Cluster, spawn: SpawnJob) -> RunningJob:
    """Most of its bytes have one key, and its tasks stay where their state is; it can't leave gracefully."""
    cluster.testbed.create_namespace("skewed")
    await_gating(cluster.testbed, "skewed", labels=SKEWED)
    stream = Stream(records_per_second=60, hot_ratio=0.6, hot_padding=600)
    conf = {"spark.decommission.enabled": "false", "spark.locality.wait": "20s"}
    job = cluster.job(
        "skewed", "skewed", executors=3, stream=stream, partitions=3, rounds=10, executor_labels=SKEWED, conf=conf
    )
    running = spawn(job)
    running.await_executors()
    running.feed()
    running.await_batches(6)
    return running


@pytest.fixture(scope="module")
def burdened(cluster: Cluster, skewed: RunningJob) -> Iterator[str]:
    """The executor with most of the data, on a node that is hot."""
    query = f'sum by (executor_id) (rate(metrics_executor_totalShuffleRead_bytes_total{{application_id="{skewed.job.application}"}}[30s]))'  # noqa: E501
    shares = cluster.await_(lambda: cluster.figures.by_label(query, "executor_id"), "the executors read something")
    number = max((key for key in shares if key != "driver"), key=lambda key: shares[key])
    executor = next(each for each in skewed.running_executors() if each.name.endswith(f"-exec-{number}"))
    assert executor.node is not None
    with cluster.noise(executor.node):
        yield executor.name


def test_an_executor_that_can_not_leave_gracefully_stays(cluster: Cluster, burdened: str) -> None:
    refusal = cluster.await_refusal(cluster.enforce(moves={"mode": "Recommend"}), "NoDecommissioning")
    assert refusal["executor"] == burdened
    assert "spark.decommission.enabled=true" in refusal["message"]


def test_an_executor_whose_data_is_the_cause_stays(cluster: Cluster, burdened: str) -> None:
    moves = {"mode": "Recommend", "allowUngraceful": True, "allowUnknownState": True}
    refusal = cluster.await_refusal(cluster.enforce(moves=moves), "DataSkew")
    assert refusal["executor"] == burdened
    assert "a move takes the data along" in refusal["message"]
