"""What somebody with the rights of one namespace brings about by a topology, and what not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ballast.controller.metrics_reader import MetricsReader
from ballast.kube.kinds import BALANCING_POLICY, POD, SPARK_TOPOLOGY
from tests.cluster.chart.caller import Caller, user
from tests.cluster.chart.installation import NAMESPACE, Installation
from tests.cluster.controller.hand import Clock, hand
from tests.cluster.controller.pool import ENFORCE, POOL_LABEL, Pool, pool, zones
from tests.testbed.waiting import wait_until
from tests.unit.prometheus.server import Server, serving

pytestmark = pytest.mark.cluster

JSON = dict[str, Any]
QUERY = "sum(kafka_topic_secret_total)"
APP = {"app": "clicks"}
BROKER = {"app": "kafka"}
NO_NODES = Path(__file__).parents[2] / "examples" / "tenants" / "pods-without-node.yaml"


@pytest.fixture
def prometheus() -> Iterator[Server]:
    with serving() as found:
        yield found


@pytest.fixture
def others(installed: Installation) -> Iterator[Pool]:
    """Another namespace, whose executors no policy steers."""
    with pool(installed.testbed, "brokers") as found:
        yield found


@pytest.fixture
def mine(installed: Installation) -> Iterator[Pool]:
    with pool(installed.testbed, "tenant", zones()) as found:
        yield found


@pytest.fixture
def tenant(installed: Installation, mine: Pool) -> Iterator[Caller]:
    with editing(installed, mine.name) as caller:
        yield caller


@contextmanager
def editing(installed: Installation, namespace: str) -> Iterator[Caller]:
    """Somebody with Kubernetes' own role `edit` in one namespace."""
    role = ("create", "rolebinding", "tenant", "--clusterrole=edit", "--user=tenant")
    installed.testbed.kubectl(*role, f"--namespace={namespace}")
    with user(installed.testbed, "tenant") as caller:
        yield caller


def clicks(brokers: str) -> JSON:
    """It asks Prometheus, looks into another namespace, and chooses by a label that pods there have as well."""
    spec = {
        "components": [
            {"name": "kafka", "external": {"namespace": brokers, "selector": {"matchLabels": BROKER}}},
            {"name": "ingest", "executors": 2, "selector": {"matchLabels": APP}},
        ],
        "streams": [{"from": "kafka", "to": "ingest", "grouping": "LocalOrShuffle", "rate": {"query": QUERY}}],
    }
    kind = SPARK_TOPOLOGY
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "clicks"}, "spec": spec}


def test_a_topology_reaches_beyond_its_namespace_only_as_the_policy_allows(
    installed: Installation, mine: Pool, others: Pool, tenant: Caller, prometheus: Server
) -> None:
    metrics = {"prometheus": {"url": prometheus.url}, "topologyQueries": "Deny"}
    mine.policy(metrics=metrics, placement={**ENFORCE, "sticky": False})
    (foreign,) = others.executors(1, labels=APP, **at(mine, "b2"))
    others.nodes_of([foreign])
    before = others.pod(foreign)
    assert tenant.create(SPARK_TOPOLOGY, clicks(others.name), namespace=mine.name).ok
    clock = Clock(ahead_seconds=5.0)
    operator = hand(installed.testbed, clock=clock, metrics=MetricsReader(mine.admin, namespace=NAMESPACE))
    try:
        placed = mine.executors(2, labels=APP)
        operator.reconcile()
        (first,) = {node[0] for node in mine.nodes_of(placed)}
        operator.reconcile()
        wait_until(lambda: prometheus.queries, what="Prometheus is asked")
        assert verdict(mine, "MetricsAvailable") == "QueryNotAllowed"
        assert verdict(mine, "ExternalFound") == "ExternalNamespaceNotAllowed"
        assert [query for query in prometheus.queries if QUERY in query] == []
        assert mine.read(SPARK_TOPOLOGY, "clicks")["status"]["executors"]["running"] == 2
        assert others.pod(foreign) == before

        for name in placed:
            mine.delete(POD, name)
        other = "b" if first == "a" else "a"
        brokers = others.executors(1, first=2, role="broker", labels=BROKER, **at(mine, f"{other}1"))
        others.nodes_of(brokers)
        allowed = {"spec": {"externalNamespaces": [others.name], "metrics": {"topologyQueries": "Allow"}}}
        assert tenant.patch(BALANCING_POLICY, mine.name, allowed).code == 403
        mine.admin.patch(BALANCING_POLICY, mine.name, allowed)
        placed = mine.executors(2, first=3, labels=APP)
        operator.reconcile()
        assert {node[0] for node in mine.nodes_of(placed)} == {other}
        assert verdict(mine, "ExternalFound") is None
        clock.ahead_seconds += 61.0
        operator.reconcile()
        wait_until(lambda: [query for query in prometheus.queries if QUERY in query], what="Prometheus is asked for it")
    finally:
        operator.close()
        installed.switch(gating=False)


@pytest.mark.soak
def test_the_example_s_admission_policy_lets_no_tenant_bind_pods(installed: Installation) -> None:
    installed.testbed.create_namespace("binding")
    bound: JSON = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bound"},
        "spec": {"nodeName": "any", "containers": [{"name": "x", "image": "pause"}]},
    }
    free = {**bound, "spec": {"containers": bound["spec"]["containers"]}}
    with editing(installed, "binding") as tenant:
        assert tenant.create(POD, bound, namespace="binding", dry=True).ok
        installed.testbed.kubectl("apply", "-f", str(NO_NODES))
        try:
            wait_until(
                lambda: tenant.create(POD, bound, namespace="binding", dry=True).refused_by("pods-without-node"),
                what="no user may name a node",
            )
            assert tenant.create(POD, free, namespace="binding", dry=True).ok
        finally:
            installed.testbed.kubectl("delete", "-f", str(NO_NODES))
            installed.testbed.kubectl("delete", "namespace", "binding", "--wait=false")


def at(mine: Pool, node: str) -> JSON:
    """Of a pod in another namespace: on that node."""
    return {"gates": (), "nodeName": mine.node(node), "nodeSelector": {POOL_LABEL: mine.name}}


def verdict(mine: Pool, type_: str) -> str | None:
    """The reason of that condition, which does not hold."""
    condition = mine.condition(SPARK_TOPOLOGY, type_, "clicks")
    if condition is None:
        return None
    assert condition["status"] == "False"
    return str(condition["reason"])
