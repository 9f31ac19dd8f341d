"""Many runs next to each other: policies × windows × seeds, and what each run came to, small enough to keep."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ballast.model import MovesMode
from ballast.model.arrays import FloatArray
from ballast.simulation.run_metrics import RunMetrics, gap, imbalance, run_metrics
from ballast.simulation.trace import MoveRecord, Trace

INSTANTS = 240
"""The most that a series keeps of a run."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?")

Document = Mapping[str, Any]
"""A BalancingPolicy as YAML has it."""


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """One run."""

    policy: str
    """What tables call the policy: its name, and what a grid has set, such as `default lowThreshold=10`."""
    window: str
    """A scenario's name, or a stretch of recorded time such as `streaming 2026-11-21`."""
    seed: int

    def __str__(self) -> str:
        return f"{self.policy}, {self.window}, seed {self.seed}"


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The course of a run, in at most `INSTANTS` rows: each the mean over several passes that follow each other."""

    duration_seconds: float
    """Of the whole window."""
    window_seconds: float
    """What a score is a mean over."""
    level_points: float
    """A gap of up to this counts as level."""
    times: FloatArray
    """Seconds since the window began, of the first pass of each row."""
    imbalance: FloatArray
    """Standard deviation of usage over the nodes, in points."""
    gap: FloatArray
    """Points between the hottest node that has executors and the coldest that takes any; the last row is the last
    pass alone."""
    locality: FloatArray
    """Mean over topologies of Σ traffic × distance; NaN where it is not known."""
    nodes: tuple[str, ...]
    scores: FloatArray
    """Rows × nodes: as the planner saw them, percent; NaN where there was no figure."""

    @classmethod
    def of(cls, trace: Trace) -> Series:
        starts = _starts(len(trace.times))
        gaps = _means(gap(trace), starts)
        gaps[-1:] = gap(trace)[-1:]
        return cls(
            duration_seconds=trace.duration_seconds,
            window_seconds=trace.window_seconds,
            level_points=trace.level_points,
            times=trace.times[starts],
            imbalance=_means(imbalance(trace), starts),
            gap=gaps,
            locality=_means(trace.locality, starts),
            nodes=trace.nodes,
            scores=_means(trace.scores, starts),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What one run came to."""

    case: Case
    metrics: RunMetrics
    series: Series
    moves: tuple[MoveRecord, ...]
    """In the order of their decisions."""
    unknown: tuple[str, ...] = ()
    """What the window does not tell, and what that means for the figures: a sentence each."""

    @classmethod
    def of(cls, case: Case, trace: Trace, unknown: tuple[str, ...] = ()) -> Result:
        return cls(case, run_metrics(trace), Series.of(trace), trace.moves, unknown)


@dataclass(frozen=True, slots=True)
class Study:
    """Every policy ran in every window with every seed of that window; all windows have as many."""

    results: tuple[Result, ...]
    """In the order of `policies`, then of windows and seeds."""
    policies: Mapping[str, Document]
    """By what cases call them, in the order in which they were given; at least one. As a user would apply them."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Windows that can't be run in, of which there are no results, and why."""
    remarks: tuple[str, ...] = ()
    """What was asked for and done otherwise, and why: a sentence each."""

    def of(self, policy: str) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.case.policy == policy)

    @property
    def windows(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(result.case.window for result in self.results))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of all windows, which need not have the same ones."""
        return tuple(sorted({result.case.seed for result in self.results}))

    @property
    def cases(self) -> int:
        """What each policy ran in: windows, each with its own seeds."""
        return len({(result.case.window, result.case.seed) for result in self.results})

    @property
    def seeds_each(self) -> int:
        """How many a window has."""
        return self.cases // len(self.windows)

    @property
    def baseline(self) -> str | None:
        """The first policy that moves nothing, which the others are to be better than; None if all of them move."""
        return next((name for name, document in self.policies.items() if not moves_anything(document)), None)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Of all results, each sentence once; of those that differ in nothing but numbers, the first one."""
        told = dict.fromkeys(sentence for result in self.results for sentence in result.unknown)
        return tuple(_first(alike) for alike in _kinds(told))

    @property
    def left_out_told(self) -> tuple[str, ...]:
        """A sentence for each kind of reason: the first window of that kind with its own, and how many there are."""
        return left_out_told(self.left_out)


def left_out_told(left_out: Mapping[str, str]) -> tuple[str, ...]:
    """As in Study."""
    return tuple(_left_out(alike) for alike in _kinds([f"{window}: {why}" for window, why in left_out.items()]))


def _kinds(sentences: Iterable[str]) -> Iterable[list[str]]:
    """Those together that differ in nothing but numbers."""
    kinds: dict[str, list[str]] = {}
    for sentence in sentences:
        kinds.setdefault(_NUMBER.sub("0", sentence), []).append(sentence)
    return kinds.values()


def _first(alike: Sequence[str]) -> str:
    return alike[0] if len(alike) == 1 else f"{alike[0]} (and with {len(alike) - 1} other figures in other runs)"


def _left_out(alike: Sequence[str]) -> str:
    others = len(alike) - 1
    return alike[0] + (f" (and so {others} more window{'s' if others > 1 else ''})" if others else "")


def moves_anything(document: Document) -> bool:
    """Whether a run of the policy may move executors; what only recommends is run as if it enforced."""
    spec = document["spec"]
    still = (
        spec.get("moves", {}).get("mode") == MovesMode.DISABLED or spec.get("shedding", {}).get("strategy") == "None"
    )
    return not still


def _starts(passes: int) -> list[int]:
    """First pass of each row: rows of passes that are as equal in number as possible."""
    rows = min(INSTANTS, passes)
    return [passes * row // rows for row in range(rows)]


def _means(values: FloatArray, starts: list[int]) -> FloatArray:
    """Of the known values of each row; NaN where none is."""
    if not starts:
        return values.copy()
    known = np.isfinite(values)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts, axis=0)
    counts = np.add.reduceat(known.astype(np.float64), starts, axis=0)
    means: FloatArray = np.where(counts > 0, sums / np.maximum(counts, 1.0), np.nan)
    return means
