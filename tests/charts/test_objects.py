"""What the chart makes: which objects, under which names and labels."""

from __future__ import annotations

import tomllib
from collections import Counter

import pytest
import yaml

from ballast.api import crd
from tests.charts.rendering import CHART, JSON, NAMESPACE, Manifests, Renderer
from tests.testbed.errors import TestbedError

CLUSTER_SCOPED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
LONGEST_RELEASE = "a" * 53


def test_all_that_it_makes(defaults: Manifests) -> None:
    assert Counter(document["kind"] for document in defaults.documents) == {
        "ServiceAccount": 2,
        "ClusterRole": 4,
        "ClusterRoleBinding": 2,
        "Role": 2,
        "RoleBinding": 2,
        "Service": 1,
        "NetworkPolicy": 1,
        "Deployment": 1,
        "PodDisruptionBudget": 1,
        "CronJob": 1,
        "Job": 1,
        "MutatingAdmissionPolicy": 1,
        "MutatingAdmissionPolicyBinding": 2,
        "ValidatingAdmissionPolicy": 7,
        "ValidatingAdmissionPolicyBinding": 7,
    }


def test_every_object_is_in_the_releases_namespace_or_in_none(defaults: Manifests) -> None:
    for document in defaults.documents:
        expected = None if document["kind"] in CLUSTER_SCOPED else NAMESPACE
        assert document["metadata"].get("namespace") == expected, document["metadata"]


@pytest.mark.parametrize("name", ["123", "true", "null", "0x1f"])
def test_names_that_yaml_takes_for_something_else_stay_text(render: Renderer, name: str) -> None:
    """A Role in the namespace `null` would be created in the release's."""
    made = render({"evictionNamespaces": [name]}, release=name)
    labels = (document["metadata"].get("labels", {}) for document in made.documents)
    assert {each["app.kubernetes.io/instance"] for each in labels if "app.kubernetes.io/instance" in each} == {name}
    assert made.named("Role", f"{name}-ballast-evict")["metadata"]["namespace"] == name
    assert made.named("RoleBinding", f"{name}-ballast-evict")["metadata"]["namespace"] == name


def test_every_object_says_whose_it_is(render: Renderer) -> None:
    for document in render(release="prod").documents:
        labels = document["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "ballast"
        assert labels["app.kubernetes.io/instance"] == "prod"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert {"app.kubernetes.io/version", "helm.sh/chart"} <= labels.keys()


def test_two_releases_share_no_object(render: Renderer) -> None:
    def names(release: str) -> set[tuple[str, str]]:
        found = render(release=release).documents
        return {(document["kind"], document["metadata"]["name"]) for document in found}

    assert not names("one") & names("two")


def test_the_longest_release_name_makes_valid_names(render: Renderer) -> None:
    found = render(release=LONGEST_RELEASE)
    for document in found.documents:
        assert len(document["metadata"]["name"]) <= 63
    (cron,) = found.of("CronJob")
    assert len(cron["metadata"]["name"]) <= 52


def test_one_name_ties_switch_lease_policy_and_rights_together(render: Renderer) -> None:
    found = render(release="prod")
    for kind, template in found.pods():
        assert "--name=prod-ballast" in template["spec"]["containers"][0]["args"], kind
    for binding in found.of("MutatingAdmissionPolicyBinding"):
        assert binding["spec"]["paramRef"] == {"name": "prod-ballast", "parameterNotFoundAction": "Allow"}
    for document in [*found.of("Role"), *found.of("ClusterRole")]:
        for rule in document["rules"]:
            assert rule.get("resourceNames", ["prod-ballast"]) in (["prod-ballast"], ["prod-ballast-uninstall"])


def test_the_fences_know_the_accounts_by_name(render: Renderer) -> None:
    found = render(release="prod")
    accounts = [f"system:serviceaccount:{NAMESPACE}:{each['metadata']['name']}" for each in found.of("ServiceAccount")]
    assert len(accounts) == 2
    for policy in found.of("ValidatingAdmissionPolicy"):
        who = policy["spec"]["matchConditions"][0]["expression"]
        assert all(f"'{account}'" in who for account in accounts)
        assert policy["spec"]["failurePolicy"] == "Fail"


def test_the_gate_never_makes_pod_creation_fail(defaults: Manifests) -> None:
    (policy,) = defaults.of("MutatingAdmissionPolicy")
    assert policy["spec"]["failurePolicy"] == "Ignore"
    assert policy["spec"]["reinvocationPolicy"] == "Never"


def test_without_the_gates_policy_it_works_on_an_older_kubernetes(render: Renderer) -> None:
    found = render({"gate": {"install": False}}, kubernetes="1.30.0")
    assert not found.of("MutatingAdmissionPolicy") + found.of("MutatingAdmissionPolicyBinding")
    with pytest.raises(
        TestbedError, match=r"gate.install needs Kubernetes 1.36, and this is v1.35.4: set gate.install"
    ):
        render(kubernetes="1.35.4")
    with pytest.raises(TestbedError, match=r"requires kubeVersion: >=1.30.0-0"):
        render({"gate": {"install": False}}, kubernetes="1.29.9")


def test_two_servers_on_one_port_are_refused(render: Renderer) -> None:
    with pytest.raises(TestbedError, match=r"health.port and metrics.port are both 9464: set them to different ports"):
        render({"health": {"port": 9464}})


@pytest.mark.parametrize("name", ["POD_NAME", "POD_NAMESPACE", "POD_IP"])
def test_what_tells_replicas_apart_is_not_set_by_env(name: str, render: Renderer) -> None:
    """With one POD_NAME in both, both replicas would hold the Lease, and lead."""
    with pytest.raises(TestbedError, match=r"/env/0/name"):
        render({"env": [{"name": name, "value": "same"}]})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"metrics": None}, "missing property 'metrics'"),
        ({"gate": {"install": None}}, "at '/gate': missing property 'install'"),
        ({"lease": {"durationSeconds": None}}, "at '/lease': missing property 'durationSeconds'"),
    ],
    ids=str,
)
def test_a_default_that_is_taken_away_is_named(values: JSON, words: str, render: Renderer) -> None:
    """Helm takes null for that."""
    with pytest.raises(TestbedError, match=words):
        render(values)


def test_the_definitions_are_those_of_the_models(defaults: Manifests) -> None:
    """Where Helm installs them and then leaves them alone: a rollback, or an uninstallation, must not reach them."""
    assert crd.check(CHART / "crds") == [], "run `ballast crds`"
    assert defaults.of("CustomResourceDefinition") == []


def test_it_carries_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((CHART.parents[1] / "pyproject.toml").read_text())["project"]
    assert chart["appVersion"] == chart["version"] == project["version"]
