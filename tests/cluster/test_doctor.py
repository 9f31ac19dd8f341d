"""`ballast doctor` of a real API server: each finding of a cluster is provoked there, by what a user would do wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ballast.doctor.catalog import CLUSTER
from ballast.kube.kinds import BALANCING_POLICY, NODE, POD, SPARK_TOPOLOGY
from ballast.prometheus import Preset, queries
from tests.cluster.chart.installation import RELEASE, Installation
from tests.cluster.kube.cluster import Cluster
from tests.testbed.errors import TestbedError
from tests.testbed.waiting import wait_until
from tests.unit.cli.program import run
from tests.unit.prometheus.server import serving

pytestmark = pytest.mark.cluster

NAMESPACE = "doctor-jobs"
FOREIGN = "doctor-system"
"""A namespace with an operator of another version, whose account may do nothing."""
ZONE, RACK = "topology.kubernetes.io/zone", "topology.ballast.dev/rack"
NODES = ("doctor-a", "doctor-b")
POLICY, YOUNGER, EMPTY = "doctor", "doctor-younger", "doctor-empty"
NOWHERE = "http://127.0.0.1:9"

PROVOKED = {
    "NotInstalled",
    "OperatorDenied",
    "OperatorNotFenced",
    "CannotInspect",
    "VersionSkew",
    "ClockSkew",
    "LevelLabelMissing",
    "PoolEmpty",
    "PoolsOverlap",
    "PolicyStopped",
    "GateNotEffective",
    "ReleaseRefused",
    "PrometheusUnreachable",
    "QueryIncomplete",
    "MetricsAmbiguous",
    "BudgetBlocks",
    "KueueTakesNoQuota",
    "OtherMover",
    "ExecutorsNotPlaced",
    "PolicyMissing",
    "SchedulerLimits",
}
"""By the tests below."""


@dataclass(frozen=True, slots=True)
class Scene:
    cluster: Cluster
    kubeconfig: Path

    def findings(self, *arguments: str, kubeconfig: Path | None = None) -> list[dict[str, Any]]:
        config = str(kubeconfig or self.kubeconfig)
        ended = run("doctor", "--kubeconfig", config, "-o", "json", *arguments)
        assert ended.code in (0, 1), ended.err
        found: list[dict[str, Any]] = json.loads(ended.out)["findings"]
        assert ended.code == int(any(each["severity"] != "info" for each in found))
        return found

    def told(self, id_: str, subject: str, *arguments: str) -> list[str]:
        """What the findings with this id say about this subject."""
        return [each["what"] for each in self.findings(*arguments) if (each["id"], each["subject"]) == (id_, subject)]


def policy(name: str, *, pool: str = "doctor", **spec: Any) -> dict[str, Any]:
    chosen = {"nodeSelector": {"matchLabels": {"pool": pool}}}
    only = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}
    metadata = {"name": name}
    kind = {"apiVersion": BALANCING_POLICY.api_version, "kind": BALANCING_POLICY.kind}
    return {**kind, "metadata": metadata, "spec": {**chosen, **only, **spec}}


def topology() -> dict[str, Any]:
    component = {"name": "ingest", "selector": {"matchLabels": {"spark-app-selector": "spark-1"}}}
    kind = {"apiVersion": SPARK_TOPOLOGY.api_version, "kind": SPARK_TOPOLOGY.kind}
    return {**kind, "metadata": {"name": "clicks", "namespace": NAMESPACE}, "spec": {"components": [component]}}


def deployment(name: str, **labels: str) -> dict[str, Any]:
    """As the chart has it, without any replica."""
    pod = {
        "metadata": {"labels": {**labels, "app.kubernetes.io/component": "operator"}},
        "spec": {"containers": [{"name": "main", "image": "ballast"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": FOREIGN, "labels": labels},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod},
    }


def cron_job(name: str, **labels: str) -> dict[str, Any]:
    """Of a schedule that no test lives to see."""
    pod = {"spec": {"containers": [{"name": "main", "image": "ballast"}], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": FOREIGN, "labels": labels},
        "spec": {"schedule": "0 0 29 2 *", "suspend": False, "jobTemplate": {"spec": {"template": pod}}},
    }


@pytest.fixture
def node_pools(scene: Scene) -> Iterator[None]:
    """The kind alone, with no controller, as long as a test needs it."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}]
    names = {"kind": "NodePool", "plural": "nodepools", "singular": "nodepool", "listKind": "NodePoolList"}
    testbed = scene.cluster.testbed
    testbed.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "nodepools.karpenter.sh"},
            "spec": {"group": "karpenter.sh", "names": names, "scope": "Cluster", "versions": versions},
        }
    )
    try:
        testbed.await_definitions("nodepools.karpenter.sh")
        yield
    finally:
        testbed.kubectl("delete", "crd/nodepools.karpenter.sh", "--wait=true")


