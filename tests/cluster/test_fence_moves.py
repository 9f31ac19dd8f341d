"""Who may ask for a move: whoever may evict that pod, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from ballast.kube.kinds import EXECUTOR_MOVE, SPARK_TOPOLOGY
from tests.cluster.chart.caller import Caller, user
from tests.cluster.chart.installation import RELEASE, Installation, grant
from tests.cluster.chart.objects import move

pytestmark = pytest.mark.cluster

HERE, ELSEWHERE = "moves-here", "moves-elsewhere"
REMEDY = "you may not evict the pod {}: ask for the right to create pods/eviction in moves-here"
APPROVE = {"spec": {"approved": True}}


@pytest.fixture(scope="module")
def people(installed: Installation) -> Iterator[dict[str, Caller]]:
    """`planner` may write moves; `mover` may evict as well, `keeper` one pod; the others hold Kubernetes' own roles."""
    testbed = installed.testbed
    for namespace in (HERE, ELSEWHERE):
        testbed.create_namespace(namespace)
    for name in ("planner", "mover", "keeper"):
        grant(testbed, HERE, name, verbs=["create", "patch"], group="ballast.dev", resources=["executormoves"])
    grant(testbed, HERE, "mover", verbs=["create"], group="", resources=["pods/eviction"])
    grant(testbed, HERE, "keeper", verbs=["create"], group="", resources=["pods/eviction"], names=["mine"])
    for role, name in (("edit", "editor"), ("view", "viewer")):
        testbed.kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={name}", f"-n={HERE}")
    with ExitStack() as stack:
        names = ("planner", "mover", "keeper", "editor", "viewer")
        yield {name: stack.enter_context(user(testbed, name)) for name in names}


@pytest.mark.parametrize("approved", [False, True])
def test_who_may_not_evict_may_not_ask_for_a_move(people: dict[str, Caller], approved: bool) -> None:
    asked = move("asked", pod="exec-1", approved=approved)
    answer = people["planner"].create(EXECUTOR_MOVE, asked, namespace=HERE, dry=True)
    assert answer.refused_by(f"{RELEASE}-move"), answer
    assert REMEDY.format("exec-1") in answer.message


def test_nobody_passes_a_move_off_as_one_of_the_operators(people: dict[str, Caller]) -> None:
    """The operator counts its own proposals, and believes their predictions."""
    asked = move("asked", pod="exec-1")
    for strategy, allowed in (("Manual", True), ("AvgShedder", False)):
        asked["spec"]["reason"] = {"strategy": strategy}
        answer = people["mover"].create(EXECUTOR_MOVE, asked, namespace=HERE, dry=True)
        assert (answer.ok, answer.refused_by(f"{RELEASE}-move")) == (allowed, not allowed), answer


@pytest.mark.parametrize("name", ["mover", "editor"])
def test_who_may_evict_may_ask_for_a_move(people: dict[str, Caller], name: str) -> None:
    answer = people[name].create(EXECUTOR_MOVE, move("asked", pod="exec-1"), namespace=HERE, dry=True)
    assert answer.ok, answer.message


def test_the_right_to_evict_one_pod_is_that_to_move_it(people: dict[str, Caller]) -> None:
    keeper = people["keeper"]
    assert keeper.create(EXECUTOR_MOVE, move("asked", pod="mine"), namespace=HERE, dry=True).ok
    answer = keeper.create(EXECUTOR_MOVE, move("asked", pod="yours"), namespace=HERE, dry=True)
    assert answer.refused_by(f"{RELEASE}-move"), answer
    assert REMEDY.format("yours") in answer.message


def test_a_right_in_one_namespace_is_none_in_another(people: dict[str, Caller]) -> None:
    answer = people["mover"].create(EXECUTOR_MOVE, move("asked", pod="exec-1"), namespace=ELSEWHERE, dry=True)
    assert answer.code == 403
    assert 'cannot create resource "executormoves"' in answer.message


def test_who_may_only_look_asks_for_nothing(people: dict[str, Caller]) -> None:
    viewer = people["viewer"]
    assert viewer.read(EXECUTOR_MOVE, namespace=HERE).ok
    assert viewer.create(EXECUTOR_MOVE, move("asked", pod="exec-1"), namespace=HERE, dry=True).code == 403


