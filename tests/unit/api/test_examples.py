from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ballast.api.crd import KINDS

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_read_without_complaint(path: Path) -> None:
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        model = next(kind.model for kind in KINDS if kind.name == document["kind"])
        assert model.parse(document).metadata.name == document["metadata"]["name"]


def test_there_is_an_example_of_each_kind() -> None:
    documents = [one for path in EXAMPLES for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))]

    assert {document["kind"] for document in documents} == {kind.name for kind in KINDS}


def test_the_quota_for_tenants_limits_what_a_tenant_may_create_of_the_namespaced_kinds() -> None:
    """The API server takes any name there, and counts nothing under one that is wrong."""
    quota = yaml.safe_load((EXAMPLES[0].parent / "tenants" / "resourcequota.yaml").read_text(encoding="utf-8"))
    assert quota["spec"]["hard"].keys() == {
        f"count/{kind.crd_name}" for kind in KINDS if kind.name in ("ExecutorMove", "SparkTopology")
    }
