"""`ballast crds`: what it writes, what it finds, and where it refuses to write."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ballast.api.crd import KINDS
from ballast.cli.crds import CHART_COPY, DEFINITIONS, PAGE, Files, crds
from ballast.errors import BallastError
from tests.unit.cli.program import run

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder in (DEFINITIONS, CHART_COPY, PAGE.parent):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


@pytest.fixture
def program() -> typer.Typer:
    app = typer.Typer()
    app.command()(crds)
    return app


def test_what_is_committed_is_what_the_models_say() -> None:
    assert Files.of_repository(CHECKOUT).drifted() == [], "run `ballast crds`"


def test_the_definitions_their_copy_and_the_reference_are_written_once(checkout: Path) -> None:
    files = Files.of_repository(checkout)
    written = files.write()
    assert len(written) == 2 * len(KINDS) + 1
    assert checkout / PAGE in written
    assert files.drifted() == []
    assert files.write() == []


def test_a_check_names_every_file_that_differs(
    checkout: Path, program: typer.Typer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    runner = CliRunner()
    assert runner.invoke(program, []).exit_code == 0
    assert runner.invoke(program, ["--check"]).exit_code == 0
    (checkout / PAGE).write_text("edited")
    (checkout / CHART_COPY / "ballast.dev_gateswitches.yaml").unlink()
    (checkout / DEFINITIONS / "ballast.dev_oldkinds.yaml").write_text("stale")
    checked = runner.invoke(program, ["--check"])
    assert checked.exit_code == 1
    for path in (
        "crds/ballast.dev_oldkinds.yaml",
        "charts/ballast/crds/ballast.dev_gateswitches.yaml",
        str(PAGE),
    ):
        assert f"{path} differs from the models: run `ballast crds`" in checked.stderr
    assert "removed crds/ballast.dev_oldkinds.yaml" in runner.invoke(program, []).stdout
    assert runner.invoke(program, ["--check"]).exit_code == 0


def test_a_named_directory_gets_the_definitions_alone(tmp_path: Path, program: typer.Typer) -> None:
    folder = tmp_path / "manifests"
    assert CliRunner().invoke(program, ["--directory", str(folder)]).exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == sorted(kind.file_name for kind in KINDS)
    assert list(tmp_path.iterdir()) == [folder]


def test_outside_a_checkout_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(BallastError, match="has no crds, charts/ballast/crds, docs: go to the top of a checkout"):
        Files.of_repository(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    told = run("crds", "--directory", str(file))
    assert told.code == 2
    assert told.err.strip() == f"Error: --directory: '{file}': File exists: name one that can be written"
