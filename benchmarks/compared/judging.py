"""In which cells a peer is better than Ballast, by more than noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from benchmarks.compared.figures import Figures

Seeds = Sequence[Figures]
"""What one peer came to in one row, by seed."""

DEBOUNCE_SECONDS = 0.3
FLOORS: Mapping[str, float] = {
    "unplaced": 0.5,
    "cross_zone": 0.01,
    "cross_rack": 0.01,
    "distance": 0.05,
    "most_on_a_node": 0.5,
    "seconds": DEBOUNCE_SECONDS + 1.0,
}
"""What is never more than noise. Ballast collects executors for its policy's debounce: seconds less
than that are not called worse, and are in the table."""
WEIGHED_WITH_FLOWS = ("unplaced", "distance", "most_on_a_node", "seconds")
WEIGHED_ALONE = ("unplaced", "cross_zone", "cross_rack", "most_on_a_node", "seconds")
"""Figures in the order in which they weigh: a peer is not better in one that has paid for it in an earlier one."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Next to the best of the peers that are no worse in what weighs more."""

    figure: str
    ours: float
    peer: str
    best: float
    noise: float
    """Two standard errors of the difference over the seeds, or the figure's floor if that is more."""


def verdicts(ours: Seeds, others: Mapping[str, Seeds], *, flows: bool) -> list[Verdict]:
    """One for each figure that some peer may be compared by; Ballast's is worse if it is above `best` + `noise`."""
    left, found = dict(others), []
    for figure in WEIGHED_WITH_FLOWS if flows else WEIGHED_ALONE:
        own = _mean(ours, figure)
        means = {name: _mean(seeds, figure) for name, seeds in left.items()}
        noises = {name: _noise(ours, seeds, figure) for name, seeds in left.items()}
        known = {name: value for name, value in means.items() if value == value}  # noqa: PLR0124 -- NaN
        if not known:
            break
        best = min(known, key=lambda name: known[name] + noises[name])
        found.append(Verdict(figure, own, best, known[best], noises[best]))
        left = {
            name: left[name]
            for name in known
            if known[name] <= own + noises[name] and not _always_worse(left[name], ours, figure)
        }
    return found


def _always_worse(theirs: Seeds, ours: Seeds, figure: str) -> bool:
    """With every seed, by more than the floor: however much worse with one of them, that is no noise."""
    pairs = zip(theirs, ours, strict=True)
    return all(getattr(their, figure) - getattr(our, figure) > FLOORS[figure] for their, our in pairs)


def _mean(seeds: Seeds, figure: str) -> float:
    return fmean(getattr(each, figure) for each in seeds)


def _noise(ours: Seeds, theirs: Seeds, figure: str) -> float:
    differences = [getattr(one, figure) - getattr(other, figure) for one, other in zip(ours, theirs, strict=True)]
    several = len(differences) > 1 and all(each == each for each in differences)  # noqa: PLR0124 -- NaN
    error = 2.0 * stdev(differences) / sqrt(len(differences)) if several else 0.0
    return max(FLOORS[figure], error)
