"""What the chart's roles let its accounts and a namespace's users do, asked by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from ballast.kube.client import Client
from ballast.kube.connection import Connection
from ballast.kube.kinds import BALANCING_POLICY, EVENT, GATE_SWITCH, LEASE, SECRET, SPARK_TOPOLOGY, Kind
from ballast.kube.objects import write_status
from tests.cluster.chart.caller import Caller, account, user
from tests.cluster.chart.installation import NAMESPACE, RELEASE, Installation
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

TENANT, NEIGHBOR = "rights-tenant", "rights-neighbor"
SPEC = {"spec": {"interval": "30s"}}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "driver", "uid": "1"}
REVIEW = Kind("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)


@pytest.fixture(scope="module")
def chart(installed: Installation) -> Installation:
    for namespace in (TENANT, NEIGHBOR):
        installed.testbed.create_namespace(namespace)
    return installed


@pytest.fixture(scope="module")
def callers(chart: Installation) -> Iterator[dict[str, Caller]]:
    """The operator, the account that releases, and a tenant who may edit one namespace."""
    chart.testbed.kubectl("delete", "lease", RELEASE, f"-n={NAMESPACE}", "--ignore-not-found")
    chart.testbed.kubectl("create", "rolebinding", "tenant", "--clusterrole=edit", "--user=tenant", f"-n={TENANT}")
    with ExitStack() as stack:
        yield {
            "operator": stack.enter_context(chart.operator()),
            "release": stack.enter_context(account(chart.testbed, NAMESPACE, f"{RELEASE}-release")),
            "tenant": stack.enter_context(user(chart.testbed, "tenant")),
        }


def secret(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"token": "t"}}


def event(name: str) -> dict[str, Any]:
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {"name": name},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "ballast.dev/operator",
        "reportingInstance": "replica-1",
        "action": "Place",
        "reason": "Placed",
        "regarding": {"kind": "Namespace", "namespace": TENANT, "name": TENANT},
        "type": "Normal",
    }


def topology(name: str) -> dict[str, Any]:
    metadata = {"name": name}
    kind = {"apiVersion": SPARK_TOPOLOGY.api_version, "kind": SPARK_TOPOLOGY.kind}
    return {**kind, "metadata": metadata, "spec": {"components": [{"name": "ingest"}]}}


def policy(name: str) -> dict[str, Any]:
    kind = {"apiVersion": BALANCING_POLICY.api_version, "kind": BALANCING_POLICY.kind}
    spec = {"nodeSelector": {}, "namespaceSelector": {}, "metrics": {"prometheus": {"url": "http://prometheus"}}}
    return {**kind, "metadata": {"name": name}, "spec": spec}


@pytest.mark.soak
def test_only_the_secrets_that_the_chart_lists_are_read_and_only_in_the_operators_own_namespace(
    chart: Installation, callers: dict[str, Caller]
) -> None:
    for namespace in (NAMESPACE, TENANT):
        assert chart.admin.create(SECRET, secret("prometheus"), namespace=namespace).ok
    operator = callers["operator"]
    assert operator.read(SECRET, "prometheus", namespace=NAMESPACE).code == 403
    chart.upgrade("--set=prometheus.secrets={prometheus}")
    wait_until(lambda: operator.read(SECRET, "prometheus", namespace=NAMESPACE).ok, what="the secret is granted")
    elsewhere = operator.read(SECRET, "prometheus", namespace=TENANT)
    assert elsewhere.code == 403
    assert "token" not in str(elsewhere.body)
    for name in (None, *helm_secrets(chart)):
        assert operator.read(SECRET, name, namespace=NAMESPACE).code == 403
    assert callers["release"].read(SECRET, "prometheus", namespace=NAMESPACE).code == 403
    chart.upgrade()


def helm_secrets(chart: Installation) -> list[str]:
    """In which Helm keeps the release with all its values."""
    found = [each["metadata"]["name"] for each in chart.admin.read(SECRET, namespace=NAMESPACE).body["items"]]
    kept = [name for name in found if name.startswith("sh.helm.release.")]
    assert kept
    return kept


def test_specs_are_the_users_own(chart: Installation, callers: dict[str, Caller]) -> None:
    assert chart.admin.create(BALANCING_POLICY, policy("rights")).ok
    assert chart.admin.create(SPARK_TOPOLOGY, topology("rights"), namespace=TENANT).ok
    operator = callers["operator"]
    assert operator.patch(BALANCING_POLICY, "rights", SPEC).code == 403
    assert operator.patch(SPARK_TOPOLOGY, "rights", SPEC, namespace=TENANT).code == 403
    before = chart.admin.read(BALANCING_POLICY, "rights").body["spec"]
    both = {**SPEC, "status": {"observedGeneration": 1}}
    assert operator.patch(BALANCING_POLICY, "rights", both, subresource="status").ok
    after = chart.admin.read(BALANCING_POLICY, "rights").body
    assert (after["spec"], after["status"]["observedGeneration"]) == (before, 1)
    assert operator.delete(BALANCING_POLICY, "rights").code == 403
    assert chart.admin.delete(BALANCING_POLICY, "rights").ok


TIMES = ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:00", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00x5Z"]


@pytest.mark.parametrize("time", TIMES)
def test_no_status_has_a_time_that_the_operator_can_not_read(
    chart: Installation, callers: dict[str, Caller], time: str
) -> None:
    """Its policy or topology would count as not valid for good, and the switch would end its reconciles."""
    chart.switch(gating=False)
    assert chart.admin.create(BALANCING_POLICY, policy("timed")).ok
    operator, release = callers["operator"], callers["release"]
    condition = {"type": "Ready", "status": "True", "reason": "Reconciled", "lastTransitionTime": time}
    for when, code in ((time, 422), ("2026-01-01T00:00:00.123456+02:00", 200)):
        conditions = {"status": {"conditions": [{**condition, "lastTransitionTime": when}]}}
        heartbeat = {"status": {"heartbeatTime": when}}
        assert operator.patch(BALANCING_POLICY, "timed", conditions, subresource="status", dry=True).code == code
        assert release.patch(GATE_SWITCH, RELEASE, heartbeat, subresource="status", dry=True).code == code
    assert chart.admin.delete(BALANCING_POLICY, "timed").ok
    chart.remove_switch()


def test_a_tenant_declares_topologies_in_the_own_namespace_only(callers: dict[str, Caller]) -> None:
    tenant = callers["tenant"]
    assert tenant.create(SPARK_TOPOLOGY, topology("mine"), namespace=TENANT, dry=True).ok
    assert tenant.create(SPARK_TOPOLOGY, topology("mine"), namespace=NEIGHBOR, dry=True).code == 403


def test_a_tenant_neither_sets_policy_nor_turns_the_switch(callers: dict[str, Caller]) -> None:
    tenant = callers["tenant"]
    assert tenant.create(BALANCING_POLICY, policy("mine"), dry=True).code == 403
    assert tenant.patch(GATE_SWITCH, RELEASE, {"spec": {"gating": True}}, dry=True).code == 403


def test_a_status_is_written_on_top_of_labels_that_a_user_changes(chart: Installation) -> None:
    seen = chart.admin.create(SPARK_TOPOLOGY, topology("labeled"), namespace=TENANT).body
    labels = {"metadata": {"labels": {"team": "ads"}}}
    assert chart.admin.patch(SPARK_TOPOLOGY, "labeled", labels, namespace=TENANT).ok
    client = Client(Connection.from_kubeconfig(chart.testbed.service_account_kubeconfig(NAMESPACE, RELEASE)))
    found = write_status(client, SPARK_TOPOLOGY, seen, {"observedGeneration": 1})
    client.close()
    assert found is not None
    assert (found["metadata"]["labels"], found["status"]["observedGeneration"]) == ({"team": "ads"}, 1)
    assert chart.admin.delete(SPARK_TOPOLOGY, "labeled", namespace=TENANT).ok


def test_only_its_own_switch_and_lease_are_its_to_write(chart: Installation, callers: dict[str, Caller]) -> None:
    chart.switch(gating=False)
    for name in ("operator", "release"):
        off = {"spec": {"gating": False}}
        assert callers[name].patch(GATE_SWITCH, RELEASE, off).ok
        assert callers[name].patch(GATE_SWITCH, "somebody", off).code == 403
        for part in ({"finalizers": ["ballast.dev/x"]}, {"labels": {"x": "y"}}, {"generateName": "x-"}):
            answer = callers[name].patch(GATE_SWITCH, RELEASE, {"metadata": part}, dry=True)
            assert answer.refused_by(f"{RELEASE}-switch"), (name, part)
    on = {"spec": {"gating": True}}
    assert callers["operator"].patch(GATE_SWITCH, RELEASE, on, dry=True).ok
    assert callers["release"].patch(GATE_SWITCH, RELEASE, on, dry=True).refused_by(f"{RELEASE}-switch")
    chart.switch(gating=True, namespaces=("one", "two"))
    for spec, allowed in (
        ({"namespaces": ["one"], "restingNamespaces": ["two"]}, True),
        ({"namespaces": ["one", "two", "three"]}, False),
        ({"allNamespaces": True}, False),
    ):
        answer = callers["release"].patch(GATE_SWITCH, RELEASE, {"spec": spec}, dry=True)
        assert answer.ok is allowed, (spec, answer)
    chart.remove_switch()
    switch = {"apiVersion": GATE_SWITCH.api_version, "kind": GATE_SWITCH.kind, "spec": {"gating": True}}
    own, foreign = ({**switch, "metadata": {"name": name}} for name in (RELEASE, "somebody"))
    assert callers["operator"].create(GATE_SWITCH, own, dry=True).ok
    assert callers["operator"].create(GATE_SWITCH, foreign, dry=True).refused_by(f"{RELEASE}-switch")
    assert chart.admin.create(GATE_SWITCH, foreign, dry=True).ok
    lease = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": {"name": RELEASE}, "spec": {}}
    assert callers["operator"].create(LEASE, lease, namespace=NAMESPACE, dry=True).ok
    assert callers["operator"].create(LEASE, lease, namespace="kube-system", dry=True).code == 403


def test_what_it_creates_keeps_nothing_from_being_deleted(chart: Installation, callers: dict[str, Caller]) -> None:
    """Events are created in every namespace: a finalizer of one would keep its namespace from ending."""
    operator = callers["operator"]
    lease = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": {"name": RELEASE}, "spec": {}}
    switch = {"apiVersion": GATE_SWITCH.api_version, "kind": GATE_SWITCH.kind, "metadata": {"name": RELEASE}}
    asked: list[tuple[Kind, dict[str, Any], str | None]] = [
        (EVENT, event("told"), TENANT),
        (LEASE, lease, NAMESPACE),
        (GATE_SWITCH, {**switch, "spec": {"gating": True}}, None),
    ]
    for kind, plain, namespace in asked:
        assert operator.create(kind, plain, namespace=namespace, dry=True).ok
        for part in ({"finalizers": ["example.com/forever"]}, {"ownerReferences": [OWNER]}):
            body = {**plain, "metadata": {**plain["metadata"], **part}}
            answer = operator.create(kind, body, namespace=namespace, dry=True)
            assert answer.refused_by(f"{RELEASE}-own"), (kind, part, answer)
            assert callers["release"].create(kind, body, namespace=namespace, dry=True).code == 403
    finalizer = {"metadata": {"finalizers": ["example.com/forever"]}}
    assert operator.create(EVENT, event("told"), namespace=TENANT).ok
    assert operator.patch(EVENT, "told", finalizer, namespace=TENANT, dry=True).refused_by(f"{RELEASE}-own")
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
    assert operator.patch(EVENT, "told", series, namespace=TENANT, dry=True).ok


def test_it_posts_events_in_no_other_name(chart: Installation, callers: dict[str, Caller]) -> None:
    operator, foreign = callers["operator"], {**event("foreign"), "reportingController": "kubelet"}
    assert operator.create(EVENT, foreign, namespace=TENANT, dry=True).refused_by(f"{RELEASE}-own")
    assert chart.admin.create(EVENT, foreign, namespace=TENANT).ok
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
    assert operator.patch(EVENT, "foreign", series, namespace=TENANT, dry=True).refused_by(f"{RELEASE}-own")
    assert chart.admin.patch(EVENT, "foreign", series, namespace=TENANT, dry=True).ok


def test_the_lease_is_renewed_though_another_client_has_written_a_finalizer(
    chart: Installation, callers: dict[str, Caller]
) -> None:
    metadata = {"name": RELEASE, "finalizers": ["example.com/kept"]}
    lease = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": {}}
    assert chart.admin.create(LEASE, lease, namespace=NAMESPACE).ok
    operator, seen = callers["operator"], chart.admin.read(LEASE, RELEASE, namespace=NAMESPACE).body
    renewed = {**seen, "spec": {"holderIdentity": "replica-1"}}
    assert operator.replace(LEASE, RELEASE, renewed, namespace=NAMESPACE, dry=True).ok
    renewed["metadata"] = {**seen["metadata"], "finalizers": ["example.com/kept", "example.com/more"]}
    answer = operator.replace(LEASE, RELEASE, renewed, namespace=NAMESPACE, dry=True)
    assert answer.refused_by(f"{RELEASE}-own"), answer
    assert chart.admin.patch(LEASE, RELEASE, {"metadata": {"finalizers": None}}, namespace=NAMESPACE).ok
    assert chart.admin.delete(LEASE, RELEASE, namespace=NAMESPACE).ok


def may(caller: Caller, verb: str, resource: str, namespace: str) -> bool:
    """`resource`: group/plural/subresource, with dashes where there is none."""
    group, plural, part = (text.replace("-", "") for text in resource.split("/"))
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": part, "namespace": namespace}
    body = {"apiVersion": REVIEW.api_version, "kind": REVIEW.kind, "spec": {"resourceAttributes": attributes}}
    answer = caller.create(REVIEW, body)
    assert answer.ok, answer
    return bool(answer.body["status"]["allowed"])


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("create", "-/pods/-"),
        ("update", "-/pods/-"),
        ("deletecollection", "-/pods/-"),
        ("create", "-/pods/binding"),
        ("create", "-/pods/exec"),
        ("update", "-/pods/status"),
        ("patch", "-/pods/resize"),
        ("patch", "-/pods/ephemeralcontainers"),
        ("get", "-/pods/log"),
        ("patch", "-/nodes/-"),
        ("patch", "-/namespaces/-"),
        ("list", "-/secrets/-"),
        ("get", "-/configmaps/-"),
        ("create", "-/serviceaccounts/token"),
        ("patch", "apps/deployments/-"),
        ("patch", "ballast.dev/sparktopologies/-"),
        ("create", "ballast.dev/sparktopologies/-"),
        ("patch", "ballast.dev/balancingpolicies/-"),
        ("patch", "ballast.dev/executormoves/-"),
        ("delete", "ballast.dev/gateswitches/-"),
        ("patch", "admissionregistration.k8s.io/validatingadmissionpolicies/-"),
        ("create", "rbac.authorization.k8s.io/clusterrolebindings/-"),
    ],
)
def test_neither_account_has_a_right_that_it_does_not_need(
    callers: dict[str, Caller], verb: str, resource: str
) -> None:
    for name in ("operator", "release"):
        for namespace in (NAMESPACE, TENANT, ""):
            assert not may(callers[name], verb, resource, namespace), f"{name} in {namespace or 'the cluster'}"


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("create", "-/pods/eviction"),
        ("patch", "-/pods/status"),
        ("list", "-/nodes/-"),
        ("create", "ballast.dev/executormoves/-"),
        ("create", "ballast.dev/gateswitches/-"),
    ],
)
def test_releasing_needs_less_than_operating(callers: dict[str, Caller], verb: str, resource: str) -> None:
    assert may(callers["operator"], verb, resource, "")
    assert not may(callers["release"], verb, resource, "")
