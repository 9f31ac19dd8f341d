"""Which plots a study is shown by: which windows, which runs and which policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ballast.cli.picture.frame import Plot
from ballast.cli.picture.heat import Heat, heat_map
from ballast.cli.picture.multiples import Course, small_multiples
from ballast.cli.picture.pareto import Trade, pareto
from ballast.cli.picture.timeline import timeline
from ballast.simulation.ranking import Ranking, Standing, figure
from ballast.simulation.study import Result, Study

MOST_POLICIES, MOST_WINDOWS = 12, 3


@dataclass(frozen=True, slots=True)
class Choice:
    """What is shown of a study that has more than a page holds."""

    policies: tuple[str, ...]
    """The first of the ranking, and what moves nothing."""
    before: str | None
    """What the recommended policy is set against: the one that moves nothing; where there is none, or where that is
    the recommended one, the one with the highest imbalance. None when there is no other policy."""
    windows: tuple[str, ...]
    """Those in which these two differ most in imbalance, most of all first."""
    seed: int
    """Of single runs: the lowest of their window."""

    @property
    def window(self) -> str:
        """Of single runs."""
        return self.windows[0]


def choice(study: Study, ranking: Ranking) -> Choice:
    order = [standing.policy for standing in ranking.standings]
    base = study.baseline
    first = order[:MOST_POLICIES]
    before = base if base != ranking.recommended else None
    if before is None:
        others = [policy for policy in order if policy != ranking.recommended]
        before = max(others, key=lambda policy: ranking.of(policy).mean("imbalance_point_hours"), default=None)
    windows = _telling(study, ranking.recommended, before)
    return Choice(
        policies=tuple(first if base is None or base in first else [*first, base]),
        before=before,
        windows=tuple(windows[:MOST_WINDOWS]),
        seed=min(result.case.seed for result in study.results if result.case.window == windows[0]),
    )


def _telling(study: Study, one: str, other: str | None) -> list[str]:
    """Windows, those first in which the two policies differ most."""
    if other is None:
        return list(study.windows)
    apart = {window: abs(_imbalance(study, one, window) - _imbalance(study, other, window)) for window in study.windows}
    return sorted(study.windows, key=lambda window: -apart[window])


def _imbalance(study: Study, policy: str, window: str) -> float:
    return fmean(figure(result, "imbalance_point_hours") for result in runs(study, policy, window))


def runs(study: Study, policy: str, window: str) -> list[Result]:
    """One for each seed."""
    return [result for result in study.of(policy) if result.case.window == window]


@dataclass(frozen=True, slots=True)
class Exhibits:
    chosen: Choice
    pareto: Plot
    imbalance: Mapping[str, Plot]
    """By window."""
    moves: Plot
    before: Plot | None
    after: Plot

    def __iter__(self) -> Iterator[Plot]:
        yield self.pareto
        yield from self.imbalance.values()
        yield self.moves
        if self.before is not None:
            yield self.before
        yield self.after


def exhibits(study: Study, ranking: Ranking) -> Exhibits:
    """All plots of a study."""
    chosen = choice(study, ranking)
    labels = {standing.policy: f"{number} {standing.policy}" for number, standing in enumerate(ranking.standings, 1)}
    return Exhibits(
        chosen=chosen,
        pareto=_pareto(ranking),
        imbalance={
            window: _multiples(study, chosen, window, name=f"imbalance-{number}", labels=labels)
            for number, window in enumerate(chosen.windows, start=1)
        },
        moves=_moves(study, chosen, labels),
        before=None if chosen.before is None else _nodes(study, chosen, chosen.before, name="nodes-before"),
        after=_nodes(study, chosen, ranking.recommended, name="nodes-after"),
    )


def _pareto(ranking: Ranking) -> Plot:
    trades = [_trade(standing, recommended=standing.policy == ranking.recommended) for standing in ranking.standings]
    return pareto(trades, name="pareto", title="Imbalance, moves and locality cost of each policy")


def _trade(standing: Standing, *, recommended: bool) -> Trade:
    return Trade(
        name=standing.policy,
        moves=standing.estimates["moves"],
        imbalance=standing.estimates["imbalance_point_hours"],
        locality=standing.mean("locality_cost"),
        on_front=standing.on_front,
        recommended=recommended,
    )


def _multiples(study: Study, chosen: Choice, window: str, *, name: str, labels: Mapping[str, str]) -> Plot:
    by_policy = {policy: [run.series for run in runs(study, policy, window)] for policy in chosen.policies}
    courses = [Course.of(labels[policy], series) for policy, series in by_policy.items()]
    seconds = max(each.duration_seconds for series in by_policy.values() for each in series)
    return small_multiples(courses, seconds=seconds, name=name, title=f"Imbalance over time by policy, in {window}")


def single(study: Study, chosen: Choice, policy: str) -> Result:
    """The run that is shown of a policy."""
    every: Sequence[Result] = runs(study, policy, chosen.window)
    return next(result for result in every if result.case.seed == chosen.seed)


def _moves(study: Study, chosen: Choice, labels: Mapping[str, str]) -> Plot:
    shown = {labels[policy]: single(study, chosen, policy) for policy in chosen.policies}
    seconds = max(result.series.duration_seconds for result in shown.values())
    moves = {label: result.moves for label, result in shown.items()}
    return timeline(moves, seconds=seconds, name="moves", title=f"Moves by policy, in {chosen.window}")


def _nodes(study: Study, chosen: Choice, policy: str, *, name: str) -> Plot:
    result = single(study, chosen, policy)
    return heat_map(_heat(result), name=name, title=f"Node scores under {policy}, in {chosen.window}")


def _heat(result: Result) -> Heat:
    series = result.series
    return Heat(series.nodes, series.times, series.scores, series.duration_seconds, result.moves)