@pytest.fixture(scope="module")
def scene(installed: Installation) -> Iterator[Scene]:
    """Two nodes, the one without a rack; a policy that enforces placement while no operator runs."""
    testbed = installed.testbed
    cluster = Cluster.open(testbed, NAMESPACE)
    testbed.create_namespace(FOREIGN)
    try:
        cluster.node(NODES[0], pool="doctor", **{ZONE: "a", RACK: "a-1"})
        cluster.node(NODES[1], pool="doctor", **{ZONE: "b"})
        metrics = {"prometheus": {"url": NOWHERE, "timeout": "1s"}}
        cluster.client.create(BALANCING_POLICY, policy(POLICY, placement={"mode": "Enforce"}, metrics=metrics))
        cluster.client.create(SPARK_TOPOLOGY, topology(), namespace=NAMESPACE)
        cluster.running("doctor-exec-1", NODES[0])
        yield Scene(cluster, testbed.kubeconfig)
    finally:
        for name in NODES:
            cluster.client.delete(NODE, name)
        cluster.client.delete(BALANCING_POLICY, POLICY)
        testbed.kubectl("delete", "namespace", NAMESPACE, FOREIGN, "--wait=false")


def test_each_finding_of_a_cluster_is_provoked_here() -> None:
    assert set(CLUSTER) == PROVOKED | {"NoPolicy"}, "that one needs a cluster without policies: a unit test has it"


def test_the_charts_own_operator_is_found_and_lacks_no_right(scene: Scene) -> None:
    assert [each["what"] for each in scene.findings() if each["id"] == "NotInstalled"] == []
    assert scene.told("OperatorDenied", f"Deployment ballast-system/{RELEASE}") == []


def test_the_charts_policies_name_the_account_of_its_operator_and_no_other(scene: Scene) -> None:
    """As in an overlay that changes the namespace: what kustomize moves is not what the policies name."""
    assert scene.told("OperatorNotFenced", f"Deployment ballast-system/{RELEASE}") == []
    labels = {"app.kubernetes.io/name": "ballast"}
    scene.cluster.testbed.apply(deployment("moved", **labels))
    (told,) = scene.told("OperatorNotFenced", f"Deployment {FOREIGN}/moved", "--system-namespace", FOREIGN)
    assert told == (
        "No ValidatingAdmissionPolicy …-patch, …-nominate, …-delete, …-evict, …-switch, …-own names service account "
        f"system:serviceaccount:{FOREIGN}:default."
    )
    scene.cluster.testbed.kubectl("delete", "deployment", "moved", "--namespace", FOREIGN)


def test_a_namespace_without_an_operator_is_found(scene: Scene) -> None:
    found = [each["what"] for each in scene.findings("--system-namespace", NAMESPACE) if each["id"] == "NotInstalled"]
    assert found == [f"There is no Deployment app.kubernetes.io/name=ballast in namespace {NAMESPACE}."]


def test_another_operators_version_and_missing_rights_are_found(scene: Scene) -> None:
    labels = {"app.kubernetes.io/name": "ballast"}
    scene.cluster.testbed.apply(deployment("old", **labels, **{"app.kubernetes.io/version": "0.0.1"}))
    found = scene.findings("--system-namespace", FOREIGN)
    about = [each for each in found if each["subject"] == f"Deployment {FOREIGN}/old"]
    assert next(each["what"] for each in about if each["id"] == "VersionSkew").startswith("The operator is 0.0.1, ")
    denied = {each["what"] for each in about if each["id"] == "OperatorDenied"}
    account = f"system:serviceaccount:{FOREIGN}:default"
    assert f"Service account {account} may not create pods/eviction in all namespaces." in denied
    assert f"Service account {account} may not list nodes in all namespaces." in denied


