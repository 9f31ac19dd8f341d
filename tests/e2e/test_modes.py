"""Recommend touches nothing, and Approve waits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.demo.streaming.running import RunningJob
from tests.e2e.cluster import DECIDED_SECONDS, Cluster, names_by_node
from tests.e2e.conftest import STEADY_NAMESPACE

pytestmark = pytest.mark.e2e

PASSES = 3


@pytest.fixture(scope="module", autouse=True)
def hot(cluster: Cluster, steady: RunningJob) -> Iterator[str]:
    """A node with an executor, hot all the time."""
    cluster.come_to_rest(steady)
    node = min(names_by_node(steady))
    with cluster.noise(node):
        yield node


def uids(job: RunningJob) -> set[str]:
    return {executor.uid for executor in job.running_executors()}


def await_passes(cluster: Cluster, name: str, count: int = PASSES) -> None:
    """So many more passes of the policy."""
    query = f'sum(ballast_passes_total{{policy="{name}"}})'
    before = cluster.figures.value(query) or 0.0
    cluster.await_(lambda: (cluster.figures.value(query) or 0.0) >= before + count, f"{count} more passes of {name}")


def test_recommend_says_what_it_would_do_and_changes_nothing(cluster: Cluster, steady: RunningJob, hot: str) -> None:
    before = uids(steady)
    name = cluster.enforce(moves={"mode": "Recommend"})

    def recommended() -> list[dict[str, object]]:
        found: list[dict[str, object]] = (
            cluster.policy(name)["status"].get("recommendations", {}).get("items", [])
        )  # fmt: skip
        return found

    (move,) = cluster.await_(recommended, "a move is recommended", timeout_seconds=DECIDED_SECONDS)
    assert (move["from"], move["executor"]) == (hot, names_by_node(steady)[hot])
    await_passes(cluster, name)
    assert cluster.moves(STEADY_NAMESPACE) == []
    assert uids(steady) == before


def test_approve_proposes_and_waits(cluster: Cluster, steady: RunningJob, hot: str) -> None:
    before = uids(steady)
    name = cluster.enforce(moves={"mode": "Approve"})
    proposed = cluster.await_move(STEADY_NAMESPACE, phases=frozenset({"Proposed"}))
    assert (proposed["spec"]["from"], proposed["spec"].get("approved", False)) == (hot, False)
    await_passes(cluster, name)
    assert [move["status"]["phase"] for move in cluster.moves(STEADY_NAMESPACE)] == ["Proposed"]
    assert uids(steady) == before


def test_an_approved_proposal_leaves(cluster: Cluster, steady: RunningJob) -> None:
    (proposed,) = cluster.moves(STEADY_NAMESPACE)
    where, name = f"--namespace={STEADY_NAMESPACE}", proposed["metadata"]["name"]
    cluster.testbed.kubectl("patch", "move", name, where, "--type=merge", '-p={"spec": {"approved": true}}')
    arrived = cluster.await_move(STEADY_NAMESPACE, phases=frozenset({"Settling"}))
    assert arrived["status"]["replacement"]["node"] == proposed["spec"]["to"]
    steady.await_executors()
