"""The values that users set: each arrives, each misspelt one is refused, and older ones still do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from ballast.api.crd import KINDS
from tests.charts import readme
from tests.charts.rendering import CHART, JSON, NAMESPACE, Manifests, Renderer
from tests.testbed.errors import TestbedError

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
FIRST_VALUES = {
    "replicas", "image", "evictionNamespaces", "prometheus", "gate", "staleRelease", "lease", "logging", "metrics",
    "health", "resources", "env", "podAnnotations", "podLabels", "nodeSelector", "tolerations", "affinity",
    "topologySpreadConstraints", "podDisruptionBudget", "priorityClassName", "imagePullSecrets", "serviceAccount",
}  # fmt: skip
"""Sections of the chart that `--reuse-values` may bring values from."""
DIGEST = "sha256:" + "0123456789abcdef" * 4
MOUNT = {"name": "ca", "mountPath": "/etc/ca"}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}

Path = tuple[str | int, ...]

# Values that charts of operators usually have, and where they arrive.
USUAL: dict[str, tuple[JSON, str, str, Path, Any]] = {
    "PDB": (
        {"podDisruptionBudget": {"enabled": True}},
        "PodDisruptionBudget", "ballast", ("spec", "maxUnavailable"), 1,
    ),
    "spread": (
        {"topologySpreadConstraints": [SPREAD]},
        "Deployment", "ballast", ("spec", "template", "spec", "topologySpreadConstraints"), [SPREAD],
    ),
    "serviceMonitor": (
        {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "interval": "15s"}},
        "ServiceMonitor", "ballast", ("spec", "endpoints"), [{"port": "metrics", "interval": "15s"}],
    ),
    "podMonitor": (
        {"podMonitor": {"enabled": True}},
        "PodMonitor", "ballast", ("spec", "podMetricsEndpoints"), [{"port": "metrics", "interval": "30s"}],
    ),
    "extraVolumes": (
        {"extraVolumes": [{"name": "ca", "secret": {"secretName": "ca"}}]},
        "Deployment", "ballast", ("spec", "template", "spec", "volumes", 1, "secret", "secretName"), "ca",
    ),
    "extraVolumeMounts": (
        {"extraVolumeMounts": [MOUNT]},
        "Deployment", "ballast", ("spec", "template", "spec", "containers", 0, "volumeMounts", 1), MOUNT,
    ),
    "extraContainers": (
        {"extraContainers": [{"name": "proxy", "image": "proxy"}]},
        "Deployment", "ballast", ("spec", "template", "spec", "containers", 1, "name"), "proxy",
    ),
    "fullnameOverride": ({"fullnameOverride": "spark-ballast"}, "Deployment", "spark-ballast", ("spec", "replicas"), 2),
    "nameOverride": ({"nameOverride": "place"}, "Deployment", "ballast-place", ("spec", "replicas"), 2),
    "image.digest": (
        {"image": {"digest": DIGEST}},
        "Deployment", "ballast", ("spec", "template", "spec", "containers", 0, "image"), f"ballast:0.1.0@{DIGEST}",
    ),
    "serviceAccount.name": (
        {"serviceAccount": {"create": False, "name": "mine"}},
        "ClusterRoleBinding", "ballast", ("subjects", 0, "name"), "mine",
    ),
    "IRSA": (
        {"serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/x"}}},
        "ServiceAccount", "ballast", ("metadata", "annotations", "eks.amazonaws.com/role-arn"), "arn:aws:iam::1:role/x",
    ),
    "commonLabels": (
        {"commonLabels": {"team": "data"}},
        "ValidatingAdmissionPolicyBinding", "ballast-move", ("metadata", "labels", "team"), "data",
    ),
    "commonAnnotations": (
        {"commonAnnotations": {"example.com/owner": "data"}},
        "Job", "ballast-uninstall", ("metadata", "annotations", "example.com/owner"), "data",
    ),
    "podSecurityContext": (
        {"podSecurityContext": {"runAsUser": 1000}},
        "CronJob", "ballast-release",
        ("spec", "jobTemplate", "spec", "template", "spec", "securityContext", "runAsUser"), 1000,
    ),
    "securityContext": (
        {"securityContext": {"readOnlyRootFilesystem": False}},
        "Deployment", "ballast",
        ("spec", "template", "spec", "containers", 0, "securityContext", "readOnlyRootFilesystem"), False,
    ),
    "strategy": ({"strategy": {"type": "Recreate"}}, "Deployment", "ballast", ("spec", "strategy", "type"), "Recreate"),
    "hostNetwork": (
        {"hostNetwork": True}, "Deployment", "ballast", ("spec", "template", "spec", "hostNetwork"), True,
    ),
    "dnsPolicy": (
        {"dnsPolicy": "ClusterFirstWithHostNet"},
        "Deployment", "ballast", ("spec", "template", "spec", "dnsPolicy"), "ClusterFirstWithHostNet",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", USUAL)
def test_a_value_that_charts_usually_have_arrives(name: str, render: Renderer) -> None:
    values, kind, named, path, expected = USUAL[name]
    found: Any = render(values).named(kind, named)
    for step in path:
        found = found[step]
    assert found == expected


def test_accounts_and_roles_can_be_left_to_others(render: Renderer) -> None:
    found = render({"serviceAccount": {"create": False, "name": "mine"}, "rbac": {"create": False}})
    assert {document["kind"] for document in found.documents}.isdisjoint(
        {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
    )
    accounts = {kind: template["spec"]["serviceAccountName"] for kind, template in found.pods()}
    assert accounts == {"Deployment": "mine", "CronJob": "mine-release", "Job": "mine-release"}
    for policy in found.of("ValidatingAdmissionPolicy"):
        who = policy["spec"]["matchConditions"][0]["expression"]
        assert f"'system:serviceaccount:{NAMESPACE}:mine'" in who
        assert f"'system:serviceaccount:{NAMESPACE}:mine-release'" in who


def test_labels_that_selectors_use_cannot_be_replaced(render: Renderer) -> None:
    foreign = {"app.kubernetes.io/name": "other", "app.kubernetes.io/component": "other"}
    found = render({"commonLabels": foreign, "podLabels": foreign})
    selector = found.deployment["spec"]["selector"]["matchLabels"]
    assert selector.items() <= found.pod("Deployment")["metadata"]["labels"].items()


def test_traffic_out_is_limited_to_what_the_operator_asks(render: Renderer) -> None:
    extra = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
    chosen = {"enabled": True, "apiServerPorts": [6443], "prometheusPorts": [9090, 443], "extra": [extra]}
    found = render({"networkPolicy": {"egress": chosen}})
    policy = found.named("NetworkPolicy", "ballast-egress")["spec"]
    assert policy["policyTypes"] == ["Egress"]
    dns, servers, more = policy["egress"]
    assert {port["port"] for port in dns["ports"]} == {53}
    assert [port["port"] for port in servers["ports"]] == [6443, 9090, 443]
    assert more == extra
    selected = policy["podSelector"]["matchLabels"].items()
    assert all(selected <= template["metadata"]["labels"].items() for _, template in found.pods())
    assert render({"networkPolicy": {"enabled": False, "egress": chosen}}).of("NetworkPolicy") == []


@pytest.mark.parametrize(
    ("chosen", "open_ports"),
    [
        ({"apiServerPorts": [], "prometheusPorts": []}, [{53}]),
        ({"prometheusPorts": []}, [{53}, {443, 6443}]),
        ({"apiServerPorts": []}, [{53}, {9090}]),
    ],
    ids=str,
)
def test_a_list_without_ports_opens_none(chosen: JSON, open_ports: list[set[int]], render: Renderer) -> None:
    policy = render({"networkPolicy": {"egress": {"enabled": True, **chosen}}}).named("NetworkPolicy", "ballast-egress")
    assert [{port["port"] for port in rule["ports"]} for rule in policy["spec"]["egress"]] == open_ports


@pytest.mark.parametrize("crds", [{"install": False, "keep": False}, {"install": True, "keep": True}, {}], ids=str)
def test_values_of_a_chart_that_kept_its_definitions_are_let_through(crds: JSON, render: Renderer) -> None:
    assert render({"crds": crds}).deployment


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"crds": {"keep": False}}, "kubectl annotate crd .* helm.sh/resource-policy=keep"),
        ({"crds": {"install": True, "keep": False}}, "with every policy, topology and move"),
        ({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}, "env: the name A is there twice"),
        ({"extraVolumes": [{"name": "tmp", "emptyDir": {}}]}, "extraVolumes: the name tmp is there twice"),
        ({"extraVolumeMounts": [{"name": "a", "mountPath": "/tmp"}]}, "extraVolumeMounts: the mountPath /tmp"),
        ({"extraContainers": [{"name": "ballast"}]}, "extraContainers: the name ballast is there twice"),
        ({"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}, "imagePullSecrets: the name a is there twice"),
        ({"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}, "choose one, because both together"),
        ({"image": {"digest": "sha256:123"}}, "at '/image/digest'"),
        ({"prometheusRule": {"disabled": ["BallastDonw"]}}, "at '/prometheusRule/disabled/0'"),
    ],
    ids=str,
)
def test_what_the_server_would_refuse_half_way_is_refused_before(values: JSON, words: str, render: Renderer) -> None:
    with pytest.raises(TestbedError, match=words):
        render(values)


def sections(schema: JSON, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every section with keys of its own."""
    if "properties" in schema and schema.get("type") == "object":
        yield path
        for key, inner in schema["properties"].items():
            yield from sections(inner, (*path, key))


