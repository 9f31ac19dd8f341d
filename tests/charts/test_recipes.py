"""The resources of other tools in docs/recipes, against the schemas of those tools' own definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.charts.rendering import JSON, Renderer
from tests.charts.schemas import Kubeconform

FILES = Path(__file__).parents[2] / "docs" / "recipes" / "files"
OWN = "ballast.dev/v1alpha1"


def documents(name: str) -> list[JSON]:
    return [each for each in yaml.safe_load_all((FILES / name).read_text()) if each]


@pytest.mark.parametrize("name", ["kube-prometheus-stack.yaml", "karpenter.yaml", "spot.yaml", "kueue.yaml"])
def test_a_recipes_resources_are_valid_to_the_tool_that_they_are_for(name: str, kubeconform: Kubeconform) -> None:
    foreign = [each for each in documents(name) if each["apiVersion"] != OWN]
    assert foreign
    assert kubeconform.complaints(*foreign) == ""


@pytest.mark.parametrize(
    ("name", "section"), [("karpenter.yaml", "disruption"), ("kueue.yaml", "nodeLabels"), ("spot.yaml", "template")]
)
def test_a_misspelt_field_of_a_recipe_would_be_found(name: str, section: str, kubeconform: Kubeconform) -> None:
    document: dict[str, Any] = documents(name)[0]
    document["spec"][section + "x"] = document["spec"].pop(section)
    assert section + "x" in kubeconform.complaints(document)


def test_the_values_for_kube_prometheus_stack_are_values_of_the_chart(render: Renderer) -> None:
    (values,) = documents("kube-prometheus-stack-values.yaml")
    made = render(values)
    for kind in ("ServiceMonitor", "PrometheusRule"):
        (monitor,) = made.of(kind)
        assert monitor["metadata"]["labels"]["release"] == "kube-prometheus-stack"
    assert len(made.of("ConfigMap")) == 3
