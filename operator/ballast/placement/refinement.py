"""Making a layout cheaper, step by step, within limits that it never leaves.

Descent by shifts, swaps and whole nodes; at the bottom, part of the layout is taken out and placed anew (large
neighborhood search), and kept when that was better. Steps are counted, so the result is the same on any machine,
and it can be stopped after any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np

from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.construction import construct, hardest_first
from ballast.placement.neighborhood import Change, best_node_change, best_shift, best_swap
from ballast.placement.problem import Layout

_WORTH = 1e-9
"""Savings below this share of the largest weight are rounding."""
_SWAPS = ((1, 1), (1, 2), (2, 1))
_FEW_NODES = 512
"""Up to so many, pairs of whole nodes are compared."""


class Budget:
    """Steps that may still be taken."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> bool:
        """False when nothing is left."""
        self.left -= steps
        return self.left >= 0


def refine(layout: Layout, steps: int, random: Random) -> Layout:
    """A layout with no more missing, and when as many are missing, of no higher cost; `layout` may be changed."""
    if not layout.placed.any():
        return layout
    budget = Budget(steps)
    descend(layout, budget)
    best, rank = layout, _rank(layout)
    while budget.left > 0:
        trial = best.copy()
        budget.spend(_rebuild(trial, random))
        if trial.missing.sum() > rank[0]:
            continue
        descend(trial, budget, full=False)
        found = _rank(trial)
        if found < rank:
            descend(trial, budget)
            found = _rank(trial)
        if found <= rank:
            best, rank = trial, found
    return best


def _rank(layout: Layout) -> tuple[int, float]:
    return int(layout.missing.sum()), layout.cost()


def descend(layout: Layout, budget: Budget, *, full: bool = True) -> None:
    """Take the best change of each kind as long as one saves something; the cheap kinds only unless `full`."""
    worth, distance = _WORTH * layout.problem.scale, layout.problem.distance
    improving = True
    while improving and budget.left > 0:
        improving = False
        for change in _changes(layout, distance, budget, worth, full=full):
            if change.saving > worth:
                change.apply(layout)
                improving = True


def _changes(layout: Layout, distance: FloatArray, budget: Budget, worth: float, *, full: bool) -> Iterator[Change]:
    """Each computed on the layout as the changes before it have left it."""
    groups = [int(g) for g in np.flatnonzero(layout.placed.any(axis=1))]
    for group in groups:
        change: Change | None = None
        while (change is None or change.saving > worth) and budget.spend():
            change = best_shift(layout, group, distance)
            yield change
    pairs = ((one, other) for position, one in enumerate(groups) for other in groups[:position])
    for one, other in pairs if budget.left > 0 else ():
        for counts in _SWAPS if full else _SWAPS[:1]:
            if not budget.spend():
                return
            yield best_swap(layout, (one, other), distance, counts)
    # Where there is one executor, shifting it is all that can be done.
    whole_nodes = full and layout.problem.counts.sum() > 1 and len(layout.problem.nodes) <= _FEW_NODES
    for exchange in (False, True) if whole_nodes else ():
        if not budget.spend(2):
            return
        yield best_node_change(layout, distance, exchange=exchange)


def _rebuild(layout: Layout, random: Random) -> int:
    """Take a part out and place it anew; the number of steps that it took."""
    _ruin(layout, random)
    removed = [int(group) for group in np.repeat(np.arange(len(layout.missing)), layout.missing)]
    if random.random() < 0.25:
        ranks = {group: rank for rank, group in enumerate(dict.fromkeys(hardest_first(layout.problem)))}
        removed.sort(key=lambda group: ranks[group])
        construct(layout, removed, tightest=random.random() < 0.5)
    else:
        random.shuffle(removed)
        construct(layout, removed)
    return 1 + len(removed)


def _ruin(layout: Layout, random: Random) -> None:
    """Take out some nodes, a component, a place, or executors here and there."""
    movable = layout.placed.copy()
    occupied = [int(node) for node in np.flatnonzero(movable.any(axis=0))]
    if not occupied:
        return
    chance = random.random()
    if chance < 0.45:
        _take(layout, movable, random.sample(occupied, min(len(occupied), random.randint(2, 4))))
    elif chance < 0.65:
        group = random.choice([int(g) for g in np.flatnonzero(movable.any(axis=1))])
        same = layout.problem.component == layout.problem.component[group]
        _take(layout, np.where(same[:, None], movable, 0), occupied)
    elif chance < 0.85:
        places = layout.problem.places[random.randrange(len(layout.problem.places))]
        place = places[random.choice(occupied)]
        _take(layout, movable, [node for node in occupied if places[node] == place])
    else:
        _take(layout, _some(movable, random), occupied)


def _some(movable: IntArray, random: Random) -> IntArray:
    cells = [(int(group), int(node)) for group, node in zip(*np.nonzero(movable), strict=True)]
    some = np.zeros_like(movable)
    for cell in random.sample(cells, max(1, round(random.choice((0.1, 0.2, 0.4)) * len(cells)))):
        some[cell] = random.randint(1, int(movable[cell]))
    return some


def _take(layout: Layout, amounts: IntArray, nodes: list[int]) -> None:
    for node in nodes:
        for group in np.flatnonzero(amounts[:, node]):
            layout.add(int(group), node, count=-int(amounts[group, node]))
