"""From an outlook to a layout: look where it is best first, wider when that does not hold the set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.construction import construct, construct_by_zone, hardest_first
from ballast.placement.domain import domains, settles_for_one_place
from ballast.placement.grid import Grid
from ballast.placement.outlook import Outlook
from ballast.placement.problem import Layout, Problem
from ballast.placement.refinement import Budget, descend, refine

_FIRST_LOOK = 40
"""Steps of descent before places are compared."""
_PACKING = 5
"""How many times the steps for a set that should fit by amounts, and does not yet."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to look. Counted in steps, not seconds, so that the same question always has the same answer."""

    steps: int = 200
    """Steps of refinement for each set that is placed together."""
    thorough: bool = True
    """Compare several places instead of taking the first that holds the set."""
    orders: bool = True
    """Try several orders of placing where there are several components or templates."""
    seed: int = 0


def search(outlook: Outlook, sequence: Sequence[int], effort: Effort) -> Layout | None:
    """The best layout found; `sequence` are positions in the outlook's groups, one per executor.

    None when no node can take any of them. Executors may be missing from it when the pool does not hold them.
    """
    if not outlook.capacity.any():
        return None
    best = _first_look(outlook, sequence, effort)
    if best is None or not effort.steps or _settled(best, effort):
        return best
    steps = effort.steps * (_PACKING if effort.thorough and _may_hold_more(best) else 1)
    # Seeded by the caller: the same question always has the same answer.
    return refine(best, steps, Random(effort.seed))  # noqa: S311 -- draws, no secrets


def _settled(layout: Layout, effort: Effort) -> bool:
    """Whether refinement is not worth it: one executor is on the best node already, one kind of many nearly so."""
    counts = layout.problem.counts
    return len(counts) == 1 and (int(counts[0]) == 1 or not effort.thorough)


def _first_look(outlook: Outlook, sequence: Sequence[int], effort: Effort) -> Layout | None:
    best, widest = None, None
    compare = effort.thorough or not settles_for_one_place(outlook)
    for nodes in domains(outlook, thorough=compare):
        widest = problem(outlook, nodes)
        for order in _orders(widest, sequence, effort):
            best = _better(best, _constructed(widest, order), effort)
        if not compare and best is not None and not best.missing.any():
            return best
    if best is not None and widest is not None and _split(best):
        # A component at a time where there is little time: sorted, groups of one component stand together.
        order = sequence if effort.orders else sorted(sequence)
        best = _better(best, _constructed(widest, order, by_zone=True), effort)
    if best is not None and widest is not None and best.missing.any():
        for order in _every_order(widest, sequence):
            best = _better(best, _constructed(widest, order), effort)
        best = _better(best, _constructed(widest, hardest_first(widest), tightest=True), effort)
    return best


def _orders(problem: Problem, sequence: Sequence[int], effort: Effort) -> list[Sequence[int]]:
    if len(problem.counts) == 1:
        return [sequence]
    if effort.orders:
        return _every_order(problem, sequence)
    return [sequence]


def _every_order(problem: Problem, sequence: Sequence[int]) -> list[Sequence[int]]:
    return [sequence, sequence[::-1], sorted(sequence), hardest_first(problem)]


def _better(best: Layout | None, layout: Layout, effort: Effort) -> Layout:
    if effort.steps:
        descend(layout, Budget(min(_FIRST_LOOK, effort.steps)))
    return layout if best is None or _rank(layout) < _rank(best) else best


def _rank(layout: Layout) -> tuple[int, float]:
    return int(layout.missing.sum()), round(layout.cost(), 9)


def _may_hold_more(layout: Layout) -> bool:
    """Whether what is missing would fit if room were divisible."""
    missing = layout.missing
    if not missing.any():
        return False
    left = np.maximum(layout.room, 0.0).sum(axis=0)
    return bool((missing @ layout.problem.demand <= left + layout.problem.slack).all())


