"""Releasing gated pods, against the real API server and its scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from ballast.kube.actions import Changed, Refused, Released, Vanished, release, release_many
from ballast.kube.names import GATE
from ballast.kube.pods import Held
from ballast.model import DEFAULT_LEVELS, Phase, Pin, Reason
from ballast.tenancy.lane import Lane
from tests.cluster.kube.cluster import OUR_GATE, Cluster
from tests.testbed.testbed import Testbed

pytestmark = pytest.mark.cluster

ZONE = "topology.kubernetes.io/zone"
FOREIGN = {"name": "example.com/quota"}


@pytest.fixture(scope="module")
def cluster(control_plane: Testbed) -> Cluster:
    cluster = Cluster.open(control_plane, "kube-release")
    cluster.node("n1", **{ZONE: "a", "disk": "ssd"})
    cluster.node("n2", **{ZONE: "b", "disk": "ssd"})
    return cluster


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def wants(key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


@pytest.mark.parametrize("pin", [Pin.ZONE, Pin.NODE])
def test_a_released_pod_is_bound_where_it_was_placed(cluster: Cluster, pin: Pin) -> None:
    name = f"placed-{pin.lower()}"
    order = cluster.order(cluster.executor(name), pin, node="n2", location=("b", None, "n2"))
    assert release(cluster.client, order, DEFAULT_LEVELS) == Released(pin)
    assert cluster.bound(name) == "n2"


def test_what_we_pinned_is_told_from_what_others_wrote(cluster: Cluster) -> None:
    theirs = cluster.executor("theirs", affinity=required(wants("disk", "ssd")))
    assert cluster.pod("theirs").executor is not None
    assert not pinned(cluster, "theirs")
    release(cluster.client, cluster.order(theirs), DEFAULT_LEVELS)
    assert pinned(cluster, "theirs")
    release(cluster.client, cluster.order(cluster.executor("free"), Pin.NONE), DEFAULT_LEVELS)
    assert not pinned(cluster, "free")


def pinned(cluster: Cluster, name: str) -> bool:
    facts = cluster.pod(name).executor
    assert facts is not None
    return facts.pinned_at is not None


def test_affinity_of_others_is_tightened_term_by_term(cluster: Cluster) -> None:
    affinity = required(
        wants("disk", "ssd"), {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
    )
    order = cluster.order(cluster.executor("affine", affinity=affinity), Pin.ZONE, node="n1")
    assert release(cluster.client, order, DEFAULT_LEVELS) == Released(Pin.ZONE)
    terms = cluster.pod("affine").constraints.affinity_terms
    assert [[r.key for r in term] for term in terms] == [["disk", ZONE], [ZONE, "metadata.name"]]
    assert cluster.bound("affine") == "n1"


def test_gates_of_others_are_left_alone(cluster: Cluster) -> None:
    order = cluster.order(cluster.executor("foreign", gates=[FOREIGN, OUR_GATE]))
    assert release(cluster.client, order, DEFAULT_LEVELS) == Released(Pin.ZONE)
    assert cluster.read("foreign")["spec"]["schedulingGates"] == [FOREIGN]


def test_an_empty_term_is_released_unpinned_with_the_reason(cluster: Cluster) -> None:
    affinity = required(wants("disk", "ssd"), {})
    order = cluster.order(cluster.executor("empty-term", affinity=affinity), Pin.NODE)
    assert release(cluster.client, order, DEFAULT_LEVELS) == Released(Pin.NONE, Reason.EMPTY_AFFINITY_TERM)
    assert cluster.bound("empty-term") in ("n1", "n2")


def test_another_version_of_the_same_pod_is_released_by_the_same_decision(cluster: Cluster) -> None:
    order = cluster.order(cluster.executor("touched"))
    cluster.patch("touched", {"metadata": {"annotations": {"touched": "yes"}}})
    assert release(cluster.client, order, DEFAULT_LEVELS) == Released(Pin.ZONE)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"spec": {"schedulingGates": [OUR_GATE]}}, id="another gate left"),
        pytest.param({"spec": {"affinity": required(wants("disk", "ssd"))}}, id="affinity was added"),
    ],
)
def test_a_pod_that_changed_is_decided_again(cluster: Cluster, change: dict[str, Any], request: Any) -> None:
    name = f"changed-{request.node.callspec.id.split()[0]}"
    order = cluster.order(cluster.executor(name, gates=[FOREIGN, OUR_GATE]))
    cluster.patch(name, change)
    assert isinstance(release(cluster.client, order, DEFAULT_LEVELS), Changed)
    assert cluster.pod(name).phase is Phase.GATED


def test_one_that_somebody_else_released_is_no_failure(cluster: Cluster) -> None:
    order = cluster.order(cluster.executor("released"))
    cluster.patch("released", {"spec": {"schedulingGates": []}})
    assert release(cluster.client, order, DEFAULT_LEVELS) == Released(already=True)


@pytest.mark.parametrize("pin", [Pin.ZONE, Pin.NODE])
def test_our_own_patch_whose_answer_was_lost_is_known_again(cluster: Cluster, pin: Pin) -> None:
    order = cluster.order(cluster.executor(f"unanswered-{pin.lower()}"), pin)
    first = release(cluster.client, order, DEFAULT_LEVELS)
    assert release(cluster.client, order, DEFAULT_LEVELS) == first == Released(pin)


def test_one_that_was_deleted_or_replaced_by_a_namesake_has_vanished(cluster: Cluster) -> None:
    order = cluster.order(cluster.executor("gone"))
    cluster.delete("gone")
    assert release(cluster.client, order, DEFAULT_LEVELS) == Vanished()
    cluster.executor("gone")
    assert release(cluster.client, order, DEFAULT_LEVELS) == Vanished()
    assert cluster.pod("gone").phase is Phase.GATED


def test_what_the_server_refuses_is_told_in_its_words(cluster: Cluster) -> None:
    order = cluster.order(cluster.executor("refused"), location=("not a label value!", None, "n1"))
    outcome = release(cluster.client, order, DEFAULT_LEVELS)
    assert isinstance(outcome, Refused)
    assert "not a label value!" in outcome.detail
    assert cluster.pod("refused").phase is Phase.GATED


def test_many_are_released_at_once(cluster: Cluster) -> None:
    orders = [cluster.order(cluster.executor(f"many-{n}")) for n in range(40)]
    cluster.delete("many-7")
    outcomes = release_many(cluster.client, Lane(), orders, DEFAULT_LEVELS, patiently=True)
    assert outcomes[7] == Vanished()
    assert [o for i, o in enumerate(outcomes) if i != 7] == [Released(Pin.ZONE)] * 39


def test_the_gate_is_what_the_server_calls_it(cluster: Cluster) -> None:
    seen = cluster.pod(cluster.executor("gated")["metadata"]["name"])
    assert seen.held == Held(cluster.read("gated")["metadata"]["resourceVersion"], (GATE,), None)
