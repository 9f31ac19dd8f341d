"""How bad does it get? A search for the pools and loads in which Ballast does worst.

`fuzz` looks for examples that break a property. This one measures, and keeps the worst cases: the cost of a placement
by the least possible, executors left without a node, the default policy against no moves, moves to and fro, and the CPU
time of one pass. Every case is written to a file: a pool as `ballast plan -f` reads it, a load as `ballast simulate`
does. `--again FILE…` judges such files again. The seed fixes the order of the cases, the time how many there are.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor
from pathlib import Path
from random import Random
from typing import Any

import yaml

from ballast.cli.situation import Situation, dump, load
from ballast.model import Phase
from benchmarks.adversarial import large_sets, loads, small_sets
from benchmarks.adversarial.search import Found, hunt
from benchmarks.report import Aim, Result, machine, write

FOLDER = Path("build/adversary")
SECONDS = 300.0
_KEPT = 3
"""Cases of each hunt."""
_COUNTED = ("executors", "moves")
"""Units of hunts in which fractions only lead the search to where there may be one more."""
_LARGE, _MIDDLE, _FEW = 10_000, 3_000, 300
"""Executors."""


@dataclass(frozen=True, slots=True)
class Hunt:
    name: str
    metric: str
    unit: str
    share: float
    """Of the time."""
    draw: Callable[[Random], Any]
    change: Callable[[Any, Random], Any]
    badness: Callable[[Any], float]
    file: Callable[[Any, str], tuple[str, str]]
    """Ending and text of a case's file, by the case and its name."""
    aim: Aim | None = None
    confirm: Callable[[Any], float] | None = None
    """Judges again what the search has found, by other chances; then this is what the aim holds for."""


def _pool(case: Situation, _: str) -> tuple[str, str]:
    return "yaml", dump(case)


def _large_pool(case: large_sets.Shape, _: str) -> tuple[str, str]:
    return "json", dump(large_sets.situation(case), as_json=True)


def _certain_pool(case: large_sets.Shape, name: str) -> tuple[str, str]:
    return _large_pool(large_sets.certain(case), name)


def _plain_pool(case: large_sets.Shape, name: str) -> tuple[str, str]:
    return _large_pool(large_sets.plain(case), name)


def _load(case: loads.Spec, name: str) -> tuple[str, str]:
    return "yaml", loads.text(case, name)


def _of_large(most: int, badness: Callable[[large_sets.Shape], float]) -> dict[str, Any]:
    draw, change = partial(large_sets.drawn, most=most), partial(large_sets.changed, most=most)
    return {"draw": draw, "change": change, "badness": badness}


_SMALL: dict[str, Any] = {"draw": small_sets.drawn, "change": small_sets.changed, "file": _pool}
_VARYING: dict[str, Any] = {"draw": loads.drawn, "change": loads.changed, "file": _load}
_CONSTANT: dict[str, Any] = {"draw": loads.drawn_constant, "change": loads.changed_constant, "file": _load}

HUNTS = (
    Hunt("cost", "cost ÷ optimum", "ratio", 0.25, badness=small_sets.cost_ratio, aim=Aim(1.25), **_SMALL),
    Hunt("bound", "cost ÷ lower bound", "ratio", 0.05, **_of_large(_FEW, large_sets.bound_ratio), file=_plain_pool),
    Hunt("room", "left out, though all fit", "executors", 0.05, badness=small_sets.left_out, aim=Aim(0), **_SMALL),
    Hunt(
        "large-room",
        "left out, though all fit",
        "executors",
        0.1,
        **_of_large(_MIDDLE, large_sets.left_out),
        file=_certain_pool,
        aim=Aim(0),
    ),
    Hunt(
        "loss",
        "imbalance ÷ None's",
        "ratio",
        0.2,
        badness=loads.loss,
        **_VARYING,
        aim=Aim(1.01),
        confirm=loads.loss_by_other_chances,
    ),
    Hunt("reversal", "moves back within an hour", "moves", 0.05, badness=loads.unrest, aim=Aim(0), **_VARYING),
    Hunt("unrest", "late moves, load constant", "moves", 0.05, badness=loads.restlessness, aim=Aim(0), **_CONSTANT),
    Hunt(
        "time",
        "CPU time of a pass",
        "s",
        0.25,
        **_of_large(_LARGE, large_sets.seconds),
        file=_large_pool,
        aim=Aim(2.0),
    ),
)


def searched(each: Hunt, *, seconds: float, seed: int, folder: Path) -> Iterator[Result]:
    """The worst cases that one hunt finds in its share of the time, written to the folder."""
    end = time.monotonic() + seconds * each.share
    found = hunt(each.draw, each.change, each.badness, random=Random(seed), in_time=lambda: time.monotonic() < end)
    yield Result(each.name, "cases judged", found.judged, "cases")
    for rank, worst in enumerate(found.worst[:_KEPT], start=1):
        name = f"{each.name}-{rank}"
        badness = float(floor(max(0.0, worst.badness))) if each.unit in _COUNTED else worst.badness
        file, aim = _written(each, worst, folder / name), each.aim if each.confirm is None else None
        yield Result(file, each.metric, badness, each.unit, aim=aim)
        if each.confirm is not None:
            confirmed = each.confirm(worst.case)
            yield Result(file, f"{each.metric}, other chances", confirmed, each.unit, aim=each.aim)


def _written(each: Hunt, worst: Found[Any], path: Path) -> str:
    ending, text = each.file(worst.case, path.name)
    path = path.with_name(f"{path.name}.{ending}")
    path.write_text(text, encoding="utf-8")
    return str(path)


def again(path: Path) -> Iterator[Result]:
    """All that can be judged of the case in a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".yaml" and (document := yaml.safe_load(text))["kind"] == "Scenario":
        spec, name = document["spec"], str(path)
        yield Result(name, "imbalance ÷ None's", loads.loss(spec), "ratio")
        yield Result(name, "imbalance ÷ None's, other chances", loads.loss_by_other_chances(spec), "ratio")
        yield Result(name, "moves back within an hour", loads.unrest(spec), "moves")
        yield Result(name, "late moves", loads.restlessness(spec), "moves")
        return
    situation = load(path)
    yield Result(str(path), "CPU time of a pass", large_sets.seconds_of(situation), "s")
    homes, executors = small_sets.placed(situation), situation.snapshot.executors
    yield Result(
        str(path),
        "gated executors without a node",
        sum(e.phase is Phase.GATED for e in executors) - len(homes),
        "executors",
    )
    if len(executors) <= small_sets.MOST_EXECUTORS:
        yield Result(str(path), "cost ÷ optimum", small_sets.cost_ratio(situation), "ratio")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adversary", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for all hunts together (default {SECONDS:g})")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same cases (default 1)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"for the cases' files (default {FOLDER})")
    parser.add_argument("--only", nargs="*", choices=[each.name for each in HUNTS], help="hunts (default: all)")
    parser.add_argument("--again", nargs="*", type=Path, default=(), help="judge the cases in these files instead")
    options, before = parser.parse_args(arguments), machine()
    if options.again:
        write("adversary", [result for path in options.again for result in again(path)], before=before)
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    for each in HUNTS:
        if not options.only or each.name in options.only:
            print(each.name, flush=True)
            results += searched(each, seconds=options.seconds, seed=options.seed, folder=options.folder)
    write("adversary", results, before=before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
