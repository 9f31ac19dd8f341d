"""The real API server of the session, as its users meet it."""

import json
import ssl
import urllib.error
import urllib.request

import pytest

from tests.testbed.binaries import EVERYTHING, SUITES, cache_folder, parse_version, version_of
from tests.testbed.errors import TestbedError
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

LABELING_POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: labeling}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector: {matchLabels: {labeled: "true"}}
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration:
        expression: 'Object{metadata: Object.metadata{labels: {"touched": "yes"}}}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: labeling}
spec: {policyName: labeling}
"""


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_binary_is_of_the_pinned_version_if_built_here_and_new_enough_otherwise(
    control_plane: Testbed, name: str
) -> None:
    (suite,) = (each for each in SUITES if name in each.packages)
    binary = control_plane.binary(name)
    version = version_of(suite, binary)

    assert version is not None
    if binary.is_relative_to(cache_folder()):
        assert version == parse_version(suite.version)
    assert version >= suite.minimum


def test_the_api_server_and_kubectl_that_run_are_the_binaries_that_were_found(control_plane: Testbed) -> None:
    versions = json.loads(control_plane.kubectl("version", "--output=json"))

    for name, said in (("kube-apiserver", versions["serverVersion"]), ("kubectl", versions["clientVersion"])):
        (suite,) = (each for each in SUITES if name in each.packages)
        version = parse_version(said["gitVersion"])
        assert version is not None
        assert version == version_of(suite, control_plane.binary(name))
        assert (said["major"], said["minor"].removesuffix("+")) == (str(version[0]), str(version[1]))


def test_a_service_account_is_who_its_token_says_and_may_do_nothing_yet(control_plane: Testbed) -> None:
    control_plane.create_namespace("rights")
    as_account = control_plane.kubectl_as(control_plane.service_account_kubeconfig("rights", "default"))

    user = json.loads(as_account.run("auth", "whoami", "--output=json").stdout)["status"]["userInfo"]
    assert user["username"] == "system:serviceaccount:rights:default"
    with pytest.raises(TestbedError, match='cannot list resource "pods"'):
        as_account.run("get", "pods")


def test_what_was_forbidden_is_written_down(control_plane: Testbed) -> None:
    control_plane.create_namespace("audited")
    as_account = control_plane.kubectl_as(control_plane.service_account_kubeconfig("audited", "default"))

    as_account.run("get", "pods", check=False)
    as_account.run("auth", "whoami")

    (forbidden,) = control_plane.forbidden_requests_of("audited", "default")
    assert (forbidden.verb, forbidden.resource, forbidden.namespace) == ("list", "pods", "audited")
    allowed = {each.resource for each in control_plane.requests_of("audited", "default") if each.status == 201}
    assert allowed == {"selfsubjectreviews"}


def test_what_comes_too_late_for_a_namespace_was_not_forbidden(control_plane: Testbed) -> None:
    control_plane.create_namespace("ending")
    control_plane.kubectl(
        "create", "rolebinding", "editing", "--clusterrole=edit", "--serviceaccount=ending:default", "-n=ending"
    )
    as_account = control_plane.kubectl_as(control_plane.service_account_kubeconfig("ending", "default"))
    kept = {"metadata": {"name": "kept", "finalizers": ["example.com/kept"]}}
    control_plane.api.post("/api/v1/namespaces/ending/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", **kept})
    control_plane.kubectl("delete", "namespace", "ending", "--wait=false")
    late = as_account.run("create", "configmap", "late", check=False)
    assert "because it is being terminated" in late.stderr
    control_plane.kubectl("patch", "configmap", "kept", "-n=ending", '--patch={"metadata":{"finalizers":null}}')
    refused = [each for each in control_plane.requests_of("ending", "default") if each.status == 403]
    assert [each.resource for each in refused] == ["configmaps"]
    assert control_plane.forbidden_requests_of("ending", "default") == []


def test_a_right_that_is_granted_holds_in_its_namespace_alone(control_plane: Testbed) -> None:
    control_plane.create_namespace("granted")
    control_plane.kubectl(
        "create",
        "rolebinding",
        "viewing",
        "--clusterrole=view",
        "--serviceaccount=granted:default",
        "--namespace=granted",
    )
    as_account = control_plane.kubectl_as(control_plane.service_account_kubeconfig("granted", "default"))

    assert "No resources found" in as_account.run("get", "pods").stderr
    with pytest.raises(TestbedError, match="forbidden"):
        as_account.run("get", "pods", "--namespace=kube-system")


def test_a_token_is_good_for_its_audience_alone(control_plane: Testbed) -> None:
    control_plane.create_namespace("audience")
    foreign = control_plane.token("audience", "default", audiences=["somebody-else"])

    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": foreign}}
    answer = control_plane.api.post("/apis/authentication.k8s.io/v1/tokenreviews", review)

    assert not answer["status"].get("authenticated")


def test_a_pod_of_an_unknown_service_account_is_refused(control_plane: Testbed) -> None:
    control_plane.create_namespace("admission")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "orphan", "namespace": "admission"},
        "spec": {"serviceAccountName": "nobody", "containers": [{"name": "main", "image": "any"}]},
    }
    with pytest.raises(TestbedError, match='"nobody" not found'):
        control_plane.apply(pod)


def test_mutating_admission_policies_are_carried_out(control_plane: Testbed) -> None:
    control_plane.create_namespace("policies", labels={"labeled": "true"})
    control_plane.apply(LABELING_POLICY)

    def touched() -> bool:
        control_plane.kubectl("delete", "configmap", "probe", "--namespace=policies", "--ignore-not-found")
        control_plane.kubectl("create", "configmap", "probe", "--namespace=policies")
        found = json.loads(control_plane.kubectl("get", "configmap", "probe", "--namespace=policies", "--output=json"))
        return bool(found["metadata"].get("labels", {}).get("touched") == "yes")

    wait_until(touched, what="the policy taking effect", timeout_seconds=20)


def test_the_server_is_trusted_by_its_own_authority_alone(control_plane: Testbed) -> None:
    url = f"{control_plane.url}/readyz"
    known = ssl.create_default_context(cafile=str(control_plane.ca))

    with urllib.request.urlopen(url, context=known) as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(url, context=ssl.create_default_context())
