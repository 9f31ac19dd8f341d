from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.api import API_VERSION, GROUP, VERSION
from ballast.api.crd import KINDS, check, generate, write

COMMITTED = Path(__file__).parents[3] / "crds"


def test_the_committed_definitions_are_those_of_the_models() -> None:
    assert check(COMMITTED) == [], "run `ballast crds`"


def test_generating_twice_gives_the_same_text() -> None:
    assert generate() == generate()


def test_what_is_written_needs_no_second_writing(tmp_path: Path) -> None:
    assert len(write(tmp_path)) == len(KINDS)
    assert write(tmp_path) == []


def test_an_edited_a_missing_and_a_stale_file_are_found_and_mended(tmp_path: Path) -> None:
    write(tmp_path)
    names = sorted(generate())
    (tmp_path / names[0]).write_text("edited")
    (tmp_path / names[1]).unlink()
    (tmp_path / "ballast.dev_oldkinds.yaml").write_text("stale")

    assert check(tmp_path) == sorted([names[0], names[1], "ballast.dev_oldkinds.yaml"])
    write(tmp_path)
    assert check(tmp_path) == []


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: []")

    write(tmp_path)

    assert (tmp_path / "kustomization.yaml").exists()


def test_every_kind_has_its_names_and_a_status_of_its_own() -> None:
    names = {}
    for text in generate().values():
        spec = yaml.safe_load(text)["spec"]
        names[spec["names"]["kind"]] = (spec["names"]["plural"], spec["names"]["shortNames"], spec["scope"])
        assert spec["versions"][0]["subresources"] == {"status": {}}
        assert spec["names"]["categories"] == ["ballast"]

    assert names == {
        "SparkTopology": ("sparktopologies", ["stopo"], "Namespaced"),
        "BalancingPolicy": ("balancingpolicies", ["bpol"], "Cluster"),
        "ExecutorMove": ("executormoves", ["emove"], "Namespaced"),
        "GateSwitch": ("gateswitches", ["gsw"], "Cluster"),
    }


def test_the_version_is_group_and_version() -> None:
    assert f"{GROUP}/{VERSION}" == API_VERSION


def numbers(schema: Any, path: str) -> Iterator[str]:
    """Paths of the fields that hold floating-point numbers."""
    if schema.get("type") == "number":
        yield path
    for name, field in schema.get("properties", {}).items():
        yield from numbers(field, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from numbers(schema[name], f"{path}[]")


@pytest.mark.parametrize("path", generate())
def test_no_spec_has_floating_point_numbers(path: str) -> None:
    definition = yaml.safe_load(generate()[path])
    fields = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert list(numbers(fields.get("spec", {}), "spec")) == []