@pytest.mark.soak
def test_the_right_to_evict_may_be_limited_to_the_namespaces_with_a_topology(scene: Scene) -> None:
    """As the chart does with `evictionNamespaces`."""
    testbed, name = scene.cluster.testbed, "limited"
    labels = {"app.kubernetes.io/name": "ballast"}
    testbed.apply(deployment("limited", **labels))
    rules = [{"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}]
    role, group = {"name": name, "namespace": NAMESPACE}, "rbac.authorization.k8s.io"
    testbed.apply({"apiVersion": f"{group}/v1", "kind": "Role", "metadata": role, "rules": rules})
    account = f"system:serviceaccount:{FOREIGN}:default"
    subject = f"Deployment {FOREIGN}/limited"
    arguments = ("--system-namespace", FOREIGN)
    everywhere = f"Service account {account} may not create pods/eviction in all namespaces."
    assert everywhere in scene.told("OperatorDenied", subject, *arguments)
    testbed.apply(
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": role,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": FOREIGN}],
        }
    )
    try:
        wait_until(
            lambda: everywhere not in scene.told("OperatorDenied", subject, *arguments), what="the right is granted"
        )
        # Other files' topologies may be in namespaces of their own.
        here, there = (
            f"Service account {account} may not create pods/eviction in namespace {namespace}."
            for namespace in (NAMESPACE, FOREIGN)
        )
        assert here not in scene.told("OperatorDenied", subject, *arguments)
        elsewhere = {**topology(), "metadata": {"name": "elsewhere", "namespace": FOREIGN}}
        scene.cluster.client.create(SPARK_TOPOLOGY, elsewhere, namespace=FOREIGN)
        left = scene.told("OperatorDenied", subject, *arguments)
        assert there in left
        assert here not in left
    finally:
        testbed.kubectl("delete", "sparktopology", "--all", "--namespace", FOREIGN)
        testbed.kubectl("delete", "rolebinding,role", name, "--namespace", NAMESPACE)
        testbed.kubectl("delete", "deployment", "limited", "--namespace", FOREIGN)


def test_an_account_without_rights_learns_what_was_skipped(scene: Scene) -> None:
    config = scene.cluster.testbed.service_account_kubeconfig(NAMESPACE, "default")
    found = scene.findings(kubeconfig=config)
    assert {each["id"] for each in found} == {"CannotInspect"}
    assert any("nodes" in each["what"] for each in found)


def test_an_old_kubelet_is_found(scene: Scene) -> None:
    status = {"nodeInfo": dict.fromkeys(_NODE_INFO, "") | {"kubeletVersion": "v1.29.4"}}
    scene.cluster.client.patch(NODE, NODES[1], {"status": status}, subresource="status")
    found = [each["what"] for each in scene.findings() if each["id"] == "VersionSkew"]
    assert any(f"The kubelet of {NODES[1]} is v1.29.4" in what for what in found)


_NODE_INFO = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
)


