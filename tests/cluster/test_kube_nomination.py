"""Nominating gated pods, against the real API server and its scheduler."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from ballast.kube.actions import Changed, Refused, release
from ballast.kube.nomination import Cleared, Nominated, clear_nomination, nominate
from ballast.kube.pods import Nomination
from ballast.model import DEFAULT_LEVELS, Pin
from tests.cluster.kube.cluster import Cluster
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

ZONE = "topology.kubernetes.io/zone"
HERE = {"kubernetes.io/hostname": "contended"}
"""The only node that the competitor may go to."""


@pytest.fixture(scope="module")
def cluster(control_plane: Testbed) -> Cluster:
    cluster = Cluster.open(control_plane, "kube-nomination")
    for name in ("contended", "roomy", "spare"):
        cluster.node(name, **{ZONE: "n"})
        wait_until(partial(cluster.takes_pods, name), what=f"{name} takes pods")
    return cluster


def asking(cpu: str) -> dict[str, Any]:
    return {"name": "spark-kubernetes-executor", "image": "spark", "resources": {"requests": {"cpu": cpu}}}


def unschedulable(cluster: Cluster, name: str) -> bool:
    conditions = cluster.read(name)["status"].get("conditions") or ()
    return any(each.get("reason") == "Unschedulable" for each in conditions)


def test_a_gated_pod_keeps_its_room_from_one_of_equal_priority_and_is_bound_there(cluster: Cluster) -> None:
    cluster.executor("placed", containers=[asking("40")])
    outcome = nominate(cluster.client, cluster.pod("placed"), "contended")
    assert isinstance(outcome, Nominated)
    assert cluster.pod("placed").nomination == Nomination("contended", ours=True)
    cluster.executor("competitor", gates=[], containers=[asking("40")], nodeSelector=HERE)
    wait_until(lambda: unschedulable(cluster, "competitor"), what="the competitor finds no room")
    order = cluster.order(cluster.read("placed"), Pin.ZONE, node="contended", location=("n", None, "contended"))
    release(cluster.client, order, DEFAULT_LEVELS)
    assert cluster.bound("placed") == "contended"
    assert cluster.pod("placed").nomination is None, "binding has cleared it"


def test_a_pod_whose_node_is_full_goes_elsewhere_at_once(cluster: Cluster) -> None:
    cluster.executor("first", gates=[], containers=[asking("64")], nodeSelector={"kubernetes.io/hostname": "roomy"})
    cluster.bound("first")
    cluster.executor("late", containers=[asking("32")])
    nominate(cluster.client, cluster.pod("late"), "roomy")
    order = cluster.order(cluster.read("late"), Pin.ZONE, node="roomy", location=("n", None, "roomy"))
    release(cluster.client, order, DEFAULT_LEVELS)
    assert cluster.bound("late") == "spare"


def test_our_nomination_is_cleared_and_not_that_of_another(cluster: Cluster) -> None:
    cluster.executor("ours")
    nominate(cluster.client, cluster.pod("ours"), "roomy")
    stale = cluster.pod("ours")
    cluster.patch("ours", {"metadata": {"annotations": {"touched": "yes"}}})
    assert isinstance(clear_nomination(cluster.client, stale), Changed), "it is guarded by the version"
    cleared = clear_nomination(cluster.client, cluster.pod("ours"))
    assert cleared == Cleared(cluster.pod("ours").held), "as the release after it needs it"
    assert cluster.pod("ours").nomination is None
    theirs = cluster.executor("theirs")["metadata"]["name"]
    cluster.testbed.kubectl(
        "patch", "pod", theirs, "--namespace=kube-nomination", "--subresource=status", "--type=merge",
        '--patch={"status": {"nominatedNodeName": "spare"}}',
    )  # fmt: skip
    assert cluster.pod("theirs").nomination == Nomination("spare", ours=False)
    assert isinstance(clear_nomination(cluster.client, cluster.pod("theirs")), Changed)


def test_what_kube_scheduler_leaves_of_a_pod_that_finds_no_node_counts_as_ours_in_any_name(
    cluster: Cluster,
) -> None:
    """It removes a nomination itself, unless the pod may preempt no other; and then it nominates that pod nowhere."""
    never: dict[str, Any] = {"metadata": {"name": "never"}, "value": 0, "preemptionPolicy": "Never"}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    cluster.testbed.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {**kind, **never})
    for name, priority in (("may", ""), ("never", "never")):
        cluster.executor(name, containers=[asking("65")], nodeSelector=HERE, priorityClassName=priority)
        nominate(cluster.client, cluster.pod(name), "contended")
        order = cluster.order(cluster.read(name), Pin.ZONE, node="contended", location=("n", None, "contended"))
        release(cluster.client, order, DEFAULT_LEVELS)
        wait_until(partial(unschedulable, cluster, name), what=f"{name} finds no node")
    wait_until(lambda: cluster.pod("may").nomination is None, what="kube-scheduler removes that of the one")
    status = next(each for each in cluster.read("never")["metadata"]["managedFields"] if each.get("subresource"))
    cluster.patch("never", {"metadata": {"managedFields": [{**status, "manager": "kube-scheduler"}]}})
    assert cluster.pod("never").nomination == Nomination("contended", ours=True)
    assert isinstance(clear_nomination(cluster.client, cluster.pod("never")), Cleared)
    assert cluster.pod("never").nomination is None


@pytest.mark.parametrize(
    ("kind", "does"),
    [
        ("Validating", {"validations": [{"expression": "false", "reason": "Forbidden"}]}),
        (
            "Mutating",
            {
                "reinvocationPolicy": "Never",
                "mutations": [
                    {
                        "patchType": "ApplyConfiguration",
                        "applyConfiguration": {
                            "expression": "Object{status: Object.status{message: object.metadata.annotations['none']}}"
                        },
                    }
                ],
            },
        ),
    ],
    ids=["forbidden", "it can't be evaluated"],
)
def test_what_a_policy_of_one_namespace_refuses_is_no_want_of_a_right(
    cluster: Cluster, control_plane: Testbed, kind: str, does: dict[str, Any]
) -> None:
    """For want of a right, no executor of any namespace is nominated for ten minutes."""
    name = f"refusing-{kind.lower()}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods/status"]}
    here = {"kubernetes.io/metadata.name": cluster.namespace}
    matched = {"resourceRules": [rule], "namespaceSelector": {"matchLabels": here}}
    spec = {"failurePolicy": "Fail", "matchConstraints": matched, **does}
    bound = {"policyName": name, **({"validationActions": ["Deny"]} if kind == "Validating" else {})}
    group = "admissionregistration.k8s.io/v1"
    control_plane.apply(
        {"apiVersion": group, "kind": f"{kind}AdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {"apiVersion": group, "kind": f"{kind}AdmissionPolicyBinding", "metadata": {"name": name}, "spec": bound},
    )
    pod = f"{name}-exec-1"
    cluster.executor(pod)
    try:
        refused = wait_until(lambda: _refused(cluster, pod, name), what="the policy refuses nominations")
    finally:
        for each in (f"{kind}AdmissionPolicyBinding", f"{kind}AdmissionPolicy"):
            control_plane.kubectl("delete", each, name)
    assert not refused.forbidden, refused


def _refused(cluster: Cluster, pod: str, policy: str) -> Refused | None:
    """A policy is at work a moment after it was made, which may be between the two, and for a moment longer."""
    for outcome in (
        nominate(cluster.client, cluster.pod(pod), "roomy"),
        clear_nomination(cluster.client, cluster.pod(pod)),
    ):
        if isinstance(outcome, Refused) and f"'{policy}'" in outcome.detail:
            return outcome
    return None