def test_a_misspelt_key_is_refused_at_each_level(render: Renderer) -> None:
    values: JSON = {}
    for path in sections(SCHEMA):
        at = values
        for key in path:
            at = at.setdefault(key, {})
        at["misspelt"] = 1
    with pytest.raises(TestbedError) as refused:
        render(values)
    complaints = str(refused.value)
    for path in sections(SCHEMA):
        assert f"at '{'/' * bool(path)}{'/'.join(path)}': additional properties 'misspelt' not allowed" in complaints


def test_the_remedy_for_definitions_that_an_upgrade_would_delete_names_all_of_them(render: Renderer) -> None:
    with pytest.raises(TestbedError) as refused:
        render({"crds": {"keep": False}})
    assert all(kind.crd_name in str(refused.value) for kind in KINDS)


def test_an_umbrella_chart_and_anchors_of_yaml_are_let_through(render: Renderer) -> None:
    assert render({"enabled": True, "x-anchors": {"a": 1}, "global": {"b": 2}}).deployment


def test_the_schema_knows_all_values_and_no_reference_leads_astray() -> None:
    known = set(SCHEMA["properties"])
    assert known - set(DEFAULTS) == {"global", "enabled", "crds"}
    assert set(DEFAULTS) <= known
    assert SCHEMA["$schema"].endswith("2020-12/schema")
    references = [each["$ref"] for each in every_object(SCHEMA) if "$ref" in each]
    assert {name.removeprefix("#/$defs/") for name in references} == set(SCHEMA["$defs"])


