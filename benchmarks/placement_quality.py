"""How near to the least possible cost do placements get, and how long does it take?

Against Storm's own schedules (recorded from the real classes), an exact solver on small instances, a lower bound on
the others; and against LeastAllocated, kube-scheduler's default score, on pipelines with rates, zones and load. (The
benchmark peers compares with the real kube-scheduler.) Cost and time are those of one and the same search: the steps
that the operator takes, under default settings.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from statistics import fmean

from ballast.simulation.ranking import Estimate
from benchmarks.adversarial import small_sets
from benchmarks.quality.bound import lower_bound
from benchmarks.quality.exact import feasible, least_cost
from benchmarks.quality.own import Pipeline, pipeline, storm_sized
from benchmarks.report import Aim, Baseline, Result, machine, write
from tests.vectors.case import cases
from tests.vectors.storm_instance import Instance, from_storm

CLASSES = ("DefaultResourceAwareStrategy", "GenericResourceAwareStrategy")
SMALL_EXECUTORS = 24
SMALL_NODES = 12
EXACT_SECONDS = 15.0
DRAWN = 60
"""Small pools drawn at random, next to Storm's small schedules; those of which the optimum is proved and not 0."""
OWN_SEEDS = range(10)
TIMED_SEEDS = range(5)


@dataclass(frozen=True, slots=True)
class Solved:
    instance: Instance
    cost: float | None
    """None when not everything was placed."""
    seconds: float


def main() -> int:
    before = machine()
    succeeded: list[Instance] = []
    failed: list[Instance] = []
    for name in CLASSES:
        for case in cases("storm", name):
            if not case.raw["given"]["already_assigned"]:
                (succeeded if case.raw["want"]["status"] == "success" else failed).append(from_storm(case))
    solved = [_solve(instance) for instance in succeeded]
    results = [
        *_against_storm(solved),
        *_beyond_storm([_solve(instance) for instance in failed]),
        *_against_optimum("small schedules of Storm's", _ratios(solved)),
        *_against_optimum("small pools drawn at random", islice(_drawn_ratios(), DRAWN)),
        *_against_bound(solved),
        *_own(),
        *_speed(),
    ]
    write("placement-quality", results, before=before)
    return 0


def _solve(instance: Instance) -> Solved:
    started = time.process_time()
    homes = instance.solved()
    seconds = time.process_time() - started
    return Solved(instance, instance.cost(homes) if len(homes) == len(instance.executors) else None, seconds)


def _storm_cost(solved: Solved) -> float:
    return solved.instance.storm_cost or 0.0


def _against_storm(solved: Sequence[Solved]) -> list[Result]:
    placed = [each for each in solved if each.cost is not None]
    ours, theirs = sum(each.cost or 0.0 for each in placed), sum(_storm_cost(each) for each in placed)
    worse = sum((each.cost or 0.0) > _storm_cost(each) + 1e-6 for each in placed)
    case = f"{len(solved)} schedules of Storm's"
    return [
        Result(case, "cost", ours, "pairs × distance", Baseline("Storm", theirs), Aim(0.70, of_ratio=True)),
        Result(case, "instances above Storm's cost", worse, "instances", aim=Aim(0)),
        Result(case, "not placed entirely", len(solved) - len(placed), "instances", aim=Aim(0)),
        Result(case, "mean time", fmean(each.seconds for each in solved), "s"),
        Result(case, "longest time", max(each.seconds for each in solved), "s"),
    ]


def _beyond_storm(solved: Sequence[Solved]) -> list[Result]:
    """Where Storm's search gave up; its limits of heap and slots per process do not exist here."""
    left = [feasible(each.instance, seconds=EXACT_SECONDS) for each in solved if each.cost is None]
    case = f"{len(solved)} failures of Storm's"
    return [
        Result(case, "placed entirely", len(solved) - len(left), "instances"),
        Result(case, "feasible and not placed entirely", left.count(True), "instances", aim=Aim(0)),
        Result(case, f"not placed entirely, undecided after {EXACT_SECONDS:g} s", left.count(None), "instances"),
    ]


