"""The Dockerfile's own steps, as far as they need no container engine. `make image` builds and tries the whole."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

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
    def last_sync(self) -> list[str]:
        """The arguments with which uv makes the environment that goes into the image."""
        *_, last = [rest.split() for rest in self.all("RUN") if " sync " in rest]
        return last[last.index("sync") :]


DOCKERFILE = Dockerfile.read(ROOT / "Dockerfile")
COMMANDS = [[], ["run"], ["release"], ["crds"], ["plan"]]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made as in the image, from nothing but what the Dockerfile copies; that is gone again."""
    folder = tmp_path_factory.mktemp("image")
    context, made = folder / "src", folder / "environment"
    context.mkdir()
    for source in DOCKERFILE.copied:
        _copy(ROOT / source, context / source)
    variables = {"UV_PROJECT_ENVIRONMENT": str(made), "UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}
    done = subprocess.run(
        [_uv(), *DOCKERFILE.last_sync],
        cwd=context,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shutil.rmtree(context)
    return made


def _copy(source: Path, target: Path) -> None:
    patterns = (ROOT / ".dockerignore").read_text().split()
    relative = str(source.relative_to(ROOT))
    assert not any(fnmatch(relative, pattern) for pattern in patterns), f"{relative} is in .dockerignore"
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def _uv() -> str:
    """As scripts/setup.sh finds it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ballast" / f"uv-{_uv_version()}"
    return shutil.which("uv") or str(cache / "bin" / "uv")


def _uv_version() -> str:
    match = re.search(r"^UV_VERSION=(\S+)$", (ROOT / "scripts" / "setup.sh").read_text(), re.MULTILINE)
    assert match
    return match.group(1)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_program_works_with_what_the_image_holds(environment: Path, command: list[str]) -> None:
    (program,) = json.loads(DOCKERFILE.all("ENTRYPOINT")[-1])
    done = subprocess.run(
        [environment / "bin" / program, *command, "--help"], capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: ballast" in done.stdout


@pytest.mark.parametrize("module", ["pytest", "hypothesis", "pyspark", "tests"])
def test_what_only_tests_need_is_not_in_the_image(environment: Path, module: str) -> None:
    script = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is not None)"
    subprocess.run([environment / "bin" / "python", "-c", script], check=True, cwd="/")


def test_the_image_and_the_checkout_use_the_same_uv() -> None:
    assert any(f"uv=={_uv_version()}" in rest for rest in DOCKERFILE.all("RUN"))


def test_the_image_runs_as_the_user_of_the_chart() -> None:
    user, group = DOCKERFILE.all("USER")[-1].split(":")
    # What the chart renders by its defaults.
    rendered = (ROOT / "manifests" / "ballast.yaml").read_text(encoding="utf-8")
    assert int(user) > 0
    assert set(re.findall(r"runAsUser: (\d+)", rendered)) == {user}
    assert set(re.findall(r"runAsGroup: (\d+)", rendered)) == {group}
