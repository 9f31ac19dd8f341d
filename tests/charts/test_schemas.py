"""What the chart makes has no field that its kind does not have: kubeconform, with schemas that are closed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.charts.rendering import CHART, JSON, Manifests, Renderer
from tests.charts.schemas import Kubeconform
from tests.charts.test_values import DIGEST, MOUNT
from tests.testbed.binaries import find_binaries

EVERYTHING: JSON = {
    "image": {"digest": DIGEST},
    "commonLabels": {"team": "data"},
    "commonAnnotations": {"example.com/owner": "data"},
    "evictionNamespaces": ["analytics"],
    "prometheus": {"secrets": ["token"]},
    "serviceMonitor": {"enabled": True, "scrapeTimeout": "10s", "relabelings": [{"action": "labeldrop", "regex": "x"}]},
    "prometheusRule": {"enabled": True},
    "dashboards": {"enabled": True},
    "networkPolicy": {"egress": {"enabled": True, "extra": [{"ports": [{"port": 443}]}]}},
    "env": [{"name": "HTTPS_PROXY", "value": "http://proxy"}],
    "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "extraVolumeMounts": [MOUNT],
    "extraContainers": [{"name": "proxy", "image": "proxy"}],
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
    "hostNetwork": True,
    "dnsPolicy": "ClusterFirstWithHostNet",
    "priorityClassName": "system-cluster-critical",
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn"}},
}


def test_everything_that_the_chart_can_make_is_valid(kubeconform: Kubeconform, render: Renderer) -> None:
    made = render(EVERYTHING)
    assert {"ServiceMonitor", "PrometheusRule", "ConfigMap"} <= {each["kind"] for each in made.documents}
    assert kubeconform.complaints(*made.documents) == ""
    pods = render({"podMonitor": {"enabled": True}})
    assert pods.of("PodMonitor")
    assert kubeconform.complaints(*pods.documents) == ""


def test_the_definitions_are_valid(kubeconform: Kubeconform) -> None:
    documents = [yaml.safe_load(path.read_text()) for path in (CHART / "crds").iterdir()]
    assert len(documents) == 4
    assert kubeconform.complaints(*documents) == ""


def misspell(path: str) -> Callable[[JSON], None]:
    def change(document: JSON) -> None:
        at: Any = document
        *steps, last = path.split(".")
        for step in steps:
            at = at[int(step)] if step.isdigit() else at[step]
        at[last + "x"] = at.pop(last)

    return change


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Deployment", "spec.replicas"),
        ("Deployment", "spec.template.spec.containers.0.securityContext.readOnlyRootFilesystem"),
        ("CronJob", "spec.jobTemplate.spec.template.spec.restartPolicy"),
        ("NetworkPolicy", "spec.podSelector"),
        ("PodDisruptionBudget", "spec.maxUnavailable"),
        ("ValidatingAdmissionPolicy", "spec.matchConstraints.resourceRules.0.operations"),
        ("MutatingAdmissionPolicy", "spec.mutations.0.applyConfiguration.expression"),
        ("ServiceMonitor", "spec.endpoints.0.interval"),
        ("PrometheusRule", "spec.groups.0.rules.0.expr"),
    ],
)
def test_a_misspelt_field_is_found(kind: str, path: str, kubeconform: Kubeconform, render: Renderer) -> None:
    document = copy.deepcopy(render(EVERYTHING).of(kind)[0])
    misspell(path)(document)
    assert path.rsplit(".", maxsplit=1)[-1] + "x" in kubeconform.complaints(document)


def test_a_kind_without_a_schema_is_not_passed_over(kubeconform: Kubeconform) -> None:
    unknown = {"apiVersion": "example.com/v1", "kind": "Unknown", "metadata": {"name": "a"}}
    assert "could not find schema" in kubeconform.complaints(unknown)


@pytest.mark.soak  # it builds Helm 3, which takes minutes
def test_helm_3_makes_the_same_objects(render: Renderer, defaults: Manifests) -> None:
    older = Renderer(
        type(render.helm)(find_binaries(["helm3"], progress=print)["helm3"], Path("/dev/null"), render.helm.home)
    )
    assert older() == defaults
    assert older(EVERYTHING) == render(EVERYTHING)
