"""Every row of tests/faults/README.md: is the fault survived, and how long does recovery take?

Runs the tests that the rows name, except those of tests/e2e, which `make e2e` runs. Recovery is counted from the end of
a fault until sets and moves are where they are undisturbed; not every test has such an end.

`python -m benchmarks.faults --only clock` is a short form, for trying.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from benchmarks.report import Aim, Result, machine, write
from tests.faults.invariants import RECOVERY_SECONDS

TABLE = Path("tests/faults/README.md")
_TEST = re.compile(r"`(tests/[\w/]+\.py::\w+(?:\[[^\]]+\])?)`")
_RECOVERED = re.compile(r"recovered in ([\d.]+) s")


@dataclass(frozen=True, slots=True)
class Row:
    part: str
    fault: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    passed: bool
    recovery_seconds: float | None


def rows(table: str) -> Iterator[Row]:
    part = ""
    for line in table.splitlines():
        if line.startswith("## "):
            part = line.removeprefix("## ")
        elif line.startswith("| ") and (tests := _TEST.findall(line)):
            fault = line.split("|")[1].strip()
            yield Row(part, fault, tuple(each for each in tests if not each.startswith("tests/e2e/")))


def run(tests: list[str], report: Path) -> dict[str, Ended]:
    """How each test ended, by its id."""
    options = ["-q", f"--junitxml={report}", "-o", "junit_logging=system-out", "-o", "junit_log_passing_tests=true"]
    subprocess.run([sys.executable, "-m", "pytest", *options, *tests], check=False)
    return {name: ended for case in ET.parse(report).iter("testcase") for name, ended in [_ended(case)]}


def _ended(case: ET.Element) -> tuple[str, Ended]:
    passed = not any(case.find(outcome) is not None for outcome in ("failure", "error", "skipped"))
    seconds = [float(found) for found in _RECOVERED.findall(case.findtext("system-out") or "")]
    path = case.attrib["classname"].replace(".", "/")
    return f"{path}.py::{case.attrib['name']}", Ended(passed, max(seconds, default=None))


def results(table: list[Row], ended: dict[str, Ended]) -> Iterator[Result]:
    survived = 0
    for row in table:
        found = [
            end for test in row.tests for name, end in ended.items() if name == test or name.startswith(f"{test}[")
        ]
        passed = bool(found) and all(end.passed for end in found)
        survived += passed
        case, one = f"{row.part}: {row.fault}", Aim(1.0, at_least=True)
        yield Result(case, "survived", float(passed), "1", aim=one)
        recoveries = [end.recovery_seconds for end in found if end.recovery_seconds is not None]
        if recoveries:
            yield Result(case, "recovery", max(recoveries), "s", aim=Aim(RECOVERY_SECONDS))
    yield Result("all", "faults survived", float(survived), "1", aim=Aim(float(len(table)), at_least=True))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--only", default="", help="rows whose fault has this text")
    only = parser.parse_args().only
    before = machine()
    table = [row for row in rows(TABLE.read_text(encoding="utf-8")) if only in row.fault]
    tests = sorted({test for row in table for test in row.tests})
    with tempfile.TemporaryDirectory() as folder:
        found = list(results(table, run(tests, Path(folder) / "report.xml")))
    write("faults", found, before=before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
