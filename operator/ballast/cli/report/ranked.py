"""Policies in the order of a study's ranking, for a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from types import MappingProxyType

from ballast.cli.output import duration
from ballast.simulation.estimate import Estimate
from ballast.simulation.ranking import Ranking, Standing

FIGURES: Mapping[str, str] = MappingProxyType(
    {
        "imbalance": "imbalance_point_hours",
        "moves": "moves",
        "locality": "locality_cost",
        "level after": "seconds_to_balance",
        "rounds": "rounds",
        "beyond": "moves_beyond_optimum",
        "wrong": "wrong_placements",
        "over": "over_unloadings",
        "back": "reversals",
        "failed": "failed_moves",
        "peak": "peak_score",
        "limited": "limit_refusals",
    }
)
"""Columns, as `ballast simulate` calls them, and the figures in them; what the front is of comes first."""
COLUMNS = ("#", "policy", "front", *FIGURES)


def ranked_rows(ranking: Ranking) -> list[list[str]]:
    """By `COLUMNS`."""
    return [_row(number, standing) for number, standing in enumerate(ranking.standings, start=1)]


def _row(number: int, standing: Standing) -> list[str]:
    cells = [interval(standing.estimates[figure], _WRITTEN.get(figure, _tenths)) for figure in FIGURES.values()]
    return [str(number), standing.policy, "yes" if standing.on_front else "", *cells]


def interval(found: Estimate, written: Callable[[float], str]) -> str:
    """A mean, with half of its interval's width where there is one."""
    if not isfinite(found.mean):
        return "-"
    return f"{written(found.mean)} ± {written(found.half_width)}" if isfinite(found.half_width) else written(found.mean)


def _tenths(value: float) -> str:
    return f"{value:.1f}"


def hundredths(value: float) -> str:
    return f"{value:.2f}"


_WRITTEN: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {"locality_cost": hundredths, "seconds_to_balance": duration}
)
