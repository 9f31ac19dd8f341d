"""The kustomization at the top of the repository makes what the chart makes."""

from __future__ import annotations

from typing import Any

import yaml

from ballast.api.crd import KINDS
from tests.charts.kustomization import FILE, ROOT, rendered
from tests.charts.rendering import Renderer

KUSTOMIZATION = yaml.safe_load((ROOT / "kustomization.yaml").read_text())


def made() -> list[dict[str, Any]]:
    """All of its objects."""
    texts = [(ROOT / resource).read_text() for resource in KUSTOMIZATION["resources"]]
    return [document for text in texts for document in yaml.safe_load_all(text) if document]


def test_its_file_is_what_the_chart_makes_now(render: Renderer) -> None:
    assert FILE.read_text() == rendered(render.helm), "run `make generate`"


def test_it_has_every_definition_and_every_manifest() -> None:
    definitions = {f"crds/ballast.dev_{kind.plural}.yaml" for kind in KINDS}
    manifests = {f"manifests/{path.name}" for path in FILE.parent.iterdir()}
    assert set(KUSTOMIZATION["resources"]) == definitions | manifests


def test_nothing_of_it_is_a_hook_or_runs_at_once_next_to_the_operator() -> None:
    assert "Job" not in {document["kind"] for document in made()}
    assert not [each for each in made() if "helm" in yaml.safe_dump(each["metadata"]).lower()]


def test_it_brings_the_namespace_that_its_objects_are_in() -> None:
    (namespace,) = (document["metadata"]["name"] for document in made() if document["kind"] == "Namespace")
    assert {document["metadata"].get("namespace", namespace) for document in made()} == {namespace}
