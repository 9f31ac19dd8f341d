"""The Dockerfile's own steps, as far as they need no container engine. `make image` builds and tries the whole."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.uv import uv

ROOT = Path(__file__).parents[2]
FROM_ELSEWHERE = "--from="


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """Its instructions in their order, each as a name and the rest of its line."""

    instructions: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, path: Path) -> Dockerfile:
        lines = re.sub(r"\\\n\s*", " ", path.read_text()).splitlines()
        return cls(tuple((line.split()[0], line.split(None, 1)[1]) for line in lines if line and line[0] != "#"))

    def all(self, name: str) -> list[str]:
        return [rest for found, rest in self.instructions if found == name]

    @property
    def copied(self) -> list[str]:
        """What comes from the checkout."""
        lines = [rest.split() for rest in self.all("COPY") if FROM_ELSEWHERE not in rest]
        return [source for line in lines for source in line[:-1]]

    @property
    def installs(self) -> list[list[str]]:
        """The commands that make the folder that goes into the operator's image: dependencies, then the program."""
        return [rest.split() for rest in self.all("RUN") if "scripts/install.sh" in rest and "&&" not in rest]


DOCKERFILE = Dockerfile.read(ROOT / "Dockerfile")
COMMANDS = [[], ["run"], ["release"], ["crds"], ["plan"]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made as in the image, from nothing but what the Dockerfile copies; that is gone again."""
    folder = tmp_path_factory.mktemp("image")
    context, made = folder / "src", folder / "installed"
    context.mkdir()
    for source in DOCKERFILE.copied:
        (context / source).parent.mkdir(exist_ok=True)
        _copy(ROOT / source, context / source)
    variables = {"PATH": f"{uv().parent}:{os.environ['PATH']}"}
    assert len(DOCKERFILE.installs) == 2
    for command in DOCKERFILE.installs:
        words = [
            str(made) if word == "/opt/ballast" else "amd64" if word == "$TARGETARCH" else word for word in command
        ]
        done = subprocess.run(
            words, cwd=context, env=os.environ | variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    shutil.rmtree(context)
    return made


def _python(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The system's interpreter, as in the image, with that folder alone."""
    return subprocess.run(
        ["/usr/bin/python3", *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )


def _copy(source: Path, target: Path) -> None:
    patterns = (ROOT / ".dockerignore").read_text().split()
    relative = str(source.relative_to(ROOT))
    assert not any(fnmatch(relative, pattern) for pattern in patterns), f"{relative} is in .dockerignore"
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def _uv_version() -> str:
    match = re.search(r"^UV_VERSION=(\S+)$", (ROOT / "scripts" / "setup.sh").read_text(), re.MULTILINE)
    assert match
    return match.group(1)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_program_works_with_what_the_image_holds(installed: Path, command: list[str]) -> None:
    interpreter, *program = json.loads(DOCKERFILE.all("ENTRYPOINT")[-1])
    assert interpreter == "python3"
    done = _python(installed, *program, *command, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: ballast" in done.stdout


def test_the_command_line_reads_a_kubeconfig_with_what_the_image_holds(installed: Path, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("apiVersion: v1\nkind: Config\ncurrent-context: gone\n", encoding="utf-8")
    done = _python(installed, "-m", "ballast", "status", "--kubeconfig", str(config))
    assert done.returncode == 1
    assert "gone" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("module", ["pytest", "hypothesis", "pyspark", "tests"])
def test_what_only_tests_need_is_not_in_the_image(installed: Path, module: str) -> None:
    script = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is not None)"
    assert _python(installed, "-S", "-c", script).returncode == 0


def test_the_image_holds_at_most_180_mib_of_packages(installed: Path) -> None:
    assert sum(path.stat().st_size for path in installed.rglob("*") if path.is_file()) <= 180 * 2**20


def test_the_image_and_the_checkout_use_the_same_uv() -> None:
    assert any(f"uv=={_uv_version()}" in rest for rest in DOCKERFILE.all("RUN"))


def test_the_image_for_jobs_is_by_default_on_the_python_that_its_packages_are_for() -> None:
    """Each image of Spark has a Python of its own: one is named with the BASE that goes with it."""
    assert dict(argument.split("=", 1) for argument in DOCKERFILE.all("ARG"))["SPARK_BASE"] == "${BASE}"


def test_the_image_runs_as_the_user_of_the_chart() -> None:
    user, group = DOCKERFILE.all("USER")[-1].split(":")
    # What the chart renders by its defaults.
    rendered = (ROOT / "manifests" / "ballast.yaml").read_text(encoding="utf-8")
    assert int(user) > 0
    assert set(re.findall(r"runAsUser: (\d+)", rendered)) == {user}
    assert set(re.findall(r"runAsGroup: (\d+)", rendered)) == {group}
