"""Evictions by the operator: one pod at a time, known by its uid, and where they are granted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ballast.kube.kinds import EXECUTOR_MOVE, POD
from tests.cluster.chart.caller import Caller, account
from tests.cluster.chart.installation import NAMESPACE, RELEASE, Installation
from tests.cluster.chart.objects import eviction, move
from tests.cluster.kube.cluster import Cluster
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

HERE, ELSEWHERE = "evict-here", "evict-elsewhere"
NODE = "evict-1"


@pytest.fixture(scope="module")
def here(installed: Installation) -> Cluster:
    cluster = Cluster.open(installed.testbed, HERE)
    cluster.node(NODE)
    return cluster


@pytest.fixture(scope="module")
def elsewhere(here: Cluster) -> Cluster:
    """Another namespace, on the same node."""
    return Cluster.open(here.testbed, ELSEWHERE)


@pytest.fixture(scope="module")
def operator(installed: Installation) -> Iterator[Caller]:
    with installed.operator() as caller:
        yield caller


def asked(caller: Caller, pod: dict[str, Any], *, uid: str | None, dry: bool = False) -> tuple[int, str]:
    """The code and the words of the answer to an eviction."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    body = eviction(name, namespace, uid=uid)
    answer = caller.act(POD, name, subresource="eviction", body=body, namespace=namespace, dry=dry)
    return answer.code, answer.message


def test_a_running_executor_is_evicted_by_its_uid(here: Cluster, operator: Caller, installed: Installation) -> None:
    """Though it is on a node, where the operator may delete nothing itself."""
    pod = here.running("by-uid-exec-1", NODE)
    assert operator.delete(POD, "by-uid-exec-1", namespace=HERE).refused_by(f"{RELEASE}-delete")
    code, words = asked(operator, pod, uid=pod["metadata"]["uid"])
    assert code == 201, words
    assert installed.admin.read(POD, "by-uid-exec-1", namespace=HERE).code == 404


def test_without_a_uid_it_is_refused(here: Cluster, operator: Caller, installed: Installation) -> None:
    pod = here.running("by-name-exec-1", NODE)
    body = eviction("by-name-exec-1", HERE)
    for deletes in ({}, {"gracePeriodSeconds": 0}, {"preconditions": {"resourceVersion": "1"}}):
        asking = {**body, "deleteOptions": deletes} if deletes else body
        answer = operator.act(POD, "by-name-exec-1", subresource="eviction", body=asking, namespace=HERE)
        assert answer.refused_by(f"{RELEASE}-evict"), answer
        assert "Ballast evicts a pod by its uid: set deleteOptions.preconditions.uid" in answer.message
    code, words = asked(installed.admin, pod, uid=None)
    assert code == 201, words


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({}, True),
        ({"dryRun": ["All"]}, True),
        ({"gracePeriodSeconds": 0}, False),
        ({"gracePeriodSeconds": 600}, False),
        ({"propagationPolicy": "Foreground"}, False),
        ({"orphanDependents": True}, False),
    ],
    ids=str,
)
def test_an_executor_ends_as_its_own_pod_says(
    here: Cluster, operator: Caller, installed: Installation, options: dict[str, Any], allowed: bool
) -> None:
    """With a grace period of 0, it would lose the state that it hands on when it is decommissioned."""
    pod = here.running("patient-exec-1", NODE)
    body = eviction("patient-exec-1", HERE, uid=pod["metadata"]["uid"])
    body["deleteOptions"].update(options)
    answer = operator.act(POD, "patient-exec-1", subresource="eviction", body=body, namespace=HERE, dry=True)
    assert (answer.ok, answer.refused_by(f"{RELEASE}-evict")) == (allowed, not allowed), answer
    with account(installed.testbed, NAMESPACE, f"{RELEASE}-release") as releasing:
        assert (
            releasing.act(POD, "patient-exec-1", subresource="eviction", body=body, namespace=HERE, dry=True).code
            == 403
        )
    assert installed.admin.act(POD, "patient-exec-1", subresource="eviction", body=body, namespace=HERE, dry=True).ok
    assert installed.admin.delete(POD, "patient-exec-1", namespace=HERE).ok


@pytest.mark.parametrize(
    ("namespace", "name", "words"),
    [
        ("kube-system", "clicks-exec-1", "evicts nothing in kube-system"),
        (HERE, "clicks-driver", "evicts executors alone"),
        (HERE, "driver-named-by-its-user", "evicts executors alone"),
        (HERE, "clicks-exec-1-driver", "evicts executors alone"),
    ],
)
def test_neither_the_clusters_own_pods_nor_drivers_are_evicted(
    here: Cluster, operator: Caller, namespace: str, name: str, words: str
) -> None:
    """Whatever made the operator ask for it: here they look like executors otherwise."""
    pod = Cluster.open(here.testbed, namespace).running(name, NODE)
    code, told = asked(operator, pod, uid=pod["metadata"]["uid"])
    assert (code, words in told) == (403, True), told
    assert here.client.get(POD, name, namespace=namespace)["metadata"]["uid"] == pod["metadata"]["uid"]


def test_a_namesake_is_not_evicted(here: Cluster, operator: Caller, installed: Installation) -> None:
    pod = here.running("namesake-exec-1", NODE)
    code, words = asked(operator, pod, uid="another")
    assert code == 409, words
    assert installed.admin.read(POD, "namesake-exec-1", namespace=HERE).ok


def test_a_disruption_budget_is_respected(here: Cluster, operator: Caller, installed: Installation) -> None:
    budgeted = Cluster.open(here.testbed, "evict-budgeted")
    pod = budgeted.running("needed-exec-1", NODE)
    budgeted.budget("keep-one", min_available=1)
    code, words = asked(operator, pod, uid=pod["metadata"]["uid"])
    assert code == 429, words
    assert installed.admin.read(POD, "needed-exec-1", namespace=budgeted.namespace).ok


@pytest.mark.soak
def test_evictions_can_be_granted_in_chosen_namespaces_alone(
    here: Cluster, elsewhere: Cluster, operator: Caller, installed: Installation
) -> None:
    inside, outside = here.running("inside-exec-1", NODE), elsewhere.running("outside-exec-1", NODE)

    def may(pod: dict[str, Any]) -> bool:
        code, words = asked(operator, pod, uid=pod["metadata"]["uid"], dry=True)
        assert code in (201, 403), words
        return code == 201

    assert may(inside)
    assert may(outside)
    installed.upgrade(f"--set=evictionNamespaces={{{HERE}}}")
    wait_until(lambda: not may(outside), what="evictions elsewhere are refused")
    wait_until(lambda: may(inside), what="evictions here are allowed")
    refused = asked(operator, outside, uid=outside["metadata"]["uid"])[1]
    assert 'cannot create resource "pods/eviction"' in refused
    assert operator.create(EXECUTOR_MOVE, move("recorded", pod="outside-exec-1"), namespace=ELSEWHERE, dry=True).ok
    installed.upgrade()
    wait_until(lambda: may(outside), what="evictions are allowed everywhere again")
