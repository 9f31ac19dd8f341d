"""PIP-364's judgment of strategies, in figures: what each combination does with the worked examples.

Pulsar's combinations run as Pulsar runs them (`uncoupled`), Ballast's through the operator's planner. Source of the
five questions: PIP-364, "Load shedding strategy" and its two tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Any

from ballast.simulation.engine import simulate
from ballast.simulation.policies import from_name
from ballast.simulation.run_metrics import gap, run_metrics
from ballast.simulation.scenario import Scenario
from ballast.simulation.trace import Trace
from tests.reference.pulsar.uncoupled import Placement, Uncoupled

EXAMPLES = (
    "pip364-cluster",
    "pip364-six-brokers",
    "pip364-five-brokers",
    "pip364-history-trap",
    "pip364-scale-up",
    "pip364-heterogeneous",
)
"""Pools that are out of balance; some strategy levels each of them."""
UNEQUAL = "pip364-heterogeneous"
NOISE = "noisy-day"
SCENARIOS = (*EXAMPLES, NOISE)
DEFAULT = "AvgShedder"


@dataclass(frozen=True, slots=True)
class Combination:
    shedding: str
    """As `ballast simulate --policy` takes it."""
    placement: Placement | None
    """Pulsar's, which then says where to; None = decided in one go, by Ballast's planner."""

    @property
    def name(self) -> str:
        return self.shedding if self.placement is None else f"{self.shedding} + {self.placement}"

    @property
    def ours(self) -> bool:
        return self.placement is None and self.shedding == DEFAULT


@dataclass(frozen=True, slots=True)
class Judgment:
    """Less is better in all of them."""

    unequal_points: float
    """Unequal machines: how far apart the pool still is at the end, beyond what counts as level."""
    jitter_moves: int
    """Moves on a day that is level except for noise."""
    wrong_placements: int
    """Over placement, over all examples: moves that made their destination too hot."""
    over_unloadings: int
    """Over unloading, over all examples: moves that left their source too cold."""
    unleveled: int
    """Slow balancing: examples that were not level when they ended."""
    rounds: float
    """Slow balancing: executions until level, in the mean over the examples that were leveled; 0 when none was."""
    minutes: float
    """The same in time."""

    @property
    def slowness(self) -> tuple[int, float]:
        return self.unleveled, self.rounds

    @property
    def quiet_minutes(self) -> float:
        """The time, if nothing was moved for noise; inf otherwise, because acting on a single sample is quick."""
        return self.minutes if self.rounds and not self.jitter_moves else inf


_HEADINGS = (
    "Combination",
    "Unequal machines: points left",
    "Load jitter: moves a day",
    "Over placement",
    "Over unloading",
    "Slow balancing: rounds, not leveled",
    "Minutes",
)
_NO_BEST: Mapping[str, Any] = {}
COLUMNS = ("unequal_points", "jitter_moves", "wrong_placements", "over_unloadings", "slowness", "quiet_minutes")


def combinations() -> Iterator[Combination]:
    """Ballast's default first, then its other strategies, then Pulsar's; those with destinations pair with none."""
    for shedding in (DEFAULT, "AvgShedder/Traffic", "ThresholdShedder", "UniformLoadShedder", "OverloadShedder"):
        yield Combination(shedding, None)
    yield Combination("TransferShedder", None)
    for shedding in ("ThresholdShedder", "UniformLoadShedder", "OverloadShedder"):
        for placement in Placement:
            yield Combination(shedding, placement)
    yield Combination("AvgShedder/Traffic", Placement.AVG_SHEDDER)
    yield Combination("TransferShedder", Placement.LEAST_RESOURCE_USAGE)


def run(combination: Combination, scenario: Scenario) -> Trace:
    """One run; equal arguments give equal traces."""
    policy = from_name(combination.shedding, scenario)
    if combination.placement is None:
        return simulate(scenario, policy)
    planner = Uncoupled(combination.placement, Random(scenario.spec.seed))
    return simulate(scenario, policy, label=combination.name, planner=planner)


def judged(traces: Mapping[str, Trace]) -> Judgment:
    """`traces`: one combination's, by scenario; those of `SCENARIOS`."""
    found = {name: run_metrics(trace) for name, trace in traces.items()}
    leveled = [found[name] for name in EXAMPLES if found[name].seconds_to_balance is not None]
    return Judgment(
        unequal_points=max(0.0, float(gap(traces[UNEQUAL])[-1]) - traces[UNEQUAL].level_points),
        jitter_moves=found[NOISE].moves,
        wrong_placements=sum(each.wrong_placements for each in found.values()),
        over_unloadings=sum(each.over_unloadings for each in found.values()),
        unleveled=len(EXAMPLES) - len(leveled),
        rounds=sum(each.rounds for each in leveled) / max(len(leveled), 1),
        minutes=sum(each.seconds_to_balance or 0.0 for each in leveled) / 60.0 / max(len(leveled), 1),
    )


def beaten(judgments: Mapping[Combination, Judgment]) -> list[str]:
    """The columns in which some other combination is better than Ballast's default; none, if all is well."""
    ours = next(judgment for combination, judgment in judgments.items() if combination.ours)
    return [
        column
        for column in COLUMNS
        if any(getattr(other, column) < getattr(ours, column) for other in judgments.values())
    ]


def table(judgments: Mapping[Combination, Judgment]) -> str:
    """The judgments as Markdown; the best of each column in bold."""
    best = {column: min(getattr(each, column) for each in judgments.values()) for column in COLUMNS}
    return rows({_title(combination): judgment for combination, judgment in judgments.items()}, best)


def rows(judgments: Mapping[str, Judgment], best: Mapping[str, Any] = _NO_BEST) -> str:
    """The judgments as Markdown, by title; bold where one equals the best of its column."""
    lines = [f"| {' | '.join(_HEADINGS)} |", "|---|---:|---:|---:|---:|---:|---:|"]
    for title, judgment in judgments.items():
        cells = [_cell(judgment, column, best=_is_best(judgment, column, best)) for column in COLUMNS]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _is_best(judgment: Judgment, column: str, best: Mapping[str, Any]) -> bool:
    """None is the best where none is judged."""
    return bool(getattr(judgment, column) == best.get(column) != inf)


def _title(combination: Combination) -> str:
    where = "Ballast" if combination.placement is None else "Pulsar"
    return f"{where}: {combination.name}" + (" (the default)" if combination.ours else "")


def _cell(judgment: Judgment, column: str, *, best: bool) -> str:
    if column == "slowness":
        rounds = f"{judgment.rounds:.1f}" if judgment.rounds else "–"
        text = f"{rounds}, {judgment.unleveled} of {len(EXAMPLES)}"
    elif column == "quiet_minutes":
        text = f"{judgment.minutes:.0f}" if judgment.rounds else "–"
    elif column == "unequal_points":
        text = f"{judgment.unequal_points:.0f}"
    else:
        text = str(getattr(judgment, column))
    return f"**{text}**" if best else text
