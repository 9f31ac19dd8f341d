from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.kube import names
from ballast.kube.pods import Held, Nomination, Pod, PodReader
from ballast.kube.requested import Requested
from ballast.model import Phase, Requirement, Resources, Toleration
from tests.unit.kube.builders import (
    CREATED_AT,
    FOREIGN_GATE,
    GATE,
    NOMINATED_BY_US,
    container,
    driver,
    executor,
    expression,
    pinned_by_us,
    pod,
    required,
)


def read(raw: dict[str, Any]) -> Pod:
    return PodReader().read(raw)


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        pytest.param({"gates": [GATE]}, Phase.GATED, id="our gate"),
        pytest.param({"gates": [FOREIGN_GATE, GATE]}, Phase.GATED, id="our gate and another"),
        pytest.param({"gates": [FOREIGN_GATE]}, Phase.PENDING, id="only another's gate"),
        pytest.param({"gates": [FOREIGN_GATE], "phase": "Running"}, Phase.PENDING, id="run by another cluster"),
        pytest.param({}, Phase.PENDING, id="not bound"),
        pytest.param({"node": "node-1", "phase": "Pending"}, Phase.PENDING, id="bound, starting"),
        pytest.param({"node": "node-1"}, Phase.RUNNING, id="running"),
        pytest.param({"node": "node-1", "leaving": True}, Phase.LEAVING, id="being deleted"),
        pytest.param({"gates": [GATE], "leaving": True}, Phase.LEAVING, id="deleted while gated"),
        pytest.param({"node": "node-1", "phase": "Failed", "leaving": True}, Phase.ENDED, id="failed"),
        pytest.param({"node": "node-1", "phase": "Succeeded"}, Phase.ENDED, id="succeeded"),
    ],
)
def test_phases(changes: dict[str, Any], phase: Phase) -> None:
    assert read(executor(**changes)).phase is phase


def test_a_driver_is_never_an_executor() -> None:
    assert read(driver()).executor is None
    assert read(driver()).is_driver


def test_pods_of_a_lower_priority_are_preempted_but_for_sparks_own_known_or_beyond_a_limit() -> None:
    other = read(pod("web", node="node-1"))
    assert other.is_preempted_by(1)
    assert not other.is_preempted_by(0)
    assert not any(read(each).is_preempted_by(1) for each in (executor(node="node-1"), driver()))
    assert not replace(other, beyond="more than 64 shapes").is_preempted_by(1)


@pytest.mark.parametrize(("policy", "ours"), [("Never", True), ("PreemptLowerPriority", False)])
def test_where_a_pod_may_preempt_no_other_its_author_cannot_ascribe_our_nomination_to_another_controller(
    policy: str, *, ours: bool
) -> None:
    """kube-scheduler would leave it, and with it the room of a node, until the pod is gone."""
    forged = [{**NOMINATED_BY_US, "manager": "kube-scheduler"}]
    pod = executor(status={"nominatedNodeName": "n1"}, managed_fields=forged, preemptionPolicy=policy)
    assert read(pod).nomination == Nomination("n1", ours=ours)


@pytest.mark.parametrize(
    ("status", "by", "nomination"),
    [
        ({}, [], None),
        ({"nominatedNodeName": "n1"}, [NOMINATED_BY_US], Nomination("n1", ours=True)),
        ({"nominatedNodeName": "n1"}, [{**NOMINATED_BY_US, "manager": "other"}], Nomination("n1", ours=False)),
        # Its author has emptied managedFields, so no manager is named.
        ({"nominatedNodeName": "n1"}, [], Nomination("n1", ours=True)),
        ({"nominatedNodeName": "n1"}, [pinned_by_us("2026-11-21T10:05:00Z")], Nomination("n1", ours=True)),
        ({}, [NOMINATED_BY_US], None),
    ],
)
def test_a_nomination_is_ours_if_we_wrote_it(
    status: dict[str, Any], by: list[dict[str, Any]], nomination: Nomination | None
) -> None:
    assert read(executor(status=status, managed_fields=by)).nomination == nomination


def test_constraints_come_with_fields_selectors_and_tolerations() -> None:
    raw = executor(
        nodeSelector={"disk": "ssd", "arch": "arm64"},
        affinity=required(
            {
                "matchExpressions": [expression("zone", "a", "b"), {"key": "gpu", "operator": "DoesNotExist"}],
                "matchFields": [expression("metadata.name", "node-1")],
            },
            {},
        ),
        tolerations=[{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
    )
    found = read(raw).constraints
    assert found.node_selector == (("arch", "arm64"), ("disk", "ssd"))
    assert found.affinity_terms == (
        (
            Requirement("zone", "In", ("a", "b")),
            Requirement("gpu", "DoesNotExist"),
            Requirement("metadata.name", "In", ("node-1",), on_field=True),
        ),
        (),
    )
    assert found.tolerations == (Toleration("spot", "Exists", "", "NoSchedule"),)


def test_executors_of_one_template_share_their_constraints() -> None:
    reader = PodReader()
    first, second = (reader.read(executor(n, nodeSelector={"pool": "a"})) for n in (1, 2))
    assert first.constraints is second.constraints


def test_claims_are_named_directly_or_made_for_the_pod() -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "shuffle-1"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "tmp", "emptyDir": {}},
    ]
    assert read(executor(volumes=volumes)).claims == ("shuffle-1", "spark-1-exec-1-scratch")