def test_the_operator_proposes_and_others_who_may_evict_approve(
    installed: Installation, people: dict[str, Caller]
) -> None:
    with installed.operator() as operator:
        assert operator.create(EXECUTOR_MOVE, move("proposed", pod="exec-1"), namespace=HERE).ok
        assert operator.patch(EXECUTOR_MOVE, "proposed", APPROVE, namespace=HERE).code == 403
    refused = people["planner"].patch(EXECUTOR_MOVE, "proposed", APPROVE, namespace=HERE)
    assert refused.refused_by(f"{RELEASE}-move"), refused
    assert REMEDY.format("exec-1") in refused.message
    approved = people["mover"].patch(EXECUTOR_MOVE, "proposed", APPROVE, namespace=HERE)
    assert approved.body["spec"]["approved"] is True
    assert installed.admin.delete(EXECUTOR_MOVE, "proposed", namespace=HERE).ok


TOPOLOGY = {"apiVersion": SPARK_TOPOLOGY.api_version, "kind": SPARK_TOPOLOGY.kind, "name": "clicks", "uid": "1"}
DRIVER = {"apiVersion": "v1", "kind": "Pod", "name": "clicks-driver", "uid": "2"}


@pytest.mark.parametrize(
    ("metadata", "allowed"),
    [
        ({}, True),
        ({"ownerReferences": []}, True),
        ({"ownerReferences": [TOPOLOGY]}, True),
        ({"ownerReferences": [DRIVER]}, True),
        ({"ownerReferences": [TOPOLOGY, DRIVER]}, False),
        ({"ownerReferences": [{**TOPOLOGY, "name": "another"}]}, False),
        ({"ownerReferences": [{**TOPOLOGY, "controller": True}]}, False),
        ({"ownerReferences": [{**DRIVER, "blockOwnerDeletion": True}]}, False),
        ({"ownerReferences": [{**DRIVER, "kind": "ConfigMap"}]}, False),
        ({"finalizers": ["example.com/forever"]}, False),
        ({"finalizers": ["foregroundDeletion"]}, False),
    ],
    ids=str,
)
def test_a_move_of_the_operators_keeps_nothing_from_being_deleted(
    installed: Installation, people: dict[str, Caller], metadata: dict[str, Any], allowed: bool
) -> None:
    """With its token, a finalizer would keep every namespace, and a chart's definitions, from ending."""
    asked = move("kept", pod="exec-1")
    asked["metadata"].update(metadata)
    with installed.operator() as operator:
        answer = operator.create(EXECUTOR_MOVE, asked, namespace=HERE, dry=True)
    assert (answer.ok, answer.refused_by(f"{RELEASE}-own")) == (allowed, not allowed), answer
    assert people["mover"].create(EXECUTOR_MOVE, asked, namespace=HERE, dry=True).ok


def test_with_a_status_nothing_else_of_a_move_is_written(installed: Installation, people: dict[str, Caller]) -> None:
    assert installed.admin.create(EXECUTOR_MOVE, move("stated", pod="exec-1"), namespace=HERE).ok
    more = {"metadata": {"finalizers": ["example.com/forever"]}, "status": {"phase": "Refused"}}
    with installed.operator() as operator:
        written = operator.patch(EXECUTOR_MOVE, "stated", more, namespace=HERE, subresource="status")
        assert (written.ok, "finalizers" in written.body["metadata"]) == (True, False), written
        assert operator.patch(EXECUTOR_MOVE, "stated", more, namespace=HERE).code == 403
    assert installed.admin.delete(EXECUTOR_MOVE, "stated", namespace=HERE).ok


def test_a_move_may_be_labeled_without_the_right_to_evict(installed: Installation, people: dict[str, Caller]) -> None:
    assert installed.admin.create(EXECUTOR_MOVE, move("labeled", pod="exec-1"), namespace=HERE).ok
    label = {"metadata": {"labels": {"team": "ads"}}}
    assert people["planner"].patch(EXECUTOR_MOVE, "labeled", label, namespace=HERE).ok
    assert installed.admin.delete(EXECUTOR_MOVE, "labeled", namespace=HERE).ok


def test_only_the_operator_says_how_a_move_went(installed: Installation, people: dict[str, Caller]) -> None:
    assert installed.admin.create(EXECUTOR_MOVE, move("told", pod="exec-1"), namespace=HERE).ok
    told = {"status": {"phase": "Succeeded"}}
    by_editor = people["editor"].patch(EXECUTOR_MOVE, "told", told, namespace=HERE, subresource="status")
    assert by_editor.code == 403
    beside = people["editor"].patch(EXECUTOR_MOVE, "told", told, namespace=HERE)
    assert "phase" not in beside.body["status"]
    with installed.operator() as operator:
        assert operator.patch(EXECUTOR_MOVE, "told", told, namespace=HERE, subresource="status").ok
    assert installed.admin.delete(EXECUTOR_MOVE, "told", namespace=HERE).ok
