"""PIP-364's five questions about strategies, asked of a study: what each policy did in the windows that it ran in.

`comparison` asks them of the proposal's own examples. Source of the questions: PIP-364, "Load shedding strategy".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import fmean

from ballast.simulation.study import Result

_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Less is better in all of them; means over the cases of one policy."""

    points_left: float
    """Unequal machines: how far hottest and coldest are apart when the window ends, beyond what is level."""
    needless_moves: float
    """Load jitter: moves a day beyond the fewest that could have leveled the pool."""
    wrong_placements: float
    """Over placement: moves that made their destination too hot."""
    over_unloadings: float
    """Over unloading: moves that left their source too cold."""
    slowness: tuple[int, float]
    """Slow balancing: cases in which the pool was not level when the window ended, then passes that moved anything in
    those in which it was; 0 when there is none."""


QUESTIONS = tuple(field.name for field in fields(Verdict))


def verdict(results: Sequence[Result]) -> Verdict:
    """`results`: one policy's, at least one."""
    leveled = [each.figures for each in results if each.figures.seconds_to_balance is not None]
    return Verdict(
        points_left=fmean(_points_left(each) for each in results),
        needless_moves=fmean(_a_day(each, each.figures.moves_beyond_optimum) for each in results),
        wrong_placements=fmean(each.figures.wrong_placements for each in results),
        over_unloadings=fmean(each.figures.over_unloadings for each in results),
        slowness=(len(results) - len(leveled), sum(each.rounds for each in leveled) / max(len(leveled), 1)),
    )


def _points_left(result: Result) -> float:
    gap = result.series.gap
    return max(0.0, float(gap[-1]) - result.series.level_points) if len(gap) else 0.0


def _a_day(result: Result, count: int) -> float:
    return count * _DAY_SECONDS / max(result.series.duration_seconds, 1.0)
