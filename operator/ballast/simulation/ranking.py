"""Which policy did best, over all windows and seeds of a study.

Policies face the same load in the same window with the same seed, so that two of them are compared case by case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite, nan, sqrt
from statistics import fmean, stdev

from ballast.simulation.run_metrics import RunMetrics
from ballast.simulation.study import Result, Study

# A mean over cases, and how well it is known.

_T = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
"""97.5 % quantiles of Student's t, by degrees of freedom from 1 on."""
_NORMAL = 1.95996


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of the mean: two-sided 95 % interval by Student's t over the cases, each of which counts as one drawing."""

    mean: float
    """NaN where no case tells."""
    half_width: float
    """Half the interval's width; NaN where fewer than two cases tell."""
    cases: int
    """That tell."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """NaN = this case does not tell."""
        known = [value for value in values if isfinite(value)]
        if len(known) < 2:
            return cls(known[0] if known else nan, nan, len(known))
        return cls(fmean(known), quantile(len(known) - 1) * stdev(known) / sqrt(len(known)), len(known))

    @property
    def low(self) -> float:
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        return self.mean + self.half_width


def quantile(freedom: int) -> float:
    """97.5 % of Student's t; beyond 30 degrees of freedom to four figures (Cornish-Fisher's first terms)."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = _NORMAL
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


JUDGED = _IMBALANCE, _MOVES, _LOCALITY_COST = "imbalance_point_hours", "moves", "locality_cost"
"""What the front is of: figures of which each may only be had at the price of another."""
_ROUNDING = 1e-9
_LEAST_SHARE = 0.01
_LEAST_POINT_HOURS = 0.1
"""What tables round to: less would tell policies apart by figures that read the same."""

METHOD = (
    "95 % intervals of means by Student's t; each window with each seed is one case. A pool that was not level when its"
    " window ended counts with the whole window."
)
RULE = (
    "Of the policies whose imbalance is not significantly above the lowest, and that leave the pool out of balance in"
    " no more cases, one with significantly fewer moves is recommended; if there is none, one with a significantly"
    " lower locality cost for no more moves; if there is none, the one with the lowest imbalance. A result is"
    " significantly higher if it is higher in every case, or if the 95 % interval of the differences, case by case, is"
    " above 0. A mean that is less than 1 % higher is never significant, nor an imbalance that is less than 0.1"
    " point-hours higher."
)


@dataclass(frozen=True, slots=True)
class Standing:
    """One policy's."""

    policy: str
    estimates: Mapping[str, Estimate]
    """By the names of `RunMetrics`; less is better in all of them."""
    cases: int
    never_level: int
    """Cases in which the pool was not level when the window ended."""
    on_front: bool
    """No other policy is at least as good in all that is `JUDGED`, and better in something."""

    def mean(self, figure: str) -> float:
        return self.estimates[figure].mean


@dataclass(frozen=True, slots=True)
class Ranking:
    standings: tuple[Standing, ...]
    """The recommended one first, then the others on the front, then the rest; by imbalance within each."""
    recommended: str
    as_good: tuple[str, ...]
    """The policies whose imbalance can't be told from the lowest, in the order of `standings`."""

    def of(self, policy: str) -> Standing:
        return next(standing for standing in self.standings if standing.policy == policy)


def ranking(study: Study) -> Ranking:
    """`study` has results of each of its policies."""
    runs = {policy: study.of(policy) for policy in study.policies}
    estimates = {policy: _estimates(results) for policy, results in runs.items()}
    means = {policy: tuple(found[name].mean for name in JUDGED) for policy, found in estimates.items()}
    front = _front(means)
    best = _most_level(runs, means)
    as_good = [policy for policy in means if policy == best or not _more(runs[policy], runs[best], _IMBALANCE)]
    recommended = _recommended(best, {policy: runs[policy] for policy in as_good}, means)
    standings = [
        Standing(
            policy=policy,
            estimates=estimates[policy],
            cases=len(results),
            never_level=_never_level(results),
            on_front=policy in front,
        )
        for policy, results in runs.items()
    ]
    standings.sort(key=lambda one: (one.policy != recommended, not one.on_front, means[one.policy][0]))
    order = [standing.policy for standing in standings]
    return Ranking(tuple(standings), recommended, tuple(sorted(as_good, key=order.index)))


def _estimates(results: Sequence[Result]) -> dict[str, Estimate]:
    return {field.name: Estimate.of([figure(result, field.name) for result in results]) for field in fields(RunMetrics)}