def every_object(value: Any) -> Iterator[JSON]:
    if isinstance(value, dict):
        yield value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from every_object(child)


def test_values_of_the_first_chart_make_the_same_objects(render: Renderer, defaults: Manifests) -> None:
    """`--reuse-values` brings them, without any newer section, and with `crds`."""
    older: JSON = {"crds": {"install": True, "keep": True}}
    assert render({**older, **{key: None for key in DEFAULTS if key not in FIRST_VALUES}}) == defaults


def test_the_readme_has_all_values_with_their_defaults() -> None:
    assert readme.FILE.read_text() == readme.rendered(), "run `make generate`"
    unexplained = {value.path for value in readme.values() if not value.meaning}
    assert unexplained <= {
        "image.repository", "image.pullPolicy", "imagePullSecrets", "staleRelease.schedule", "logging.level",
        "extraVolumes", "extraVolumeMounts", "podAnnotations", "podLabels", "nodeSelector", "tolerations",
        "resources.limits", *(value.path for value in readme.values() if "Monitor." in value.path),
        *(value.path for value in readme.values() if value.path.endswith((".namespace", ".labels"))),
        "networkPolicy.egress.apiServerPorts", "networkPolicy.egress.prometheusPorts", *NESTED_SECURITY,
    }  # fmt: skip


NESTED_SECURITY = {
    value.path for value in readme.values() if value.path.startswith(("podSecurityContext.", "securityContext."))
}
