"""Evicting and deleting pods, and what the API server says when it won't."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ballast.kube.actions import (
    Blocked,
    Changed,
    Deleted,
    Evicted,
    Refused,
    Released,
    Scheduled,
    Vanished,
    delete_unscheduled,
    evict,
    release,
)
from ballast.kube.client import Client
from ballast.kube.connection import Connection
from ballast.kube.errors import Forbidden, NotFound
from ballast.kube.kinds import POD, Kind
from ballast.kube.names import GATE
from ballast.kube.objects import Query, read_list
from ballast.kube.pods import PodReader
from ballast.model import DEFAULT_LEVELS, Pin
from tests.cluster.chart.caller import administrator
from tests.cluster.kube.cluster import JSON, Cluster, client_with_token
from tests.testbed.testbed import Testbed

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def cluster(control_plane: Testbed) -> Cluster:
    cluster = Cluster.open(control_plane, "kube-pods")
    cluster.node("kube-pods-1")
    return cluster


class Overtaken(Client):
    """Something happens between what it reads of a pod and its deleting it."""

    def __init__(self, cluster: Cluster, happens: Callable[[], object]) -> None:
        super().__init__(Connection.from_kubeconfig(cluster.testbed.kubeconfig))
        self._happens = happens

    def delete(self, kind: Kind, name: str, **options: Any) -> None:
        self._happens()
        super().delete(kind, name, **options)


def uid(pod: JSON) -> str:
    return str(pod["metadata"]["uid"])


def test_an_executor_is_evicted(cluster: Cluster) -> None:
    pod = cluster.running("evicted", "kube-pods-1")
    assert evict(cluster.client, namespace=cluster.namespace, name="evicted", uid=uid(pod)) == Evicted()
    with pytest.raises(NotFound):
        cluster.read("evicted")


def test_only_the_pod_with_this_uid_is_evicted(cluster: Cluster) -> None:
    cluster.running("namesake", "kube-pods-1")
    assert evict(cluster.client, namespace=cluster.namespace, name="namesake", uid="another") == Vanished()
    assert evict(cluster.client, namespace=cluster.namespace, name="nobody", uid="another") == Vanished()
    assert not cluster.pod("namesake").leaving


def test_a_disruption_budget_blocks_with_its_own_words(control_plane: Testbed) -> None:
    cluster = Cluster.open(control_plane, "kube-budget")
    pod = cluster.running("needed", "kube-pods-1")
    cluster.budget("keep-one", min_available=1)
    blocked = evict(cluster.client, namespace=cluster.namespace, name="needed", uid=uid(pod))
    assert isinstance(blocked, Blocked)
    assert blocked.detail == "The disruption budget keep-one needs 1 healthy pods and has 1 currently"
    cluster.budget("and-another", min_available=1)
    twice = evict(cluster.client, namespace=cluster.namespace, name="needed", uid=uid(pod))
    assert isinstance(twice, Blocked)
    assert "more than one PodDisruptionBudget" in twice.detail


def test_an_unscheduled_pod_is_deleted(cluster: Cluster) -> None:
    pod = cluster.executor("waiting")
    gone = delete_unscheduled(cluster.client, namespace=cluster.namespace, name="waiting", uid=uid(pod))
    assert gone == Deleted()
    with pytest.raises(NotFound):
        cluster.read("waiting")


def test_a_pod_that_was_bound_stays(cluster: Cluster) -> None:
    pod = cluster.running("bound", "kube-pods-1")
    outcome = delete_unscheduled(cluster.client, namespace=cluster.namespace, name="bound", uid=uid(pod))
    assert outcome == Scheduled("kube-pods-1")


def test_a_pod_that_was_bound_since_it_was_seen_stays(cluster: Cluster) -> None:
    seen = cluster.executor("raced")

    def bind() -> None:
        release(cluster.client, cluster.order(seen, Pin.NONE, node=None, location=()), DEFAULT_LEVELS)
        cluster.bound("raced")

    client = Overtaken(cluster, bind)
    outcome = delete_unscheduled(client, namespace=cluster.namespace, name="raced", uid=uid(seen))
    assert isinstance(outcome, Changed)
    assert not cluster.pod("raced").leaving


def test_only_the_pod_with_this_uid_is_deleted(cluster: Cluster) -> None:
    seen = cluster.executor("replaced")

    def replace() -> None:
        cluster.delete("replaced")
        cluster.executor("replaced")

    for client in (Overtaken(cluster, replace), cluster.client):
        outcome = delete_unscheduled(client, namespace=cluster.namespace, name="replaced", uid=uid(seen))
        assert outcome == Vanished()
        assert not cluster.pod("replaced").leaving


def test_a_missing_right_is_named(control_plane: Testbed, cluster: Cluster, tmp_path: Path) -> None:
    client = client_with_token(control_plane, tmp_path, namespace=cluster.namespace)
    with pytest.raises(Forbidden, match=r"not allowed to list pods kube-pods: .*system:serviceaccount:kube-pods"):
        read_list(client, Query(POD, cluster.namespace), dict)
    pod = cluster.running("not-ours", "kube-pods-1")
    outcome = evict(client, namespace=cluster.namespace, name="not-ours", uid=uid(pod))
    assert isinstance(outcome, Refused)
    assert 'cannot create resource "pods/eviction"' in outcome.detail


def test_a_long_list_is_read_page_by_page(control_plane: Testbed) -> None:
    cluster = Cluster.open(control_plane, "kube-list")
    names = [cluster.executor(f"listed-{n:02}")["metadata"]["name"] for n in range(11)]
    listing = read_list(cluster.client, Query(POD, cluster.namespace, page=4), lambda pod: pod["metadata"]["name"])
    assert listing.items == names
    assert listing.resource_version.isdigit()


def test_a_pod_whose_managed_fields_are_no_text_is_read_and_released(control_plane: Testbed, cluster: Cluster) -> None:
    """The API server returns them as their author wrote them, and one such pod ended every list and watch."""
    kept = b'{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:\xff":{}}}'
    body = json.dumps(gated_pod("odd")).encode().replace(b'"KEPT"', kept)
    with administrator(control_plane) as admin:
        url, json_type = f"{admin.url}{POD.path(namespace=cluster.namespace)}", {"Content-Type": "application/json"}
        answer = admin.session.post(url, data=body, headers=json_type, timeout=30)
    assert answer.ok, answer.text
    assert b"\xff" in answer.content
    assert "odd" in [pod.name for pod in read_list(cluster.client, Query(POD), PodReader().read).items]
    order = cluster.order(cluster.read("odd"), pin=Pin.NONE)
    assert release(cluster.client, order, DEFAULT_LEVELS) == Released()


def gated_pod(name: str) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "managedFields": ["KEPT"]},
        "spec": {"containers": [{"name": "c", "image": "spark"}], "schedulingGates": [{"name": GATE}]},
    }


def test_a_list_takes_selectors_and_metadata_alone(cluster: Cluster) -> None:
    cluster.executor("chosen")
    query = Query(POD, labels="spark-role=executor", fields="metadata.name=chosen", metadata_only=True)
    (found,) = read_list(cluster.client, query, dict).items
    assert found["metadata"]["labels"]["spark-app-selector"] == "spark-1"
    assert "spec" not in found