def test_a_node_whose_heartbeat_lies_ahead_is_found(scene: Scene) -> None:
    ahead = (datetime.now(UTC) + timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    metadata = {"name": NODES[0], "namespace": "kube-node-lease"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    scene.cluster.testbed.apply({**lease, "spec": {"holderIdentity": NODES[0], "renewTime": ahead}})
    (what,) = scene.told("ClockSkew", f"Node {NODES[0]}")
    assert "ahead of the API server's clock" in what
    assert scene.told("ClockSkew", f"Node {NODES[1]}") == []


def test_a_node_without_a_levels_label_is_found(scene: Scene) -> None:
    assert scene.told("LevelLabelMissing", f"BalancingPolicy {POLICY}") == [
        f"1 of 2 nodes have no label {RACK}: {NODES[1]}."
    ]


@contextmanager
def existing(scene: Scene, body: dict[str, Any]) -> Iterator[None]:
    scene.cluster.client.create(BALANCING_POLICY, body)
    try:
        yield
    finally:
        scene.cluster.client.delete(BALANCING_POLICY, body["metadata"]["name"])


def test_a_policy_without_nodes_is_found(scene: Scene) -> None:
    with existing(scene, policy(EMPTY, pool="nothing")):
        (what,) = scene.told("PoolEmpty", f"BalancingPolicy {EMPTY}")
    assert what.endswith("nodes matches its nodeSelector.")


@pytest.mark.soak
def test_the_younger_of_two_overlapping_policies_is_found(scene: Scene) -> None:
    created = scene.cluster.client.get(BALANCING_POLICY, POLICY)["metadata"]["creationTimestamp"]
    wait_until(
        lambda: datetime.now(UTC) > datetime.fromisoformat(created) + timedelta(seconds=1), what="a later second"
    )
    with existing(scene, policy(YOUNGER)):
        (what,) = scene.told("PoolsOverlap", f"BalancingPolicy {YOUNGER}")
        assert scene.told("PoolsOverlap", f"BalancingPolicy {POLICY}") == []
    assert what == f"It selects {', '.join(NODES)}, as BalancingPolicy {POLICY} does."


def test_a_gate_that_is_off_is_found_and_one_that_is_on_is_not(scene: Scene, installed: Installation) -> None:
    subject = f"Namespace {NAMESPACE}"
    (what,) = scene.told("GateNotEffective", subject)
    assert "gets no gate" in what
    assert scene.cluster.client.get_page(POD, {}, namespace=NAMESPACE).items, "the executor of the scene"
    installed.switch(gating=True, namespaces=(NAMESPACE,))
    try:
        wait_until(lambda: not scene.told("GateNotEffective", subject), what="the gate is effective")
    finally:
        installed.remove_switch()


def test_what_the_operator_says_of_executors_that_are_not_placed_is_told_again(scene: Scene) -> None:
    condition = {
        "type": "ExecutorsPlaced",
        "status": "False",
        "reason": "NoRoom",
        "message": "1 executor that opted in is not placed: 1 NoRoom",
        "lastTransitionTime": "2026-11-29T10:00:00Z",
    }
    subject = f"BalancingPolicy {POLICY}"
    assert scene.told("ExecutorsNotPlaced", subject) == []
    for conditions in ([condition], []):
        changed = {"status": {"conditions": conditions}}
        scene.cluster.client.patch(BALANCING_POLICY, POLICY, changed, subresource="status")
        expected = [f"NoRoom: {condition['message']}."] if conditions else []
        assert scene.told("ExecutorsNotPlaced", subject) == expected


def test_a_namespace_that_opted_in_and_that_no_policy_selects_is_found(scene: Scene) -> None:
    elsewhere, testbed = "doctor-elsewhere", scene.cluster.testbed
    cluster = Cluster.open(testbed, elsewhere)
    try:
        cluster.executor("elsewhere-exec-1", gates=[])
        assert scene.told("PolicyMissing", f"Namespace {elsewhere}") == []
        testbed.kubectl("label", "namespace", elsewhere, "ballast.dev/gate=enabled")
        (what,) = scene.told("PolicyMissing", f"Namespace {elsewhere}")
    finally:
        testbed.kubectl("delete", "namespace", elsewhere, "--wait=false")
    assert what == "It has the label ballast.dev/gate=enabled and 1 executors."


def test_a_policy_that_refuses_or_changes_updates_of_executors_is_found(scene: Scene) -> None:
    """The executor of the scene runs: an update that changes nothing passes admission, too."""
    subject, group = f"Namespace {NAMESPACE}", "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}
    only = {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}
    chosen = {"failurePolicy": "Fail", "matchConstraints": {"namespaceSelector": only, "resourceRules": [rule]}}
    expression = "Object{metadata: Object.metadata{annotations: {'example.com/seen': 'yes'}}}"
    patch = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    policies: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
        (
            "Validating",
            {"validations": [{"expression": "false", "message": "pods are not updated here"}]},
            {"validationActions": ["Deny"]},
            "pods are not updated here",
        ),
        ("Mutating", {"mutations": [patch], "reinvocationPolicy": "Never"}, {}, "annotation example.com/seen"),
    ]
    testbed = scene.cluster.testbed

    def quotes(words: str) -> bool:
        return any(words in told for told in scene.told("ReleaseRefused", subject))

    assert scene.told("ReleaseRefused", subject) == []
    for prefix, policy_spec, binding, quoted in policies:
        named = {"apiVersion": group, "metadata": {"name": "doctor-updates"}}
        kind = f"{prefix}AdmissionPolicy"
        testbed.apply(
            {**named, "kind": kind, "spec": {**chosen, **policy_spec}},
            {**named, "kind": f"{kind}Binding", "spec": {"policyName": "doctor-updates", **binding}},
        )
        try:
            wait_until(partial(quotes, quoted), what="the policy is found and quoted")
        finally:
            testbed.kubectl("delete", f"{kind.lower()}binding", "doctor-updates")
            testbed.kubectl("delete", kind.lower(), "doctor-updates")
            wait_until(lambda: not scene.told("ReleaseRefused", subject), what="the policy acts no more")


def test_an_executor_with_a_queue_that_kueue_does_not_manage_is_found(scene: Scene) -> None:
    subject = f"Namespace {NAMESPACE}"
    assert scene.told("KueueTakesNoQuota", subject) == []
    label = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "main"}}}
    scene.cluster.client.patch(POD, "doctor-exec-1", label, namespace=NAMESPACE)
    (told,) = scene.told("KueueTakesNoQuota", subject)
    assert told.startswith("doctor-exec-1: label kueue.x-k8s.io/queue-name, but not managed by Kueue")
    gone = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}}
    scene.cluster.client.patch(POD, "doctor-exec-1", gone, namespace=NAMESPACE)


