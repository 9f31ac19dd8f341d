"""Making a layout cheaper, step by step, within limits that it never leaves.

Descent by shifts, swaps and whole nodes; at the bottom, part of the layout is taken out and placed again (large
neighborhood search), and kept when that was better. Steps are counted, so the result is the same on any machine,
and it can be stopped after any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.placement.problem import Layout, construct, hardest_first
from ballast.placement.room import fits

# Small changes of a layout, and what each would save.
#
# With benefit B[c, i] (what one more executor of c gains on node i), weights w and distances d: k of c from i to j: k
# (B[c, j] − B[c, i]) + k² w[c, c] d(i, j) and m of e from j to i: … − 2 k m w[c, e] d(i, j) for the pairs that pass
# each other all of node i (counts v): v · (B[:, j] − B[:, i]) + vᵀ w v d(i, j)


@dataclass(frozen=True, slots=True)
class Change:
    """Executors of groups that go from one node to another, and what that saves."""

    saving: float
    steps: tuple[tuple[int, int, int, int], ...]
    """Group, from, to, count."""

    def apply(self, layout: Layout) -> None:
        for group, source, _, count in self.steps:
            layout.add(group, source, count=-count)
        for group, _, target, count in self.steps:
            layout.add(group, target, count=count)


NO_CHANGE = Change(0.0, ())


def best_shift(layout: Layout, group: int, distance: FloatArray) -> Change:
    """One executor of the group, or as many as there are and fit, to another node."""
    (sources,) = layout.placed[group].nonzero()
    capacity = layout.capacity(group)
    (targets,) = capacity.nonzero()
    if not len(sources) or not len(targets):
        return NO_CHANGE
    component = int(layout.problem.component[group])
    benefit, own = layout.benefit[component], float(layout.problem.weights[component, component])
    gain = benefit[targets][None, :] - benefit[sources][:, None]
    apart = own * distance[np.ix_(sources, targets)]
    movable = layout.placed[group, sources]
    most = np.minimum(movable[:, None], capacity[targets][None, :])
    single, several = gain + apart, most * gain + most**2 * apart
    savings = np.maximum(single, several)
    row, column = np.unravel_index(int(np.argmax(savings)), savings.shape)
    count = int(most[row, column]) if several[row, column] > single[row, column] else 1
    step = (group, int(sources[row]), int(targets[column]), count)
    return Change(float(savings[row, column]), (step,))


def best_swap(
    layout: Layout, groups: tuple[int, int], distance: FloatArray, counts: tuple[int, int] = (1, 1)
) -> Change:
    """`counts` executors of two groups change places."""
    one, other = groups
    here = _givers(layout, one, other, counts)
    there = _givers(layout, other, one, counts[::-1]) if len(here) else here
    if not len(there):
        return NO_CHANGE
    problem = layout.problem
    first, second = int(problem.component[one]), int(problem.component[other])
    k, m = counts
    lean = k * layout.benefit[first] - m * layout.benefit[second]
    weights = problem.weights
    meeting = k * k * weights[first, first] + m * m * weights[second, second] - 2 * k * m * weights[first, second]
    savings = lean[there][None, :] - lean[here][:, None] + float(meeting) * distance[np.ix_(here, there)]
    savings[here[:, None] == there[None, :]] = 0.0
    if problem.zone_limit.size:
        savings[_zone_bars(layout, (first, second), (here, there), counts)] = 0.0
    row, column = np.unravel_index(int(np.argmax(savings)), savings.shape)
    i, j = int(here[row]), int(there[column])
    return Change(float(savings[row, column]), ((one, i, j, k), (other, j, i, m)))


def _givers(layout: Layout, giving: int, taking: int, counts: tuple[int, int]) -> IntArray:
    """Nodes that can give counts[0] of one group and take counts[1] of the other instead."""
    problem = layout.problem
    component, given = int(problem.component[taking]), int(problem.component[giving])
    # Most groups are on few of the nodes, and many never have two executors on one: only those nodes matter.
    candidates: IntArray = np.flatnonzero(layout.placed[giving] >= counts[0])
    if not len(candidates):
        return candidates
    released = counts[0] if component == given else 0
    mask = problem.allowed[taking, candidates] & (layout.node_left[component, candidates] + released >= counts[1])
    if problem.apart:
        mask &= ~layout.blocked(component)[candidates]
    candidates = candidates[mask]
    room = layout.room[candidates] + counts[0] * problem.demand[giving]
    return candidates[fits(room, counts[1] * problem.demand[taking], problem.slack)]


def _zone_bars(
    layout: Layout, components: tuple[int, int], nodes: tuple[IntArray, IntArray], counts: tuple[int, int]
) -> BoolArray:
    """(here, there): swaps between zones that a zone's limit forbids."""
    zones = layout.problem.places[0]
    first, second = components
    here, there = zones[nodes[0]], zones[nodes[1]]
    if first == second and counts[0] == counts[1]:
        return np.zeros((len(here), len(there)), dtype=np.bool_)
    full_there = layout.zone_left[first][there] < counts[0]
    full_here = layout.zone_left[second][here] < counts[1]
    bars: BoolArray = (here[:, None] != there[None, :]) & (full_here[:, None] | full_there[None, :])
    return bars


