"""`python -m tests.soak [PART…]`: run what takes long, is random or needs a quiet machine, and print a table.

Each part is one command in a process of its own, whose output goes to `build/soak/PART.log`. A part that fails ends
nothing: the others run, too. Ends with 1 if a part failed. `make test` runs none of this, and no landing waits for it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOGS = ROOT / "build" / "soak"
CORE = (
    "controller",
    "kube",
    "prometheus",
    "model",
    "placement",
    "shedding",
    "grouping",
    "sizing",
    "moves",
    "planner",
    "simulation",
)
"""Packages whose unit tests must take 95 % of the branches."""


@dataclass(frozen=True, slots=True)
class Part:
    """One row of the table: a command of this interpreter."""

    name: str
    proves: str
    command: Sequence[str]


_BY_FILE = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
_TIMED = "tests/spark/test_size.py"
_STARVED = "tests/cluster/test_operator_starved.py"


def _pytest(*options: str) -> Sequence[str]:
    return ("-m", "pytest", "-q", *options)


PARTS = (
    Part("branches", "the core's unit tests take 95 % of its branches", ("-m", "tests.core_coverage", *CORE)),
    Part(
        "properties",
        "properties hold for all of their examples",
        _pytest("--hypothesis-profile=fixed", "-n", "2", "tests/properties"),
    ),
    Part(
        "unit",
        "unit tests and scenarios that take long",
        _pytest(
            "-m", "soak", "-n", "2", "tests/unit", "tests/scenarios", "tests/charts", "tests/vectors", "tests/pages"
        ),
    ),
    Part("spark", "the long tests on Spark", _pytest("-m", "soak", *_BY_FILE, "tests/spark", f"--ignore={_TIMED}")),
    Part("size", "a running stream is sized from what is measured while nothing else runs", _pytest(_TIMED)),
    Part(
        "cluster",
        "the long tests on a real control plane, and all faults",
        _pytest("-m", "soak", *_BY_FILE, "tests/faults", "tests/cluster", "tests/testbed", f"--ignore={_STARVED}"),
    ),
    Part(
        "starved",
        "executors are placed in time by a tenth of a core, which takes all of the machine",
        _pytest(_STARVED),
    ),
    Part("e2e", "all journeys with real Spark executors", _pytest("tests/e2e")),
    Part("mutation", "fewer than 15 % of random changes of the core survive", ("-m", "benchmarks", "mutation")),
    Part("fuzz", "properties hold for other examples than those of make test", ("-m", "benchmarks", "fuzz")),
    Part("backtest", "history, backtest and recommendation on two days", ("-m", "examples.backtest")),
    Part("demo", "the main job", ("-m", "examples.demo")),
)


@dataclass(frozen=True, slots=True)
class Row:
    part: Part
    passed: bool
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.part.name:<12} {'passed' if self.passed else 'FAILED':<8} {self.seconds:>7.0f}  {self.part.proves}"
        )


def main() -> int:
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description=__doc__, epilog="example: python -m tests.soak branches e2e"
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all by default, or some of: {', '.join(names)}")
    chosen = parser.parse_args().parts
    if unknown := sorted(set(chosen) - set(names)):
        parser.error(f"no part {', '.join(unknown)}; there are: {', '.join(names)}")
    rows = [_run(part) for part in PARTS if not chosen or part.name in chosen]
    print(f"\n{'PART':<12} {'VERDICT':<8} {'SECONDS':>7}  PROVES", *rows, sep="\n")
    return 0 if all(row.passed for row in rows) else 1


def _run(part: Part) -> Row:
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{part.name}.log"
    print(f"{part.name}: {part.proves}; output in {log.relative_to(ROOT)}", flush=True)
    began = time.monotonic()
    with log.open("wb") as output:
        ended = subprocess.run(
            [sys.executable, *part.command],
            check=False,
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    row = Row(part, passed=ended.returncode == 0, seconds=time.monotonic() - began)
    print(row, flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main())
