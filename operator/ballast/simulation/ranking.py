"""Which policy did best, over all windows and seeds of a study.

Policies face the same load in the same window with the same seed, so that two of them are compared case by case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite

from ballast.simulation.estimate import Estimate
from ballast.simulation.figures import Figures
from ballast.simulation.study import Result, Study

JUDGED = ("imbalance_point_hours", "moves", "locality_cost")
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
    "Recommended is, of the policies whose imbalance can't be told from the lowest, the one with the fewest moves;"
    " among equals the one with the lower locality cost, then with the lower imbalance. Told from the lowest is what is"
    " higher in every case, or by more than the 95 % interval of the differences, case by case, leaves to chance; what"
    " is less than 1 %, or less than 0.1 point-hours, higher in the mean can't be told from it."
)


@dataclass(frozen=True, slots=True)
class Standing:
    """One policy's."""

    policy: str
    estimates: Mapping[str, Estimate]
    """By the names of `Figures`; less is better in all of them."""
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
    as_good = _as_good(runs, means)
    recommended = min(as_good, key=lambda policy: _frugality(means[policy]))
    standings = [
        Standing(
            policy=policy,
            estimates=estimates[policy],
            cases=len(results),
            never_level=sum(result.figures.seconds_to_balance is None for result in results),
            on_front=policy in front,
        )
        for policy, results in runs.items()
    ]
    standings.sort(key=lambda one: (one.policy != recommended, not one.on_front, means[one.policy][0]))
    order = [standing.policy for standing in standings]
    return Ranking(tuple(standings), recommended, tuple(sorted(as_good, key=order.index)))


def _estimates(results: Sequence[Result]) -> dict[str, Estimate]:
    return {field.name: Estimate.of([figure(result, field.name) for result in results]) for field in fields(Figures)}


def figure(result: Result, name: str) -> float:
    """One figure of `Figures`; the whole window's seconds where the pool never became level, NaN where unknown."""
    value: float | None = getattr(result.figures, name)
    return result.series.duration_seconds if value is None else float(value)


def _front(means: Mapping[str, tuple[float, ...]]) -> frozenset[str]:
    return frozenset(
        policy for policy, own in means.items() if not any(_dominates(other, own) for other in means.values())
    )


def _dominates(one: Iterable[float], other: Iterable[float]) -> bool:
    """At least as good in all that is known of both, and better in something."""
    gains = [theirs - ours for ours, theirs in zip(one, other, strict=True) if isfinite(ours) and isfinite(theirs)]
    return all(gain >= -_ROUNDING for gain in gains) and any(gain > _ROUNDING for gain in gains)


def _as_good(runs: Mapping[str, Sequence[Result]], means: Mapping[str, tuple[float, ...]]) -> list[str]:
    """The policy with the lowest imbalance, and those that can't be told from it."""
    best = min(means, key=lambda policy: means[policy][0])
    return [policy for policy in means if policy == best or not _worse(runs[policy], runs[best])]


def _worse(results: Sequence[Result], best: Sequence[Result]) -> bool:
    """By something that matters; in every case, for few cases leave any interval wide, or by more than chance tells."""
    by_case = {(result.case.window, result.case.seed): figure(result, JUDGED[0]) for result in best}
    apart = [figure(result, JUDGED[0]) - by_case[result.case.window, result.case.seed] for result in results]
    lowest, difference = Estimate.of(list(by_case.values())).mean, Estimate.of(apart)
    if difference.mean < max(_LEAST_SHARE * lowest, _LEAST_POINT_HOURS):
        return False
    return min(apart) > _ROUNDING or difference.low > 0.0


def _frugality(means: tuple[float, ...]) -> tuple[float, ...]:
    """Moves, locality cost, imbalance; what is not known decides nothing."""
    imbalance, moves, locality = (value if isfinite(value) else 0.0 for value in means)
    return moves, locality, imbalance
