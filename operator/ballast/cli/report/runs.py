"""What simulated runs came to, as `simulate` shows it, and how `backtest` ranks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from math import isfinite
from types import MappingProxyType
from typing import Any

from pydantic.alias_generators import to_camel
from rich.console import RenderableType
from rich.text import Text

from ballast.cli.output import Format, duration, explained, heading, line, points, rounded, table
from ballast.simulation.ranking import METHOD, RULE, Estimate, Ranking, Standing
from ballast.simulation.run_metrics import RunMetrics, run_metrics
from ballast.simulation.scenario import Scenario
from ballast.simulation.study import Study
from ballast.simulation.trace import MoveRecord, Trace

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "level after": "longest time out of balance; open: a gap was left at the end",
        "moves": "executors that were made to leave",
        "rounds": "passes that decided on at least one move",
        "beyond": "moves beyond the fewest possible",
        "wrong": "moves whose destination was too hot afterwards",
        "over": "moves whose source was too cold afterwards",
        "back": "moves that reverse one of the last hour between the same two nodes",
        "failed": "moves that did not arrive or did not help",
        "imbalance(point-hours)": "standard deviation of the nodes' usage in points, summed over time",
        "peak%": "the highest usage of any node, of its capacity",
        "locality": "mean cost of traffic: its share times its distance",
        "limited": "moves refused by budgets, cooldowns and limits",
    }
)
"""What the columns say."""
RUN_COLUMNS = ("policy", *MEANINGS)
MOVE_COLUMNS = ("at", "executor", "from", "to", "scores", "predicted", "measured", "outcome")
_NO_MOVES = "None"
"""How users name the policy that moves nothing."""
_LEAST_SHARE, _LEAST_POINT_HOURS = 0.01, 0.1
"""Smaller differences are not visible in the table."""
MOST_MOVES = 50
"""Of one run, in a table for people."""


def simulated_report(scenario: Scenario, traces: Sequence[Trace], form: Format) -> list[RenderableType]:
    """What to print for people, from top to bottom."""
    spec = scenario.spec
    nodes, executors = len(traces[0].nodes), sum(each.total for each in spec.applications)
    parts: list[RenderableType] = [
        line(
            ("scenario", scenario.name),
            ("for", duration(spec.duration.seconds)),
            ("nodes", str(nodes)),
            ("executors", str(executors)),
            ("seed", str(traces[0].seed)),
        )
    ]
    if spec.description:
        parts.append(Text(spec.description.strip(), style="dim"))
    parts += [Text(), Text("Less is better in every column.", style="dim"), *explained(MEANINGS, RUN_COLUMNS)]
    parts += [Text(), table(RUN_COLUMNS, figures_rows(traces), right=RUN_COLUMNS[1:], cut=("policy",))]
    for trace in traces if form is Format.WIDE else ():
        parts += [heading(f"Moves under {trace.policy}"), *_moves(trace)]
    return [*parts, Text(), Text(simulated_answer(traces), style="bold")]


def simulated_answer(traces: Sequence[Trace]) -> str:
    """Whether the policy with the lowest imbalance is better than no moves, and at what cost: one sentence."""
    found = {trace.policy: run_metrics(trace) for trace in traces}
    still = found.pop(_NO_MOVES, None)
    if not found:
        return "No policy with moves was run: name one with --policy."
    name = _best(found)
    best = found[name]
    made = f"{best.moves} move{'' if best.moves == 1 else 's'}"
    if still is None:
        return f"{name} made {made}, and the pool {_level(best)}; add --policy {_NO_MOVES} to compare it with no moves."
    before, after = still.imbalance_point_hours, best.imbalance_point_hours
    if _alike(before, after):
        return f"No moves are needed: {name} made {made}, and the imbalance is the same without any."
    if after > before:
        change = f"from {before:.1f} to {after:.1f} point-hours"
        return f"No moves are better: {name} made {made}, and the imbalance rose {change}."
    return (
        f"{name} is better than no moves: {1.0 - after / before:.0%} less imbalance for {made}; {_ends(best, still)}."
    )


def _ends(ours: RunMetrics, still: RunMetrics) -> str:
    if ours.seconds_to_balance is None and still.seconds_to_balance is None:
        return "the pool was not level at the end, with or without moves"
    return f"the pool {_level(ours)}, without moves it {_level(still)}"


def _best(found: Mapping[str, RunMetrics]) -> str:
    """The policy with the lowest imbalance."""
    return min(found, key=lambda name: (found[name].imbalance_point_hours, found[name].moves))


def _alike(before: float, after: float) -> bool:
    return abs(before - after) < max(_LEAST_POINT_HOURS, _LEAST_SHARE * before)


def _moves_help(found: Mapping[str, RunMetrics]) -> bool:
    """Unknown without a run that moves nothing: then they may."""
    still = found.get(_NO_MOVES)
    if still is None:
        return True
    before, after = still.imbalance_point_hours, found[_best(found)].imbalance_point_hours
    return after < before and not _alike(before, after)


def _level(found: RunMetrics) -> str:
    seconds = found.seconds_to_balance
    return "was not level at the end" if seconds is None else f"was level after {duration(seconds)}"


def figures_rows(traces: Sequence[Trace]) -> list[list[str]]:
    """Each policy's cells, by `RUN_COLUMNS`. A gap that no move would close is no policy's fault: it is left out."""
    found = {trace.policy: run_metrics(trace) for trace in traces}
    unleveled = "open" if _moves_help(found) else "-"
    return [_figures_row(policy, metrics, unleveled) for policy, metrics in found.items()]


def _figures_row(policy: str, found: RunMetrics, unleveled: str) -> list[str]:
    return [
        policy,
        unleveled if found.seconds_to_balance is None else duration(found.seconds_to_balance),
        str(found.moves),
        str(found.rounds),
        str(found.moves_beyond_optimum),
        str(found.wrong_placements),
        str(found.over_unloadings),
        str(found.reversals),
        str(found.failed_moves),
        points(found.imbalance_point_hours),
        points(found.peak_score),
        f"{found.locality_cost:.2f}",
        str(found.limit_refusals),
    ]


def _moves(trace: Trace) -> list[RenderableType]:
    if not trace.moves:
        return [Text("none")]
    rows = [move_row(move) for move in trace.moves[:MOST_MOVES]]
    parts: list[RenderableType] = [table(MOVE_COLUMNS, rows, cut=("executor", "from", "to"))]
    if len(trace.moves) > MOST_MOVES:
        parts.append(Text(f"and {len(trace.moves) - MOST_MOVES} more; -o json has them all", style="dim"))
    return parts


def move_row(move: MoveRecord) -> list[str]:
    """By `MOVE_COLUMNS`."""
    return [
        duration(move.decided_at),
        move.executor,
        move.source,
        move.target,
        f"{points(move.hot_score)} / {points(move.cold_score)}",
        f"{points(move.hot_after)} / {points(move.cold_after)}",
        f"{points(move.measured_hot_after)} / {points(move.measured_cold_after)}",
        move.outcome.value,
    ]


def simulated_document(scenario: Scenario, traces: Sequence[Trace]) -> dict[str, Any]:
    """The same for programs, with every move."""
    return {
        "scenario": scenario.name,
        "durationSeconds": scenario.spec.duration.seconds,
        "runs": [
            {
                "policy": trace.policy,
                "seed": trace.seed,
                "metrics": _plain(run_metrics(trace)),
                "refusals": trace.refused(),
                "moves": [_plain(move) for move in trace.moves],
            }
            for trace in traces
        ],
    }


def _plain(value: RunMetrics | MoveRecord) -> dict[str, Any]:
    return {to_camel(name): _written(item) for name, item in asdict(value).items()}


def _written(item: Any) -> Any:
    if isinstance(item, float):
        return rounded(item)
    return str(item) if isinstance(item, StrEnum) else item


# What a backtest came to, as `backtest` shows it.

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
    return [*parts, Text(), Text(backtested_answer(study, found), style="bold")]


def backtested_answer(study: Study, found: Ranking) -> str:
    """Which policy to take, and what it brings: one sentence."""
    others = [policy for policy in found.as_good if policy != found.recommended]
    equal = f"; not measurably less level: {', '.join(others)}" if others else ""
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
    told = _TELLERS.get(figure, _short)
    if not isfinite(estimate.mean):
        return "-"
    return told(estimate.mean) + (f" ±{told(estimate.half_width)}" if isfinite(estimate.half_width) else "")


def _short(value: float) -> str:
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
            {**asdict(result.case), "metrics": _named(asdict(result.metrics)), "moves": len(result.moves)}
            for result in study.results
        ],
    }


def _standing(one: Standing, study: Study) -> dict[str, Any]:
    return {
        "policy": one.policy,
        "onFront": one.on_front,
        "cases": one.cases,
        "neverLevel": one.never_level,
        "metrics": {to_camel(name): _estimate(each) for name, each in one.estimates.items()},
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
