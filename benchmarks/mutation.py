"""How many small changes to the core do its tests not notice?

Of all changes that mutmut can make to each package a seeded sample is drawn; the unit and property tests of the
packages and the recorded cases are run against each. One that no test fails for has survived. Those that change
nothing that can be seen are not sorted out: they count as survivors. One that runs into its time limit is noticed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks.mutants.workshop import Workshop
from benchmarks.report import FOLDER, Aim, Result, machine, write

PACKAGES = ("placement", "shedding", "grouping", "planner", "moves", "kube", "controller", "prometheus")
SURVIVORS = FOLDER / "mutation-survivors.txt"
MOST_SURVIVING = 0.15
UNNOTICED = ("survived", "no tests")


def run(workshop: Workshop, packages: Sequence[str], *, sample: int, seed: int) -> Iterator[Result]:
    workshop.furnish(packages)
    everyone = workshop.mutants()
    chosen = {package: _drawn(everyone, package, ceil(sample / len(packages)), seed) for package in packages}
    workshop.try_out([name for names in chosen.values() for name in names])
    verdicts = workshop.verdicts()
    for package, names in chosen.items():
        counts = Counter(verdicts[name] for name in names)
        yield Result(package, "mutants in all", len(_of(everyone, package)), "mutants")
        yield Result(package, "drawn", len(names), "mutants")
        for verdict in ("killed", "timeout", *UNNOTICED):
            yield Result(package, verdict, counts[verdict], "mutants")
        surviving = sum(counts[verdict] for verdict in UNNOTICED) / len(names)
        yield Result(package, "surviving", surviving, "ratio", aim=Aim(MOST_SURVIVING))
    _write_survivors(workshop, verdicts, [name for names in chosen.values() for name in names])


def _of(names: Sequence[str], package: str) -> list[str]:
    return [name for name in names if name.startswith(f"ballast.{package}.")]


def _drawn(names: Sequence[str], package: str, count: int, seed: int) -> list[str]:
    own = _of(names, package)
    return Random(seed).sample(own, min(count, len(own)))


def _write_survivors(workshop: Workshop, verdicts: Mapping[str, str], names: Sequence[str]) -> None:
    found = [workshop.difference(name) for name in sorted(names) if verdicts[name] in UNNOTICED]
    SURVIVORS.parent.mkdir(parents=True, exist_ok=True)
    SURVIVORS.write_text("\n".join(found), encoding="utf-8")
    print(f"the changes that no test noticed: {SURVIVORS}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=300, help="mutants to try, shared out evenly (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default 1)")
    parser.add_argument(
        "--package", action="append", choices=PACKAGES, help="only this one; may be given several times"
    )
    parser.add_argument(
        "--folder", type=Path, help="where to work, in a folder `workshop` that is made again and left behind"
    )
    return parser.parse_args()


if __name__ == "__main__":
    at_start, options = machine(), _options()
    with TemporaryDirectory(prefix="ballast-mutation-") as folder:
        workshop = Workshop((options.folder or Path(folder)).absolute() / "workshop")
        write(
            "mutation",
            list(run(workshop, options.package or PACKAGES, sample=options.sample, seed=options.seed)),
            before=at_start,
        )
