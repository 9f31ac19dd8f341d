"""Whether leveling is ever worse than doing nothing, or than anything else that levels.

Scenarios in which moving may cost more than it brings (`benchmarks/leveled`), with task metrics. Every contestant has
its own default settings. All run with the first seed; the default, doing nothing, foresight and the best peers run with
all seeds, and are compared in their means.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev

from rich.console import Console
from rich.table import Table

from ballast.simulation.run_metrics import fewest_moves, run_metrics
from ballast.simulation.scenario import Scenario
from benchmarks.leveled.contestants import FORESIGHT, NOTHING, OURS, Contestant, peers
from benchmarks.report import Aim, Baseline, Result, machine, write

FOLDER = Path("benchmarks/leveled")
NOISE = "noise"
SEEDS = {"bursts": 5, "unequal": 3, "neighbors": 3, "drift": 2, NOISE: 3}
"""Scenarios, and with how many seeds each runs."""
LARGE = ("drift",)
"""Where only those peers run that are the best of another scenario."""
FINALISTS = 2
_T95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}
"""Of Student's distribution: half the width of a 95 % interval in standard errors, by number of samples."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run; less is better in all of them."""

    imbalance: float
    """Standard deviation of usage over the nodes, integrated over time: points × hours."""
    moves: float
    wrong: float
    """Moves whose destination ended too far above the mean, or whose source ended too far below it."""
    reversals: float
    moved_percent: float
    """Executors moved a day, in percent of all."""
    fewest: float
    """A bound on the moves that could have leveled the pool for one part of the run."""


@dataclass(slots=True)
class Scores:
    """One contestant's runs in one scenario."""

    runs: list[Figures] = field(default_factory=list)

    def mean(self, what: Callable[[Figures], float]) -> float:
        return fmean(map(what, self.runs))

    def interval(self, what: Callable[[Figures], float]) -> float:
        """Half the width of the 95 % interval of the mean; 0 for a single run."""
        count = len(self.runs)
        return _T95[count] * stdev(map(what, self.runs)) / count**0.5 if count > 1 else 0.0


Standings = dict[Contestant, Scores]


def measured(contestant: Contestant, scenario: Scenario, seed: int) -> Figures:
    trace = contestant.run(scenario, seed)
    found = run_metrics(trace)
    executors = sum(each.total for each in scenario.spec.applications)
    return Figures(
        imbalance=found.imbalance_point_hours,
        moves=found.moves,
        wrong=found.wrong_placements + found.over_unloadings,
        reversals=found.reversals,
        moved_percent=100.0 * found.moves / executors * 86_400.0 / trace.duration_seconds,
        fewest=fewest_moves(trace.stretches, level_points=trace.level_points),
    )


def contest(scenario: Scenario, others: Sequence[Contestant], *, seeds: int) -> Standings:
    """All with the first seed, then the best of them with the others."""
    first = scenario.spec.seed
    fixed = (NOTHING, OURS, FORESIGHT)
    standings: Standings = {each: Scores([measured(each, scenario, first)]) for each in (*fixed, *others)}
    for each in (*fixed, *best(standings)[:FINALISTS]):
        standings[each].runs += [measured(each, scenario, seed) for seed in range(first + 1, first + seeds)]
    return standings


def best(standings: Standings) -> list[Contestant]:
    """The peers, the most level first; of those that are equal, the one that moves less."""
    others = [each for each in standings if each not in (NOTHING, OURS, FORESIGHT)]
    return sorted(others, key=lambda each: (standings[each].mean(_imbalance), standings[each].mean(_moves)))


def _imbalance(figures: Figures) -> float:
    return figures.imbalance


def _moves(figures: Figures) -> float:
    return figures.moves


def results(name: str, standings: Standings) -> Iterator[Result]:
    ours, nothing = standings[OURS], standings[NOTHING]
    level, moves = ours.mean(_imbalance), ours.mean(_moves)
    still = Baseline(NOTHING.name, nothing.mean(_imbalance))
    yield Result(name, "imbalance against nothing", level, "points × h", still, Aim(1.01, of_ratio=True))
    finalists = [each for each in best(standings) if len(standings[each].runs) == len(ours.runs)]
    peer = min(finalists, key=lambda each: standings[each].mean(_imbalance))
    rival = Baseline(peer.name, standings[peer].mean(_imbalance))
    # Noise that lasts for half an hour can be followed, by moving every executor once a day: what is asked of the
    # default there is to move none.
    aim = None if name == NOISE else Aim(1.05, of_ratio=True)
    yield Result(name, "imbalance against the best peer", level, "points × h", rival, aim)
    for each in finalists:
        if standings[each].mean(_imbalance) < level:
            fewer = Baseline(each.name, standings[each].mean(_moves))
            yield Result(name, "moves against a better peer", moves, "moves", fewer, Aim(1.0, of_ratio=True))
    foresight = standings[FORESIGHT].mean(_moves)
    optimum = Baseline(FORESIGHT.name, foresight)
    yield Result(name, "moves against foresight", moves, "moves", optimum, Aim(1.2 * foresight))
    yield Result(name, "wrong placements", ours.mean(lambda each: each.wrong), "moves", aim=Aim(0))
    yield Result(name, "reversals", ours.mean(lambda each: each.reversals), "moves", aim=Aim(0))
    if name == NOISE:
        moved = ours.mean(lambda each: each.moved_percent)
        yield Result(name, "executors moved a day", moved, "%", aim=Aim(0.5))


def table(name: str, standings: Standings) -> Table:
    shown = Table(title=name, box=None, title_justify="left")
    for heading in ("contestant", "imbalance", "moves", "wrong", "reversals", "moved a day", "runs"):
        shown.add_column(heading, justify="left" if heading == "contestant" else "right")
    for each in sorted(standings, key=lambda one: standings[one].mean(_imbalance)):
        scores = standings[each]
        shown.add_row(
            each.name,
            f"{scores.mean(_imbalance):.1f} ± {scores.interval(_imbalance):.1f}",
            f"{scores.mean(_moves):.1f}",
            f"{scores.mean(lambda one: one.wrong):.1f}",
            f"{scores.mean(lambda one: one.reversals):.1f}",
            f"{scores.mean(lambda one: one.moved_percent):.1f} %",
            str(len(scores.runs)),
        )
    fewest = standings[NOTHING].mean(lambda one: one.fewest)
    shown.caption = f"± 95 % interval. No fewer than {fewest:.1f} moves level it for a part of the time."
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.levelling", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(SEEDS), default=list(SEEDS), metavar="SCENARIO")
    asked = parser.parse_args()
    before = machine()
    console, found, winners = Console(width=140), list[Result](), dict[Contestant, None]()
    for name, seeds in ((name, SEEDS[name]) for name in SEEDS if name in asked.only):
        scenario = Scenario.read(FOLDER / f"{name}.yaml")
        standings = contest(scenario, list(winners) if name in LARGE else list(peers()), seeds=seeds)
        winners |= dict.fromkeys(best(standings)[:FINALISTS])
        console.print(table(name, standings))
        found += results(name, standings)
    write(Path(__file__).stem, found, before=before)
    return 1 if any(result.met is False for result in found) else 0


if __name__ == "__main__":
    sys.exit(main())
