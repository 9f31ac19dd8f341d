"""Moves that would not help, or that nobody allowed: each is refused, and the policy's status says why."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from examples.demo.streaming.running import RunningJob
from tests.e2e.cluster import WINDOW_SECONDS, Cluster, names_by_node
from tests.e2e.conftest import STEADY_NAMESPACE, TOPOLOGY

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

WORKLOAD = "/spec/components/0/workload"


@pytest.fixture(scope="module")
def hot(cluster: Cluster, steady: RunningJob) -> Iterator[str]:
    """The name of the steady job's executor on a node that stays hot; nothing is moved, only said."""
    cluster.come_to_rest(steady)
    node = min(names_by_node(steady))
    with cluster.noise(node):
        yield names_by_node(steady)[node]


@pytest.mark.parametrize(
    ("moves", "reason", "words"),
    [
        ({"minSlownessPercent": 10000, "saturationScore": 100}, "NothingToGain", "(minSlownessPercent 10000)"),
        ({"maxStateSize": "1"}, "LargeState", "above maxStateSize"),
    ],
)
def test_a_move_that_would_not_help_is_refused(
    cluster: Cluster, hot: str, moves: dict[str, object], reason: str, words: str
) -> None:
    metrics = {
        "prometheus": {"url": cluster.testbed.prometheus_url},
        "window": f"{WINDOW_SECONDS}s",
        "advanced": {"queries": {"nodePressure": "vector(1) < 0"}},
    }
    name = cluster.enforce(moves={"mode": "Recommend", **moves}, metrics=metrics)
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
