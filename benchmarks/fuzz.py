"""Do the properties hold for examples that no test run has drawn yet?

`make test` draws the same examples in every run. This draws other ones in every round and prints each round's seed;
the same seed draws the same examples. A failing property is printed with its smallest example, to be pinned with
`@example`, or with `@reproduce_failure` where the example can't be written down.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET

from benchmarks.report import Aim, Result, machine, write

FOLDERS = ("tests/unit", "tests/properties", "tests/testbed/kubelet/tests")
"""All that hold properties; of them only tests that Hypothesis draws examples for are run."""


@dataclass(frozen=True, slots=True)
class Round:
    seed: int
    properties: int
    failed: frozenset[str]
    seconds: float


def play(seed: int) -> Round:
    """Run every property once with this seed; pytest's own report goes to standard output."""
    with TemporaryDirectory(prefix="ballast-fuzz-") as folder:
        path = Path(folder) / "junit.xml"
        options = (f"--junitxml={path}", "--hypothesis-profile=fresh", f"--hypothesis-seed={seed}")
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", *options, *FOLDERS], check=False)
        return _read(path, seed)


def _read(path: Path, seed: int) -> Round:
    suite = next(ET.parse(path).iter("testsuite"))
    cases = list(suite.iter("testcase"))
    failed = {f"{case.get('classname')}::{case.get('name')}" for case in cases if len(case)}
    return Round(seed, len(cases), frozenset(failed), float(suite.get("time", "nan")))


def results(rounds: list[Round]) -> Iterator[Result]:
    yield Result("all rounds", "rounds", len(rounds), "rounds")
    yield Result(
        "each round", "properties", min(each.properties for each in rounds), "tests", aim=Aim(1, at_least=True)
    )
    yield Result("all rounds", "time", sum(each.seconds for each in rounds), "s")
    yield Result("all rounds", "failures", sum(len(each.failed) for each in rounds), "tests", aim=Aim(0))
    for name, count in sorted(Counter(name for each in rounds for name in each.failed).items()):
        yield Result(name, "failures", count, "rounds")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="how many times every property is run (default 10)")
    parser.add_argument("--seed", type=int, help="of the first round; the next ones count on from it (default: random)")
    options, before = parser.parse_args(), machine()
    first = SystemRandom().randrange(1 << 31) if options.seed is None else options.seed
    rounds = []
    for seed in range(first, first + options.rounds):
        print(f"seed {seed}", flush=True)
        rounds.append(play(seed))
    for each in rounds:
        if each.failed:
            print(f"seed {each.seed} failed: {', '.join(sorted(each.failed))}", file=sys.stderr)
    write("fuzz", list(results(rounds)), before=before)
    return 1 if any(each.failed for each in rounds) else 0


if __name__ == "__main__":
    sys.exit(main())
