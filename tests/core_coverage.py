"""`python -m tests.core_coverage PACKAGE…`: do the unit tests of the core's packages pass and take their branches?

Runs them once, on all cores, and fails when fewer than `AIM_PERCENT` of a package's branches are taken, naming
them. Properties, recorded cases and scenarios don't count: they are slow under a tracer, and what only they reach
no test names.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

AIM_PERCENT = 95.0
MORE_WORKERS = 1
"""Of pytest-xdist than there are cores: tests of the controller wait for half of their time."""

Files = Mapping[str, Mapping[str, Any]]
"""By path, each with the `summary`, `missing_lines` and `missing_branches` of coverage's JSON report."""


def main() -> int:
    packages = sys.argv[1:]
    if not packages:
        print("name the packages: python -m tests.core_coverage placement shedding …", file=sys.stderr)
        return 2
    with TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        traced = [f"--cov=ballast.{package}" for package in packages]
        tests = [f"tests/unit/{package}" for package in packages]
        workers = str((os.cpu_count() or 1) + MORE_WORKERS)
        options = ["-q", "-n", workers, "--cov-branch", "--cov-config=", f"--cov-report=json:{report}"]
        options.append("--hypothesis-profile=fixed")
        failed = pytest.main([*options, *traced, *tests])
        measured = _measured(report) if not failed else {}
    if failed:
        return int(failed)
    short = [package for package, files in sorted(measured.items()) if not _reaches_aim(package, files)]
    if short:
        print(f"below {AIM_PERCENT:g} % of branches: {', '.join(short)}; what is not taken is above", file=sys.stderr)
    return 1 if short else 0


def _measured(report: Path) -> Mapping[str, Files]:
    files: Files = json.loads(report.read_text(encoding="utf-8"))["files"]
    packages: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for name, file in files.items():
        packages[name.rpartition("ballast/")[2].partition("/")[0]][name] = file
    return packages


def _reaches_aim(package: str, files: Files) -> bool:
    branches = sum(file["summary"]["num_branches"] for file in files.values())
    taken = sum(file["summary"]["covered_branches"] for file in files.values())
    percent = 100.0 * taken / branches if branches else 100.0
    print(f"{package}: {percent:.1f} % of {branches} branches")
    if percent < AIM_PERCENT:
        print(*(f"  {line}" for name, file in files.items() for line in _untaken(name, file)), sep="\n")
    return percent >= AIM_PERCENT


def _untaken(name: str, file: Mapping[str, Any]) -> Iterator[str]:
    for source, target in file["missing_branches"]:
        yield f"{name}:{source} never goes on to {f'line {target}' if target > 0 else 'its end'}"


if __name__ == "__main__":
    sys.exit(main())
