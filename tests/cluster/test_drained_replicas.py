"""A drain of the operator's nodes: which evictions of replicas the API server allows by the chart's budget."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ballast.kube.kinds import DISRUPTION_BUDGET, POD, Kind
from tests.cluster.chart.caller import administrator
from tests.cluster.chart.installation import CHART
from tests.cluster.chart.objects import eviction
from tests.cluster.kube.cluster import JSON, Cluster
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

NODE = "drained-1"
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
SERVERS_OWN = {"unhealthyPodEvictionPolicy": "IfHealthyBudget"}
"""What the API server fills in where a budget says nothing."""
ONE_AVAILABLE = {"minAvailable": 1, "maxUnavailable": None}
"""As many charts have it."""


@pytest.fixture(scope="module")
def cluster(control_plane: Testbed) -> Cluster:
    cluster = Cluster.open(control_plane, "drained")
    cluster.node(NODE)
    return cluster


def budget_of_the_chart(cluster: Cluster, release: str) -> JSON:
    chosen = (f"--namespace={cluster.namespace}", "--show-only=templates/disruption-budget.yaml")
    document: JSON = yaml.safe_load(cluster.testbed.helm("template", release, str(CHART), *chosen))
    return document


def replicas(cluster: Cluster, release: str, labels: JSON, ready: list[bool]) -> list[str]:
    """Replicas that run on the node, by name: one for each item, which is ready or not."""
    containers = [{"name": "ballast", "image": "ballast"}]
    template = {"metadata": {"labels": labels}, "spec": {"nodeName": NODE, "containers": containers}}
    spec = {"replicas": len(ready), "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": release}, "spec": spec}
    cluster.client.create(DEPLOYMENT, body, namespace=cluster.namespace)

    def names() -> list[str]:
        found = cluster.testbed.api.get(POD.path(namespace=cluster.namespace))["items"]
        pods = [pod["metadata"] for pod in found if labels.items() <= pod["metadata"]["labels"].items()]
        return [pod["name"] for pod in pods] if len(pods) == len(ready) else []

    made: list[str] = wait_until(names, what=f"{len(ready)} replicas are created")
    for name, is_ready in zip(made, ready, strict=True):
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(is_ready)}]}
        cluster.client.patch(POD, name, {"status": status}, namespace=cluster.namespace, subresource="status")
    return made


@pytest.mark.parametrize(
    ("release", "changed", "ready", "allowed"),
    [
        pytest.param("chart-unready", {}, [False, False], True, id="two that are not ready"),
        pytest.param("server-unready", SERVERS_OWN, [False, False], False, id="two that are not ready, by the default"),
        pytest.param("chart-one", {}, [True], True, id="the only one"),
        pytest.param("available-one", ONE_AVAILABLE, [True], False, id="the only one, with minAvailable: 1"),
    ],
)
def test_the_charts_budget_allows_what_others_would_refuse_for_good(
    cluster: Cluster, release: str, changed: dict[str, Any], ready: list[bool], allowed: bool
) -> None:
    """Replicas are not ready while the API server refuses writes, and a drain must end all the same."""
    budget = budget_of_the_chart(cluster, release)
    budget["spec"] |= changed
    names = replicas(cluster, release, budget["spec"]["selector"]["matchLabels"], ready)
    name = budget["metadata"]["name"]
    cluster.client.create(DISRUPTION_BUDGET, budget, namespace=cluster.namespace)

    def counted() -> bool:
        status = cluster.client.get(DISRUPTION_BUDGET, name, namespace=cluster.namespace).get("status", {})
        return (status.get("expectedPods"), status.get("currentHealthy")) == (len(ready), sum(ready))

    wait_until(counted, what="the replicas are counted")
    with administrator(cluster.testbed) as drain:
        body = eviction(names[0], cluster.namespace)
        answer = drain.act(POD, names[0], subresource="eviction", body=body, namespace=cluster.namespace)
    assert answer.code == (201 if allowed else 429), answer