def figure(result: Result, name: str) -> float:
    """One figure of `RunMetrics`; the whole window's seconds where the pool never became level, NaN where unknown."""
    value: float | None = getattr(result.metrics, name)
    return result.series.duration_seconds if value is None else float(value)


def _front(means: Mapping[str, tuple[float, ...]]) -> frozenset[str]:
    return frozenset(
        policy for policy, own in means.items() if not any(_dominates(other, own) for other in means.values())
    )


def _dominates(one: Iterable[float], other: Iterable[float]) -> bool:
    """At least as good in all that is known of both, and better in something."""
    gains = [theirs - ours for ours, theirs in zip(one, other, strict=True) if isfinite(ours) and isfinite(theirs)]
    return all(gain >= -_ROUNDING for gain in gains) and any(gain > _ROUNDING for gain in gains)


def _never_level(results: Sequence[Result]) -> int:
    return sum(result.metrics.seconds_to_balance is None for result in results)


def _most_level(runs: Mapping[str, Sequence[Result]], means: Mapping[str, tuple[float, ...]]) -> str:
    """The policy with the lowest imbalance; of those that read the same, one that leaves fewer cases out of balance."""
    lowest = min(own[0] for own in means.values())
    alike = [policy for policy, own in means.items() if own[0] - lowest < _least(_IMBALANCE, lowest)]
    return min(alike or means, key=lambda policy: (_never_level(runs[policy]), means[policy][0]))


def _recommended(best: str, runs: Mapping[str, Sequence[Result]], means: Mapping[str, tuple[float, ...]]) -> str:
    """`runs`: of the policies that are as level as `best`. Nothing is chosen by a difference that chance can make."""
    own = runs[best]
    no_worse = [policy for policy, results in runs.items() if _never_level(results) <= _never_level(own)]
    if fewer := [policy for policy in no_worse if _more(own, runs[policy], _MOVES)]:
        return min(fewer, key=lambda policy: (means[policy][1], means[policy][0]))
    nearer = [
        policy
        for policy in no_worse
        if _more(own, runs[policy], _LOCALITY_COST) and not _more(runs[policy], own, _MOVES)
    ]
    return min(nearer, key=lambda policy: (means[policy][2], means[policy][0])) if nearer else best


def _least(name: str, mean: float) -> float:
    """What a difference of means must be to matter."""
    share = _LEAST_SHARE * mean
    return max(share, _LEAST_POINT_HOURS) if name == _IMBALANCE else max(share, _ROUNDING)


def _more(results: Sequence[Result], others: Sequence[Result], name: str) -> bool:
    """Whether a figure is higher by something that matters, in every case or by more than chance tells.

    With few cases any interval is wide, so that being higher in every case counts, too. Only cases in which the figure
    is known of both are compared.
    """
    by_case = {(result.case.window, result.case.seed): figure(result, name) for result in others}
    pairs = [(figure(result, name), by_case[result.case.window, result.case.seed]) for result in results]
    known = [(own, other) for own, other in pairs if isfinite(own) and isfinite(other)]
    if not known:
        return False
    apart = [own - other for own, other in known]
    difference = Estimate.of(apart)
    if difference.mean < _least(name, fmean(other for _, other in known)):
        return False
    return min(apart) > _ROUNDING or difference.low > 0.0


# PIP-364's five questions about strategies, asked of a study: what each policy did in the windows that it ran in.
#
# `comparison` asks them of the proposal's own examples. Source of the questions: PIP-364, "Load shedding strategy".

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
    leveled = [each.metrics for each in results if each.metrics.seconds_to_balance is not None]
    return Verdict(
        points_left=fmean(_points_left(each) for each in results),
        needless_moves=fmean(_a_day(each, each.metrics.moves_beyond_optimum) for each in results),
        wrong_placements=fmean(each.metrics.wrong_placements for each in results),
        over_unloadings=fmean(each.metrics.over_unloadings for each in results),
        slowness=(len(results) - len(leveled), sum(each.rounds for each in leveled) / max(len(leveled), 1)),
    )


def _points_left(result: Result) -> float:
    gap = result.series.gap
    return max(0.0, float(gap[-1]) - result.series.level_points) if len(gap) else 0.0


def _a_day(result: Result, count: int) -> float:
    return count * _DAY_SECONDS / max(result.series.duration_seconds, 1.0)