def _constructed(problem: Problem, order: Sequence[int], *, tightest: bool = False, by_zone: bool = False) -> Layout:
    layout = Layout(problem)
    if by_zone:
        construct_by_zone(layout, order)
    else:
        construct(layout, order, tightest=tightest)
    return layout


def _split(layout: Layout) -> bool:
    """Whether it is in several zones."""
    zones = layout.problem.places[0][layout.placed.any(axis=0)]
    return bool(len(zones)) and bool((zones != zones[0]).any())


def problem(outlook: Outlook, nodes: IntArray) -> Problem:
    """The outlook cut to some nodes, in an order that their names have no part in as long as they differ otherwise."""
    nodes = nodes[np.lexsort(_canonical(outlook, nodes))]
    grid, rows = outlook.pool.grid, outlook.involved
    codes = grid.codes[:, nodes]
    renumbered = np.zeros(len(outlook.crew.components), dtype=np.int64)
    renumbered[rows] = np.arange(len(rows))
    return Problem(
        nodes=nodes,
        places=codes,
        near=_near(grid, codes),
        weights=outlook.weights[np.ix_(rows, rows)],
        pull=outlook.pull(nodes)[rows] + _others(outlook, nodes),
        settled=outlook.crew.present[np.ix_(rows, nodes)],
        component=renumbered[outlook.component],
        counts=outlook.counts,
        demand=outlook.demand,
        allowed=outlook.allowed[:, nodes],
        room=outlook.room[nodes],
        slack=outlook.slack,
        node_limit=outlook.node_limit[np.ix_(rows, nodes)],
        zone_limit=outlook.zone_limit[rows],
        apart=tuple((level, renumbered[members]) for level, members in outlook.apart if np.isin(members, rows).all()),
        preference=outlook.preference[nodes],
    )


def _near(grid: Grid, codes: IntArray) -> FloatArray:
    """(K, K): `Problem.near` of nodes in canonical order, in which those of one place stand together."""
    count = codes.shape[1]
    near = np.zeros((count, count))
    for step, row in zip(grid.steps, codes, strict=True):
        bounds = np.flatnonzero(row[1:] != row[:-1]) + 1
        if len(bounds) == count - 1:
            near[np.diag_indices(count)] += step if count > 1 else 0.0
        elif len(bounds):
            for start, end in zip([0, *bounds], [*bounds, count], strict=True):
                near[start:end, start:end] += step
    return near


def _canonical(outlook: Outlook, nodes: IntArray) -> tuple[FloatArray | IntArray, ...]:
    """Sort keys, the last one first."""
    crew, grid = outlook.crew, outlook.pool.grid
    keys: list[FloatArray | IntArray] = [nodes]
    keys += list(crew.present[np.ix_(outlook.involved, nodes)])
    keys += list(outlook.room[nodes].T)
    keys.append((outlook.allowed[:, nodes] * (1 + np.arange(len(outlook.groups)))[:, None] ** 2).sum(axis=0))
    keys.append(-outlook.preference[nodes])
    keys += [grid.codes[level][nodes] for level in range(grid.last - 1, -1, -1)]
    return tuple(keys)


def _others(outlook: Outlook, nodes: IntArray) -> FloatArray:
    """(C, K): cost towards executors that run on nodes which are not looked at, of the components involved."""
    grid, present = outlook.pool.grid, outlook.crew.present[outlook.involved]
    result = np.zeros((len(present), len(nodes)))
    if not present.any():
        return result
    there = present.astype(np.float64)
    there[:, nodes] = 0.0
    total = there.sum(axis=1)
    for level, step in enumerate(grid.steps):
        same = np.stack([np.bincount(grid.codes[level], weights=row, minlength=grid.sizes[level]) for row in there])
        result += step * (total[:, None] - same[:, grid.codes[level][nodes]])
    partners: FloatArray = outlook.weights[np.ix_(outlook.involved, outlook.involved)] @ result
    return partners
