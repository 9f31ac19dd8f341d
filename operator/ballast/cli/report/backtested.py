"""What a backtest came to, as `backtest` shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from math import isfinite
from types import MappingProxyType
from typing import Any

from pydantic.alias_generators import to_camel
from rich.console import RenderableType
from rich.text import Text

from ballast.cli.output import Format, duration, explained, heading, line, rounded, table
from ballast.cli.report.simulated import MEANINGS
from ballast.simulation.ranking import METHOD, RULE, Estimate, Ranking, Standing
from ballast.simulation.study import Study

_FIGURES: Mapping[str, str] = MappingProxyType(
    {
        "imbalance(point-hours)": "imbalance_point_hours",
        "moves": "moves",
        "locality": "locality_cost",
        "level after": "seconds_to_balance",
        "wrong": "wrong_placements",
        "over": "over_unloadings",
        "back": "reversals",
        "failed": "failed_moves",
        "peak%": "peak_score",
        "rounds": "rounds",
        "beyond": "moves_beyond_optimum",
        "limited": "limit_refusals",
    }
)
"""Columns, the judged ones first, and the figures that they show."""
_NARROW = ("imbalance(point-hours)", "moves", "locality", "level after", "wrong", "over", "peak%")
EXPLAINED: Mapping[str, str] = MappingProxyType(
    {
        "rank": "1 is recommended; *: on the Pareto front of imbalance, moves, locality",
        **{column: MEANINGS[column] for column in _FIGURES},
        "level after": "longest time out of balance; the whole window if a gap was left",
        "open": "cases with a gap left at the end, which moves could have closed",
    }
)
"""What the columns say."""


def backtested_report(study: Study, found: Ranking, form: Format) -> list[RenderableType]:
    """What to print for people, from top to bottom."""
    windows = study.windows
    shown = windows if len(windows) <= 3 else (*windows[:2], f"{len(windows) - 2} more")
    head = line(("windows", ", ".join(shown)), ("seeds", str(study.seeds_each)), ("runs", str(len(study.results))))
    columns = ranked_columns(form)
    rows = ranked(study, found, form)
    parts: list[RenderableType] = [
        head,
        Text(),
        Text(f"{_cases(study)}{METHOD} {RULE}", style="dim"),
        Text("Less is better in every column: mean ± half of the 95 % interval.", style="dim"),
        *explained(EXPLAINED, columns),
        Text(),
        table(columns, rows, right=columns[2:], cut=("policy",)),
    ]
    if study.remarks:
        parts += [heading("Done otherwise"), *(Text(f"- {sentence}") for sentence in study.remarks)]
    if study.left_out:
        parts += [heading("Left out"), *(Text(f"- {sentence}") for sentence in study.left_out_told)]
    if study.unknown:
        parts += [heading("Not known"), *(Text(f"- {sentence}") for sentence in study.unknown)]
    return [*parts, Text(), Text(answer(study, found), style="bold")]


def answer(study: Study, found: Ranking) -> str:
    """Which policy to take, and what it brings: one sentence."""
    others = [policy for policy in found.as_good if policy != found.recommended]
    equal = f"; as level, but not with fewer moves: {', '.join(others)}" if others else ""
    return f"Recommended: {found.recommended}{_against(study, found, found.of(found.recommended))}{equal}."


def _against(study: Study, found: Ranking, best: Standing) -> str:
    if study.baseline is None or study.baseline == best.policy:
        nothing = ", which moves nothing: no policy here is measurably more level"
        return nothing if study.baseline == best.policy and len(found.standings) > 1 else ""
    name, moves = "imbalance_point_hours", best.mean("moves")
    before, after = found.of(study.baseline).mean(name), best.mean(name)
    share = f", {(before - after) / before:+.0%} less imbalance".replace("+", "") if before > after > 0.0 else ""
    return f"{share} than without moves, for {moves:.3g} moves in each window" if share else ""


def _cases(study: Study) -> str:
    count = study.cases
    return "One case only, so that no interval can be given. " if count == 1 else f"{count} cases for each policy. "


def ranked(study: Study, found: Ranking, form: Format) -> list[list[str]]:
    """By `ranked_columns`. Where moving nothing is best, a gap that stays open is no policy's fault: it is left out."""
    movable = found.recommended != study.baseline
    return [[str(place), *_row(one, form, movable=movable)] for place, one in enumerate(found.standings, start=1)]


def ranked_columns(form: Format) -> tuple[str, ...]:
    chosen = tuple(_FIGURES) if form is Format.WIDE else _NARROW
    return ("rank", "policy", *chosen, "open")


def _row(standing: Standing, form: Format, *, movable: bool) -> list[str]:
    name = f"{standing.policy}{' *' if standing.on_front else ''}"
    chosen = tuple(_FIGURES) if form is Format.WIDE else _NARROW
    cells = [cell(standing.estimates[_FIGURES[column]], _FIGURES[column]) for column in chosen]
    open_cases = f"{standing.never_level} of {standing.cases}" if standing.never_level and movable else ""
    return [name, *cells, open_cases]


def cell(estimate: Estimate, figure: str) -> str:
    """Mean ± half of its interval; `-` where no case tells."""
    told = _TELLERS.get(figure, _plain)
    if not isfinite(estimate.mean):
        return "-"
    return told(estimate.mean) + (f" ±{told(estimate.half_width)}" if isfinite(estimate.half_width) else "")


def _plain(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _fine(value: float) -> str:
    return f"{value:.2f}"


_TELLERS: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {"seconds_to_balance": duration, "locality_cost": _fine}
)


def backtested_document(study: Study, found: Ranking) -> dict[str, Any]:
    """The same for programs, with every run."""
    return {
        "recommended": found.recommended,
        "asGoodAsLowestImbalance": list(found.as_good),
        "method": METHOD,
        "rule": RULE,
        "windows": list(study.windows),
        "seeds": list(study.seeds),
        "doneOtherwise": list(study.remarks),
        "leftOut": dict(study.left_out),
        "unknown": list(study.unknown),
        "policies": [_standing(one, study) for one in found.standings],
        "runs": [
            {**asdict(result.case), "figures": _named(asdict(result.metrics)), "moves": len(result.moves)}
            for result in study.results
        ],
    }


def _standing(one: Standing, study: Study) -> dict[str, Any]:
    return {
        "policy": one.policy,
        "onFront": one.on_front,
        "cases": one.cases,
        "neverLevel": one.never_level,
        "figures": {to_camel(name): _estimate(each) for name, each in one.estimates.items()},
        "document": study.policies[one.policy],
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    values = {"mean": estimate.mean, "low": estimate.low, "high": estimate.high}
    return {**{name: _known(value) for name, value in values.items()}, "cases": estimate.cases}


def _named(values: Mapping[str, Any]) -> dict[str, Any]:
    return {to_camel(name): _known(value) for name, value in values.items()}


def _known(value: float | None) -> float | int | None:
    if isinstance(value, float):
        return rounded(value) if isfinite(value) else None
    return value