def _against_optimum(of: str, ratios: Iterator[float]) -> list[Result]:
    found = list(ratios)
    case = f"{len(found)} {of}, optimum proved and not 0"
    return [
        *_estimated(case, "cost ÷ optimum", found, unit="ratio", aim=Aim(1.03)),
        Result(case, "largest cost ÷ optimum", max(found), "ratio"),
    ]


def _ratios(solved: Sequence[Solved]) -> Iterator[float]:
    for each in solved:
        instance = each.instance
        small = len(instance.executors) <= SMALL_EXECUTORS and len(instance.snapshot.nodes) <= SMALL_NODES
        if small and _storm_cost(each) and each.cost is not None:
            optimum = least_cost(instance, seconds=EXACT_SECONDS)
            if optimum is not None and optimum > _NOTHING:
                yield each.cost / optimum


def _drawn_ratios() -> Iterator[float]:
    """Without end."""
    random = Random(1)
    while True:
        case = small_sets.drawn(random)
        homes, instance = small_sets.placed(case), small_sets.as_instance(case)
        if len(homes) == len(instance.executors):
            optimum = least_cost(instance, seconds=EXACT_SECONDS)
            if optimum is not None and optimum > _NOTHING:
                yield instance.cost(homes) / optimum


_NOTHING = 1e-6
"""A cost of less is none."""


def _estimated(case: str, metric: str, values: Sequence[float], *, unit: str, aim: Aim) -> list[Result]:
    """The mean over repeated runs, and the upper end of its 95 % interval, which the aim holds for."""
    found = Estimate.of(values)
    return [
        Result(case, f"mean of {metric}", found.mean, unit),
        Result(case, f"mean of {metric}, upper end of its 95 % interval", found.high, unit, aim=aim),
    ]


def _against_bound(solved: Sequence[Solved]) -> list[Result]:
    large = [each for each in solved if len(each.instance.executors) > SMALL_EXECUTORS and each.cost is not None]
    cost, bound = sum(each.cost or 0.0 for each in large), sum(lower_bound(each.instance) for each in large)
    case = f"{len(large)} larger schedules"
    return [Result(case, "cost", cost, "pairs × distance", Baseline("lower bound", bound))]


def _own() -> list[Result]:
    ours, theirs, bounds, crossing = [], [], [], []
    for seed in OWN_SEEDS:
        case = pipeline(seed)
        view, default = case.ours(), case.scheduled()
        ours.append(view.cost)
        theirs.append(default.cost)
        bounds.append(view.lower_bound)
        crossing.append((view.cross_zone_ratio or 0.0, default.cross_zone_ratio or 0.0))
    name = f"{len(ours)} pipelines with rates, zones and load"
    return [
        Result(name, "mean cost", fmean(ours), "distance per byte", Baseline("LeastAllocated", fmean(theirs))),
        Result(name, "mean cost", fmean(ours), "distance per byte", Baseline("lower bound", fmean(bounds))),
        Result(
            name,
            "mean cross-zone share",
            fmean(a for a, _ in crossing),
            "ratio",
            Baseline("LeastAllocated", fmean(b for _, b in crossing)),
        ),
    ]


def _speed() -> list[Result]:
    """Storm's warm JVM on a busy two-core machine needed 50 to 185 ms for as many, without a search."""
    case = f"1000 executors of 20 components on 200 nodes of ten racks, {len(TIMED_SEEDS)} instances"
    times = [_seconds(storm_sized(seed)) for seed in TIMED_SEEDS]
    return _estimated(case, "CPU time", times, unit="s", aim=Aim(1.0))


def _seconds(case: Pipeline) -> float:
    """CPU seconds of this process: what else the machine does is not its doing."""
    started = time.process_time()
    case.ours()
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())
