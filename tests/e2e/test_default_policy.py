"""The policy of examples/balancingpolicy-enforce.yaml: all times and limits are those that a user gets."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from examples.demo.pool import POOL, POOL_LABEL
from examples.demo.streaming.running import RunningJob
from tests.cluster.controller.pool import gated_seconds
from tests.e2e.cluster import HOME, HOME_ZONE, Cluster, Json, names_by_node, place_of
from tests.e2e.conftest import STEADY_NAMESPACE
from tests.testbed.nodes import ZONE_LABEL

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

EXAMPLE = Path(__file__).parents[2] / "examples" / "balancingpolicy-enforce.yaml"
GATE_TIMEOUT_SECONDS = 10.0
"""The default."""


@pytest.fixture(scope="module")
def policy(cluster: Cluster, steady: RunningJob) -> str:
    """Its name. Only what differs from cluster to cluster is changed: the pool, and where Prometheus is."""
    cluster.come_to_rest(steady)
    found: Json = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    found["spec"]["nodeSelector"] = {"matchLabels": {POOL_LABEL: POOL}}
    found["spec"]["metrics"]["prometheus"]["url"] = cluster.testbed.prometheus_url
    return cluster.follow(found)


def test_an_executor_that_is_lost_is_placed_again_in_time_near_the_others(
    cluster: Cluster, steady: RunningJob, policy: str
) -> None:
    before = names_by_node(steady)
    lost = before[min(before)]
    cluster.testbed.kubectl("delete", "pod", lost, f"--namespace={STEADY_NAMESPACE}", "--wait=true")
    steady.await_executors()
    (found,) = (each.document for each in steady.running_executors() if each.name not in before.values())
    assert place_of(found)[ZONE_LABEL] == [HOME_ZONE]
    assert names_by_node(steady).keys() <= HOME
    assert gated_seconds(found) <= GATE_TIMEOUT_SECONDS + 1.0


def test_it_knows_the_nodes_and_moves_nothing_without_a_reason_that_lasts(cluster: Cluster, policy: str) -> None:
    def conditions() -> dict[str, str]:
        found = cluster.policy(policy)["status"].get("conditions", [])
        return {each["type"]: each["status"] for each in found}

    def measured() -> bool:
        nodes = cluster.policy(policy)["status"].get("nodes", {})
        return "hottest" in nodes and (nodes["total"], nodes["stale"]) == (len(cluster.figures.scores()), 0)

    cluster.await_shown(policy, measured, "every node has a score")
    assert (conditions()["Ready"], conditions()["MetricsAvailable"]) == ("True", "True")
    assert not {"Stalled", "Paused", "Gating", "LevelsFound", "MovesPossible"} & conditions().keys(), conditions()
    assert cluster.moves(STEADY_NAMESPACE) == []