def best_node_change(layout: Layout, distance: FloatArray, *, exchange: bool) -> Change:
    """All that was placed on one node to another, or two nodes' executors exchanged."""
    problem = layout.problem
    movable = layout.placed
    occupied = np.flatnonzero(movable.any(axis=0))
    if problem.apart or not len(occupied):
        return NO_CHANGE
    others = occupied if exchange else np.flatnonzero(~movable.any(axis=0))
    if not len(others):
        return NO_CHANGE
    by_component = np.zeros_like(layout.present)
    np.add.at(by_component, problem.component, movable)
    savings = _node_savings(layout, by_component, occupied, others, distance)
    savings[~_node_fits(layout, movable, by_component, occupied, others)] = 0.0
    row, column = np.unravel_index(int(np.argmax(savings)), savings.shape)
    i, j = int(occupied[row]), int(others[column])
    going = [(int(g), i, j, int(movable[g, i])) for g in np.flatnonzero(movable[:, i])]
    coming = [(int(g), j, i, int(movable[g, j])) for g in np.flatnonzero(movable[:, j])]
    return Change(float(savings[row, column]), (*going, *coming))


def _node_savings(
    layout: Layout, counts: IntArray, ones: IntArray, others: IntArray, distance: FloatArray
) -> FloatArray:
    weights, benefit = layout.problem.weights, layout.benefit
    here, there = counts[:, ones], counts[:, others]
    own_here, own_there = (here * benefit[:, ones]).sum(axis=0), (there * benefit[:, others]).sum(axis=0)
    lean = here.T @ benefit[:, others] - own_here[:, None] + (there.T @ benefit[:, ones]).T - own_there[None, :]
    meeting_here = (here * (weights @ here)).sum(axis=0)
    meeting_there = (there * (weights @ there)).sum(axis=0)
    meeting = meeting_here[:, None] + meeting_there[None, :] - 2.0 * (here.T @ weights @ there)
    savings: FloatArray = lean + meeting * distance[np.ix_(ones, others)]
    return savings


def _node_fits(layout: Layout, movable: IntArray, counts: IntArray, ones: IntArray, others: IntArray) -> BoolArray:
    problem = layout.problem
    used = movable.T @ problem.demand
    tolerant = layout.room + used + problem.slack
    # An amount that no executor lacks may be overdrawn: only what moves must fit.
    need_here, need_there = used[ones], used[others]
    ok: BoolArray = np.logical_and.reduce(
        (tolerant[others][None, :] >= need_here[:, None]) | (need_here[:, None] <= 0), axis=2
    )
    ok &= ((tolerant[ones][:, None] >= need_there[None, :]) | (need_there[None, :] <= 0)).all(axis=2)
    refused = (~problem.allowed).astype(np.int64)
    there = (movable > 0).astype(np.int64)
    ok &= (there[:, ones].T @ refused[:, others] == 0) & (refused[:, ones].T @ there[:, others] == 0)
    zones = problem.places[0]
    crosses = zones[ones][:, None] != zones[others][None, :]
    for component in range(len(counts)):
        more = counts[component][ones][:, None] - counts[component][others][None, :]
        ok &= (more <= layout.node_left[component][others][None, :]) & (
            -more <= layout.node_left[component][ones][:, None]
        )
        zone_left = layout.zone_left[component][zones]
        ok &= ~crosses | ((more <= zone_left[others][None, :]) & (-more <= zone_left[ones][:, None]))
    return ok


_WORTH = 1e-9
"""Savings below this share of the largest weight are rounding."""
_SWAPS = ((1, 1), (1, 2), (2, 1))
_FEW_NODES = 512
"""Up to so many, pairs of whole nodes are compared."""


_PAIRS_OF_A_STEP = 200_000
"""Pairs of nodes that one step compares. Of more nodes a change counts as several steps, because it takes as long."""


class Budget:
    """Steps that may still be taken; `nodes`: of the layouts that they are taken in."""

    def __init__(self, steps: int, *, nodes: int) -> None:
        self.left, self._price = steps, 1 + nodes**2 // _PAIRS_OF_A_STEP

    def spend(self, steps: int = 1) -> bool:
        """False when nothing is left."""
        self.left -= steps * self._price
        return self.left >= 0


def refine(layout: Layout, steps: int, random: Random) -> Layout:
    """A layout with no more missing, and when as many are missing, of no higher cost; `layout` may be changed."""
    if not layout.placed.any():
        return layout
    budget = Budget(steps, nodes=len(layout.problem.nodes))
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
    """Take a part out and place it again; the number of steps that it took."""
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
