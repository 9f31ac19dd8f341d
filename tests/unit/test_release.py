"""What a release consists of. `make release VERSION=…` makes it; nothing is published here."""

from __future__ import annotations

import email
import json
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from scripts import release
from tests.testbed.binaries import find_binaries
from tests.uv import uv

ROOT = Path(__file__).parents[2]
STATED = release.stated_versions()["version in pyproject.toml"]
NOTES = "# Changelog\n\n## Unreleased\n\n- drains\n\n## 0.2.0 (2026-12-01)\n\n- routing\n\n## 0.1.0\n"


def test_all_places_state_one_version() -> None:
    assert set(release.stated_versions().values()) == {STATED}


@pytest.mark.parametrize("version", ["v0.1.0", "0.1", "0.1.0.dev1", ""])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(release.ReleaseError, match="is no version"):
        release.check_version(version)


def test_another_version_than_the_stated_one_is_refused_and_the_place_named() -> None:
    with pytest.raises(release.ReleaseError, match=f"version in pyproject.toml states {re.escape(STATED)}, and not 9"):
        release.check_version("9.0.0")


@pytest.mark.parametrize(("version", "draft", "line"), [("0.2.0", False, "- routing"), ("0.3.0", True, "- drains")])
def test_notes_are_the_section_of_the_version_alone(version: str, draft: bool, line: str) -> None:
    notes = release.notes_of(version, NOTES, draft=draft)
    assert [each for each in notes.splitlines() if each.startswith("- ")] == [line]
    assert f"helm upgrade ballast ballast-{version}.tgz" in notes


@pytest.mark.parametrize("version", ["0.1.0", "0.3.0", "0.2"])
def test_a_version_without_notes_is_refused(version: str) -> None:
    with pytest.raises(release.ReleaseError, match=f"no section '## {re.escape(version)}' with lines"):
        release.notes_of(version, NOTES, draft=False)


def test_a_folder_with_files_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").touch()
    assert release.main([STATED, "--draft", "--out", str(tmp_path)]) == 1
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A draft of the stated version, as `make release` makes it."""
    out = tmp_path_factory.mktemp("release") / "out"
    with pytest.MonkeyPatch.context() as patch:
        for program in (find_binaries(["helm"])["helm"], uv()):
            patch.setenv("PATH", str(program.parent), prepend=":")
        assert release.main([STATED, "--draft", "--out", str(out)]) == 0
    return out


def test_a_release_has_all_its_files_and_their_checksums_hold(made: Path) -> None:
    listed = [line.split()[1] for line in (made / "SHA256SUMS").read_text().splitlines()]
    assert sorted(name.replace(STATED, "V") for name in listed) == [
        "ballast-V.cdx.json",
        "ballast-V.crds.yaml",
        "ballast-V.tgz",
        "ballast-V.yaml",
        "ballast_operator-V-py3-none-any.whl",
        "ballast_operator-V.tar.gz",
        "notes.md",
    ]
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=made, check=True)


def test_the_package_describes_itself_without_links_that_an_index_breaks(made: Path) -> None:
    with zipfile.ZipFile(made / f"ballast_operator-{STATED}-py3-none-any.whl") as wheel:
        names = wheel.namelist()
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        described = email.message_from_bytes(wheel.read(metadata)).get_payload()
    assert isinstance(described, str)
    assert re.findall(r"\]\((?!https?://)[^)]*\)", described) == []
    assert "```mermaid" not in described
    pages = set(re.findall(r"`ballast docs ([\w/-]+)", described))
    assert len(pages) > 20
    assert {f"ballast/docs/{page}.md" for page in pages} <= set(names)


def test_one_file_applies_what_the_kustomization_does(made: Path) -> None:
    kinds = [each["kind"] for each in yaml.safe_load_all((made / f"ballast-{STATED}.yaml").read_text())]
    assert kinds[0] == "Namespace"
    assert kinds.count("CustomResourceDefinition") == 4
    assert "Deployment" in kinds
    crds = list(yaml.safe_load_all((made / f"ballast-{STATED}.crds.yaml").read_text()))
    assert [each["kind"] for each in crds] == ["CustomResourceDefinition"] * 4


def test_the_packed_chart_holds_the_definitions(made: Path) -> None:
    with tarfile.open(made / f"ballast-{STATED}.tgz") as chart:
        assert len([name for name in chart.getnames() if name.startswith("ballast/crds/")]) >= 4


def test_the_bill_of_materials_names_what_is_installed_and_nothing_that_tests_need(made: Path) -> None:
    bill = json.loads((made / f"ballast-{STATED}.cdx.json").read_text())
    names = {component["name"].lower() for component in bill["components"]}
    assert {"kopf", "kubernetes", "pydantic"} <= names
    assert not {"pytest", "pyspark", "pip"} & names
    assert bill["metadata"]["component"]["name"] == "ballast-operator"
