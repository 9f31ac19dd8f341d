"""A folder in which mutmut changes a copy of some of the core's packages and runs a copy of their tests.

mutmut knows modules by their path below `src/`, so the sources are laid out that way. Speed is bought where it costs
little: quick tests first, fewer examples of a property, the first recorded cases of each class.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
RECORDED_CASES = 40
"""Of each class; all of them take minutes a mutant."""

RECORDED = ("placement", "shedding", "grouping")
"""Packages that recorded cases are about."""
_SHARED = re.compile(r"from tests\.(?:unit|properties)\.(\w+)")
"""What a property test takes from other tests; those that take from tests of other packages are slow."""

_PYPROJECT = """\
[tool.mutmut]
source_paths = ["src"]
only_mutate = [{mutated}]
also_copy = ["conftest.py", "docs"]
pytest_add_cli_args_test_selection = ["tests"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "--hypothesis-profile=mutation"]
use_git_change_detection = false
timeout_multiplier = 4.0
timeout_constant = 5.0

[tool.pytest.ini_options]
{pytest}
"""
_CONFTEST = """\
from hypothesis import HealthCheck, settings

settings.register_profile(
    "mutation", max_examples=50, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: ("/properties/" in item.nodeid, "/vectors/" in item.nodeid))
"""


@dataclass(frozen=True, slots=True)
class Workshop:
    folder: Path

    def furnish(self, packages: Sequence[str]) -> None:
        """Copy what is needed; what an earlier run left is thrown away."""
        shutil.rmtree(self.folder, ignore_errors=True)
        mutated = ", ".join(f'"src/ballast/{package}/*"' for package in packages)
        self._write("pyproject.toml", _PYPROJECT.format(mutated=mutated, pytest=_pytest_settings()))
        self._write("conftest.py", _CONFTEST)
        self._copy("operator/ballast", "src/ballast")
        for name in ("__init__.py", "conftest.py", "builders.py", "examples.py", "unit/__init__.py"):
            self._copy(f"tests/{name}")
        self._copy("tests/testbed", leave="test_*")
        if set(packages) & set(RECORDED):
            self._copy("tests/reference")
            self._copy("tests/vectors")
        for folder in (REPOSITORY / "tests" / "unit").iterdir():
            if (folder / "__init__.py").is_file():
                # Tests of one package use builders of others.
                self._copy(f"tests/unit/{folder.name}", leave="" if folder.name in packages else "test_*")
        self._copy("docs")
        for path in _properties(packages):
            self._copy(str(path.relative_to(REPOSITORY)))
        for path in self.folder.glob("tests/vectors/data/**/*.jsonl"):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text("".join(lines[:RECORDED_CASES]), encoding="utf-8")

    def _write(self, name: str, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, encoding="utf-8")

    def _copy(self, source: str, target: str | None = None, *, leave: str = "__pycache__") -> None:
        origin, copy = REPOSITORY / source, self.folder / (target or source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, copy, ignore=shutil.ignore_patterns("__pycache__", leave))
        else:
            shutil.copy2(origin, copy)

    def mutants(self) -> list[str]:
        """Make them all and give their names."""
        # mutmut makes them as a part of a run; it ends one in which there is nothing to try with an error.
        made = subprocess.run(
            [_mutmut(), "run", "nothing"], cwd=self.folder, check=False, capture_output=True, text=True
        )
        names = sorted(self.verdicts())
        if not names:
            raise RuntimeError(f"mutmut made no mutants:\n{made.stdout}{made.stderr}")
        return names

    def try_out(self, names: Sequence[str]) -> None:
        """Run the tests against these mutants."""
        subprocess.run([_mutmut(), "run", *names], cwd=self.folder, check=True)

    def verdicts(self) -> Mapping[str, str]:
        """Of every mutant, by name: killed, survived, timeout, no tests, not checked, or another of mutmut's words."""
        lines = self._said("results", "--all", "true").splitlines()
        return dict(_named(line) for line in lines if ": " in line)

    def difference(self, name: str) -> str:
        return self._said("show", name)

    def _said(self, *arguments: str) -> str:
        done = subprocess.run([_mutmut(), *arguments], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout


def _properties(packages: Sequence[str]) -> Iterator[Path]:
    """The property tests that speak of the packages, and what they share."""
    names = [f"ballast.{package}" for package in packages]
    helpers = {path.stem for path in (REPOSITORY / "tests/properties").glob("*.py")}
    for path in sorted((REPOSITORY / "tests/properties").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if any(name not in packages and name not in helpers for name in _SHARED.findall(text)):
            continue
        if not path.name.startswith("test_") or any(name in text for name in names):
            yield path


def _pytest_settings() -> str:
    """The project's own, for the folder's layout; TOML writes strings, numbers and lists of them as JSON does."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    settings = {**project["tool"]["pytest"]["ini_options"], "pythonpath": ["src", "."]}
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items())


def _named(line: str) -> tuple[str, str]:
    name, _, verdict = line.strip().rpartition(": ")
    return name, verdict


def _mutmut() -> str:
    return str(Path(sys.executable).with_name("mutmut"))