def test_a_policy_that_names_a_scheduler_without_preferences_is_found(scene: Scene) -> None:
    subject, placement = f"BalancingPolicy {EMPTY}", {"schedulerNames": ["yunikorn"], "pin": "None"}
    with existing(scene, policy(EMPTY, pool="nowhere", placement=placement)):
        (told,) = scene.told("SchedulerLimits", subject)
    assert told.startswith("Its placement.schedulerNames names yunikorn. YuniKorn keeps to scheduling gates")
    assert told.endswith("placement.pin is None, so nothing is required.")


def test_a_stopped_policy_is_found(scene: Scene) -> None:
    with existing(scene, policy(EMPTY, pool="nowhere", stopped=True)):
        assert scene.told("PolicyStopped", f"BalancingPolicy {EMPTY}") == ["Its spec.stopped is true."]
        assert scene.told("PolicyStopped", f"BalancingPolicy {POLICY}") == []


def test_doctor_creates_no_pod(scene: Scene) -> None:
    scene.findings()
    with pytest.raises(TestbedError, match="NotFound"):
        scene.cluster.testbed.kubectl("get", "pod", "ballast-doctor", f"--namespace={NAMESPACE}")


def test_a_prometheus_that_does_not_answer_is_found(scene: Scene) -> None:
    (what,) = scene.told("PrometheusUnreachable", f"BalancingPolicy {POLICY}")
    assert what.startswith(f"{NOWHERE}: ")


def test_a_prometheus_without_series_of_the_nodes_is_found(scene: Scene) -> None:
    with serving() as prometheus:
        told = scene.told("QueryIncomplete", f"BalancingPolicy {POLICY}", "--prometheus", prometheus.url)
    assert f"The query nodeCpu has no fresh value for {', '.join(NODES)}." in told
    assert "The query executorCpu has no series, although executors run." in told


def test_nodes_whose_metrics_come_from_several_sources_are_found(scene: Scene) -> None:
    asked = queries(Preset.KUBE_PROMETHEUS_STACK, {}).rendered(120.0)

    def vector(*series: dict[str, str]) -> str:
        found = [{"metric": labels, "value": [1.0, "2"]} for labels in series]
        return json.dumps({"status": "success", "data": {"resultType": "vector", "result": found}})

    with serving() as prometheus:
        prometheus.said_to[asked["nodeCpu"]] = vector({"node": NODES[0]}, {"node": NODES[1]})
        prometheus.said_to[asked["nodeSources"]] = vector({"node": NODES[0], "signal": "nodeCpu"})
        told = scene.told("MetricsAmbiguous", f"BalancingPolicy {POLICY}", "--prometheus", prometheus.url)
    sources = "several sources (clusters, replicas of Prometheus or exporters)"
    assert told == [f"The metrics of node {NODES[0]} come from {sources}, and are not used."]


