"""What jobs import of Ballast is there, imports nothing of the operator's, and is small."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import ballast
from ballast.job_files import job_files
from tests.unit.cli.program import run

ROOT = Path(__file__).parents[2]
NOT_IN_IMAGES = {"kopf", "kubernetes", "typer", "pydantic", "rich"}
IMPORT_ALL = """
import importlib, json, sys, zipfile
archive = sys.argv[1]
sys.path.insert(0, archive)
for name in zipfile.ZipFile(archive).namelist():
    importlib.import_module(name.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
print(json.dumps([[name, getattr(module, "__file__", "")] for name, module in sorted(sys.modules.items())]))
"""
IMPORT = "import ballast.spark.audit, ballast.spark.routing, ballast.spark.source, sys; print(*sys.modules)"
BESIDE = ("numpy", "pyarrow")
"""What images of Spark have, and what is not counted."""
LARGEST_BYTES = 3 << 20
NONE = "import sys; sys.modules['pyspark'] = None; import ballast.spark.source"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    file = tmp_path / "ballast.zip"
    told = run("pyfiles", str(file))
    assert told.code == 0, told.err
    assert told.out.startswith(f"{file}: Ballast {ballast.__version__}, ")
    return file


def test_the_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert ballast.__version__ == project["version"]


def test_every_module_for_jobs_imports_from_the_archive_alone(archive: Path) -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL, archive], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = {name: str(file) for name, file in json.loads(done.stdout)}
    assert not NOT_IN_IMAGES & loaded.keys()
    own = {file for name, file in loaded.items() if name.split(".")[0] == "ballast"}
    assert len(own) > 30
    assert all(file.startswith(str(archive)) for file in own)


def test_the_archive_is_small_and_the_same_each_time(archive: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    run("pyfiles", str(again))
    assert again.read_bytes() == archive.read_bytes()
    assert archive.stat().st_size < 300_000
    assert len(zipfile.ZipFile(archive).namelist()) == len(list(job_files(Path(ballast.__file__).parent)))


def test_an_archive_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    told = run("pyfiles", str(tmp_path / "none" / "ballast.zip"))
    assert (told.code, told.out) == (1, "")
    assert "name a file that can be written" in told.err


def test_without_pyspark_an_import_fails_with_one_sentence() -> None:
    done = subprocess.run([sys.executable, "-c", NONE], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("ImportError: ")]
    assert said.startswith("ImportError: ballast.spark needs PySpark, which is not here: run this with spark-submit")


@pytest.mark.soak
def test_the_wheel_for_images_installs_without_the_operators_packages_and_without_pyspark(tmp_path: Path) -> None:
    """It asks the package index, as an image that is built does."""
    uv = subprocess.run(["sh", ROOT / "scripts/setup.sh", "--print-uv"], check=True, capture_output=True, text=True)

    def do(*command: str | Path) -> str:
        return subprocess.run([*command], check=True, capture_output=True, text=True, cwd=tmp_path).stdout

    name = uv.stdout.strip()
    do(name, "build", "--wheel", ROOT / "packaging/jobs", "-o", tmp_path)
    do(name, "venv", "--python", sys.executable, tmp_path / "fresh")
    python = tmp_path / "fresh/bin/python"
    (wheel,) = tmp_path.glob("*.whl")
    do(name, "pip", "install", "--python", python, wheel)
    (packages,) = (tmp_path / "fresh/lib").glob("python*/site-packages")
    own = [each for each in packages.iterdir() if not each.name.startswith(BESIDE)]
    assert sum(file.stat().st_size for each in own for file in each.rglob("*") if file.is_file()) < LARGEST_BYTES
    refused = subprocess.run([python, "-c", IMPORT], capture_output=True, text=True, check=False)
    assert refused.stderr.splitlines()[-1].startswith("ImportError: ballast.spark needs PySpark, which is not here")
    # As an image of Spark has it.
    for module in ("pyspark", "py4j"):
        found = find_spec(module)
        assert found is not None
        assert found.origin is not None
        (packages / module).symlink_to(Path(found.origin).parent)
    do(name, "pip", "install", "--python", python, "prometheus-api-client")
    assert not NOT_IN_IMAGES & set(do(python, "-c", IMPORT).split())