def test_what_a_release_needs_is_kept_of_gated_pods_only() -> None:
    affinity = required({"matchExpressions": [expression("zone", "a")]})
    kept = read(executor(gates=[FOREIGN_GATE, GATE], affinity=affinity)).held
    assert kept is not None
    assert kept == Held("7", (FOREIGN_GATE["name"], GATE["name"]), affinity["nodeAffinity"], has_affinity=True, index=1)
    assert read(executor()).held is None


def test_of_a_gated_pods_affinity_only_what_a_release_writes_into_is_kept() -> None:
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}] * 9_000}}
    assert read(executor(gates=[GATE], affinity=affinity)).held == Held("7", (GATE["name"],), None, has_affinity=True)


def test_a_node_affinity_that_is_too_long_is_not_kept() -> None:
    affinity = required({"matchExpressions": [expression("zone", "a" * 63) for _ in range(500)]})
    kept = read(executor(gates=[GATE], affinity=affinity)).held
    assert kept == Held("7", (GATE["name"],), None, has_affinity=True, unread=True)


def test_our_gate_is_seen_in_any_pod() -> None:
    kept = read(driver(node=None, gates=[GATE])).held
    assert kept is not None
    assert kept.gates == (GATE["name"],)


def test_an_ended_pod_holds_nothing() -> None:
    assert read(pod(node="node-1", phase="Succeeded")).requests.cpu_cores == 0


def gpus(number: int, amount: str, **more: Any) -> Pod:
    asked = {"requests": {"cpu": "500m", "memory": "1Gi", "example.com/gpu": amount}}
    return read(executor(number, containers=[container(resources=asked)], **more))


def test_what_is_requested_on_a_node_is_the_sum_of_those_that_hold_something_there() -> None:
    before = {"node-1": Resources(1.0, 2.0**30, 1.0), "node-2": Resources(4.0)}
    found = Requested(before)
    for each in (
        gpus(1, "1", node="node-1"),
        gpus(2, "2", node="node-1", leaving=True),
        gpus(3, "4", node="node-1", phase="Succeeded"),
        gpus(4, "8"),
        gpus(5, "16", node="node-3"),
    ):
        found.add(each)
    assert found.on("node-1") == Resources(2.0, 3 * 2.0**30, 3.0, (("example.com/gpu", 3.0),))
    assert found.on("node-2") == Resources(4.0)
    assert found.on("node-3").extended == (("example.com/gpu", 16.0),)
    assert found.on("nowhere") == Resources()


@pytest.mark.parametrize(
    "changes",
    [
        {"containers": [{"name": "a", "resources": {"requests": {"memory": "1e+1000"}}}]},
        {"containers": [{"name": "a", "resources": {"requests": {"cpu": "much"}}}]},
    ],
    ids=["an exponent of four digits", "no amount"],
)
def test_a_pod_that_cannot_be_read_is_seen_without_what_it_asks_for(
    changes: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """It would hide all pods that are listed with it, and nothing would release them."""
    pod = executor(gates=[GATE], annotations={"ballast.dev/gate": "disabled"}, **changes)
    found = read(pod)
    assert (found.name, found.created_at, found.phase) == ("spark-1-exec-1", CREATED_AT, Phase.GATED)
    assert (found.executor and found.executor.application, found.executor and found.executor.opted_out) == (
        "spark-1",
        True,
    )
    assert found.requests.cpu_cores == 0.0
    assert "what it asks for and demands of analytics/spark-1-exec-1 can't be read" in caplog.text


@pytest.mark.parametrize(
    "changes",
    [
        {"affinity": {"nodeAffinity": "anything"}},
        {"status": {"conditions": [{}]}},
        {"topologySpreadConstraints": ["anything"]},
    ],
    ids=["an affinity", "a status", "a spread"],
)
def test_what_a_pod_asks_for_is_seen_although_what_it_demands_cannot_be_read(changes: dict[str, Any]) -> None:
    """Its node would look free. Nor may a release write over an affinity that was not read."""
    more = {"nodeSelector": {"disk": "ssd"}, "gates": [GATE], **changes}
    found = read(executor(containers=[container(cpu="30", memory="1Gi")], overhead={"cpu": "2"}, **more))
    assert (found.requests.cpu_cores, found.requests.memory_bytes) == (32.0, 2.0**30)
    assert found.constraints.unread
    assert found.held is not None
    assert found.held.unread


@pytest.mark.parametrize("time", ["0000-01-01T00:00:00Z", "10000-01-01T04:59:59Z"])
def test_no_time_in_managed_fields_hides_what_a_pod_asks_for(time: str) -> None:
    """The pod's author may write any time, and the API server returns it. The pod's node must not look free."""
    required: dict[str, Any] = {"f:requiredDuringSchedulingIgnoredDuringExecution": {}}
    fields = {"f:spec": {"f:affinity": {"f:nodeAffinity": required}}}
    entry = {"manager": names.FIELD_MANAGER, "operation": "Update", "time": time, "fieldsV1": fields}
    plain: dict[str, Any] = {"node": "node-1", "nodeSelector": {"disk": "ssd"}, "containers": [container(cpu="30")]}
    found = read(executor(managed_fields=[entry], **plain))
    assert found == read(executor(**plain))
    assert found.requests.cpu_cores == 30.0


def test_what_is_no_pod_is_not_read() -> None:
    with pytest.raises(KeyError, match="name"):
        read(executor(gates=[{}]))


@pytest.mark.parametrize("zeros", [40, 5000])
def test_no_amount_with_many_digits_hides_the_others(zeros: int) -> None:
    """The API server returns such an amount as it was written."""
    asked = [container(cpu="30"), container("other", cpu="0" * zeros + "5"), container("third", cpu="0" * zeros + "1.")]
    assert read(pod(containers=asked, node="node-1")).requests.cpu_cores == 36.0
