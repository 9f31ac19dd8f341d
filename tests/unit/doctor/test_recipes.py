"""The files of docs/recipes: doctor finds nothing in them, and they select pods as other tools make them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.api import BalancingPolicy, SparkTopology
from tests.unit.cli.program import run

ROOT = Path(__file__).parents[3]
RECIPES = ROOT / "docs" / "recipes"
FILES = RECIPES / "files"
BROKERS = ROOT / "tests" / "field" / "16-strimzi" / "pods.json"
OWN = {"BalancingPolicy": BalancingPolicy, "SparkTopology": SparkTopology}
DRIVERS = {
    "Spark": {"spark-role": "driver", "spark-app-selector": "spark-1", "spark-version": "4.0.4"},
    "kubeflow": {"spark-role": "driver", "sparkoperator.k8s.io/app-name": "clicks", "version": "4.0"},
    "Apache": {"spark-role": "driver", "spark.operator/spark-app-name": "clicks"},
}
"""Labels of drivers, by what makes them."""


def documents(name: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all((FILES / name).read_text()) if each]


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    return bool(selector["matchLabels"].items() <= labels.items())


@pytest.mark.parametrize(
    "arguments",
    [
        ("-f", "kubeflow.yaml"),
        ("-f", "apache.yaml"),
        ("-f", "connect.yaml"),
        ("--spark-submit", "spark-submit.sh"),
        ("--conf", "dynamic-allocation.conf"),
        ("--conf", "spot.conf"),
        ("--conf", "kueue.conf"),
    ],
    ids=lambda arguments: arguments[1],
)
def test_doctor_finds_nothing_in_a_recipe(arguments: tuple[str, str]) -> None:
    ended = run("doctor", arguments[0], str(FILES / arguments[1]))
    assert "No findings." in ended.out
    assert ended.code == 0


def test_a_remote_shuffle_service_is_named_and_nothing_else() -> None:
    ended = run("doctor", "--conf", str(FILES / "remote-shuffle.conf"))
    assert ended.code == 0
    assert re.findall(r"^(?:error|warning|info): (\w+)", ended.out, re.MULTILINE) == ["RemoteShuffle"]


@pytest.mark.parametrize("name", ["kubeflow.yaml", "apache.yaml"])
def test_an_application_of_a_recipe_has_all_that_its_executors_need_to_be_moved(name: str, tmp_path: Path) -> None:
    """Doctor checks that where the executors themselves name their workload, and no topology does."""
    text = (FILES / name).read_text().replace("ballast.dev/component: clicks", "ballast.dev/workload: Streaming")
    file = tmp_path / name
    file.write_text(text)
    ended = run("doctor", "-f", str(file))
    assert "what moves need was not checked" not in ended.out
    assert "No findings." in ended.out
    file.write_text(text.replace('spark.decommission.enabled: "true"', 'spark.decommission.enabled: "false"'))
    assert run("doctor", "-f", str(file)).code == 1


@pytest.mark.parametrize("file", sorted(FILES.glob("*.yaml")), ids=lambda file: file.name)
def test_ballasts_own_resources_are_valid(file: Path) -> None:
    for document in documents(file.name):
        if document.get("apiVersion") == "ballast.dev/v1alpha1":
            assert OWN[document["kind"]].parse(document).metadata.name


def test_the_brokers_of_one_cluster_of_strimzi_are_selected_and_nothing_else() -> None:
    (topology,) = documents("strimzi.yaml")
    selector = topology["spec"]["components"][0]["external"]["selector"]
    text = BROKERS.read_text().replace("internal-bus", selector["matchLabels"]["strimzi.io/cluster"])
    pods = [pod["metadata"] for pod in json.loads(text)["items"]]
    chosen = {pod["name"] for pod in pods if selects(selector, pod.get("labels", {}))}
    assert chosen
    assert all(name.startswith("events-brokers-") for name in chosen)
    assert len(chosen) < len(pods)


@pytest.mark.parametrize("maker", DRIVERS)
def test_drivers_are_scraped_whoever_makes_them(maker: str) -> None:
    (monitor,) = documents("kube-prometheus-stack.yaml")
    assert selects(monitor["spec"]["selector"], DRIVERS[maker])
    assert not selects(monitor["spec"]["selector"], {"spark-role": "executor"})
    paths = {each["path"] for each in monitor["spec"]["podMetricsEndpoints"]}
    (kubeflow,) = documents("kubeflow.yaml")
    assert kubeflow["spec"]["sparkConf"]["spark.metrics.conf.*.sink.prometheusServlet.path"] in paths
    assert "/metrics/executors/prometheus" in paths


def test_nodes_of_a_recipe_belong_to_the_policys_pool() -> None:
    (policy,) = documents("policy.yaml")
    for name in ("karpenter.yaml", "spot.yaml", "kueue.yaml"):
        first = documents(name)[0]["spec"]
        labels = first["nodeLabels"] if "nodeLabels" in first else first["template"]["metadata"]["labels"]
        assert selects(policy["spec"]["nodeSelector"], labels), name


def test_the_gate_of_a_pod_template_is_ballasts() -> None:
    (patch,) = documents("kubeflow-gate-patch.yaml")
    assert patch["spec"]["executor"]["template"]["spec"]["schedulingGates"] == [{"name": "ballast.dev/placement"}]


def test_every_file_is_on_a_page_and_every_page_in_the_list() -> None:
    pages = {page.name: page.read_text() for page in RECIPES.glob("*.md")}
    for file in FILES.iterdir():
        assert any(f"(files/{file.name})" in text for text in pages.values()), file.name
    for name in pages.keys() - {"README.md"}:
        assert f"({name})" in pages["README.md"], name