def test_a_budget_that_allows_nothing_is_found_with_a_patch(scene: Scene) -> None:
    scene.cluster.budget("doctor-all", min_available=1)
    subject = f"PodDisruptionBudget {NAMESPACE}/doctor-all"
    (finding,) = [each for each in scene.findings() if each["subject"] == subject]
    assert (finding["id"], finding["what"]) == (
        "BudgetBlocks",
        "It allows no disruption and selects 1 executors: doctor-exec-1.",
    )
    (command,) = finding["commands"]
    _, *arguments = command.replace("'", "").split(" ")
    scene.cluster.testbed.kubectl(*arguments)
    wait_until(lambda: not scene.told("BudgetBlocks", subject), what="the patch removes the finding")


def test_a_selector_that_also_matches_the_driver_is_found(scene: Scene) -> None:
    scene.cluster.executor("doctor-driver", gates=[{"name": "example.org/held"}])
    scene.cluster.patch("doctor-driver", {"metadata": {"labels": {"spark-role": "driver"}}})
    told = scene.told("SelectorMatchesDriver", f"SparkTopology {NAMESPACE}/clicks")
    assert told == ["The selector of component ingest matches the driver doctor-driver."]


@pytest.mark.soak
def test_a_descheduler_and_karpenters_nodes_are_found(scene: Scene) -> None:
    labels = {"app.kubernetes.io/name": "descheduler"}
    scene.cluster.testbed.apply(deployment("descheduler", **labels), cron_job("nightly", **labels))
    scene.cluster.client.patch(NODE, NODES[0], {"metadata": {"labels": {"karpenter.sh/nodepool": "spark"}}})
    for subject in (f"Deployment {FOREIGN}/descheduler", f"CronJob {FOREIGN}/nightly"):
        assert scene.told("OtherMover", subject) == ["It is a descheduler."]
    (what,) = scene.told("OtherMover", f"BalancingPolicy {POLICY}")
    assert "Karpenter's NodePool spark (consolidationPolicy not readable)" in what


def test_a_descheduler_is_known_by_its_image_and_not_while_it_is_suspended(scene: Scene) -> None:
    body = cron_job("mirrored")
    template = body["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    template["containers"][0]["image"] = "registry.example/descheduler/descheduler:v0.34.0"
    scene.cluster.testbed.apply(body)
    assert scene.told("OtherMover", f"CronJob {FOREIGN}/mirrored") == ["It is a descheduler."]
    scene.cluster.testbed.apply({**body, "spec": {**body["spec"], "suspend": True}})
    assert scene.told("OtherMover", f"CronJob {FOREIGN}/mirrored") == []


def test_one_topology_alone_can_be_checked(scene: Scene) -> None:
    with existing(scene, policy(EMPTY, pool="nothing")):
        found = scene.findings("--topology", f"{NAMESPACE}/clicks")
        assert "PoolEmpty" not in {each["id"] for each in found if each["subject"] != f"BalancingPolicy {EMPTY}"}
        assert {each["id"] for each in found} <= {each["id"] for each in scene.findings()}
    ended = run("doctor", "--kubeconfig", str(scene.kubeconfig), "--topology", f"{NAMESPACE}/absent")
    assert (ended.code, "there is no such SparkTopology" in ended.err) == (2, True)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("consolidation", "words"),
    [
        ("WhenEmptyOrUnderutilized", ["spark (consolidationPolicy WhenEmptyOrUnderutilized after 1m)"]),
        ("WhenEmpty", []),
    ],
)
def test_what_karpenter_would_fight_is_read_from_its_node_pool(
    scene: Scene, node_pools: None, consolidation: str, words: list[str]
) -> None:
    del node_pools
    scene.cluster.client.patch(NODE, NODES[0], {"metadata": {"labels": {"karpenter.sh/nodepool": "spark"}}})
    disruption = {"consolidationPolicy": consolidation, "consolidateAfter": "1m"}
    scene.cluster.testbed.apply(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "spark"},
            "spec": {"disruption": disruption},
        }
    )
    told = scene.told("OtherMover", f"BalancingPolicy {POLICY}")
    assert len(told) == len(words)
    assert all(word in what for word, what in zip(words, told, strict=True))
