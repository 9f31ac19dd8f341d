"""From an outlook to a layout: look where it is best first, wider when that does not hold the set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from ballast.placement.arrays import FloatArray, IntArray
from ballast.placement.construction import construct, hardest_first
from ballast.placement.domain import domains, settles_for_one_place
from ballast.placement.outlook import Outlook
from ballast.placement.problem import Layout, Problem
from ballast.placement.refinement import Budget, descend, refine

_FIRST_LOOK = 40
"""Steps of descent before places are compared."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to look. Counted in steps, not seconds, so that the same question always has the same answer."""

    steps: int = 200
    """Steps of refinement for each set that is placed together."""
    thorough: bool = True
    """Compare several places instead of taking the first that holds the set."""
    seed: int = 0


def search(outlook: Outlook, sequence: Sequence[int], effort: Effort) -> Layout | None:
    """The best layout found; `sequence` are positions in the outlook's groups, one per executor.

    None when no node can take any of them. Executors may be missing from it when the pool does not hold them.
    """
    best: Layout | None = None
    split = not settles_for_one_place(outlook)
    for nodes in domains(outlook, thorough=effort.thorough or split):
        for layout in _starts(problem(outlook, nodes), outlook, sequence, thorough=effort.thorough):
            descend(layout, Budget(min(_FIRST_LOOK, effort.steps)))
            if best is None or _rank(layout) < _rank(best):
                best = layout
        if best is not None and not best.missing.any() and not effort.thorough and not split:
            break
    if best is None or (len(best.problem.counts) == 1 and not effort.thorough):
        return best
    # Seeded by the caller: the same question always has the same answer.
    return refine(best, effort.steps, Random(effort.seed))  # noqa: S311


def _rank(layout: Layout) -> tuple[int, float]:
    return int(layout.missing.sum()), round(layout.cost(), 9)


def _starts(problem: Problem, outlook: Outlook, sequence: Sequence[int], *, thorough: bool) -> Iterator[Layout]:
    """First layouts: in the order given; then, if that left some out or when `thorough`, in other orders."""
    layout = _constructed(problem, outlook, sequence)
    yield layout
    if not layout.missing.any() and not (thorough and len(problem.counts) > 1):
        return
    for order in (sequence[::-1], sorted(sequence), hardest_first(problem)):
        yield _constructed(problem, outlook, order)
    if layout.missing.any():
        yield _constructed(problem, outlook, hardest_first(problem), tightest=True)


def _constructed(problem: Problem, outlook: Outlook, order: Sequence[int], *, tightest: bool = False) -> Layout:
    layout = _started(problem, outlook)
    construct(layout, _remaining(order, layout), tightest=tightest)
    return layout


def _started(problem: Problem, outlook: Outlook) -> Layout:
    """With the places that are still vacant taken first, and kept."""
    layout = Layout(problem)
    vacancies = outlook.crew.vacancies[:, problem.nodes].copy()
    for group in range(len(problem.counts)):
        component = int(problem.component[group])
        for node in np.flatnonzero(vacancies[component]):
            # Capacity shrinks as places are taken: it is asked for anew each time.
            room = int(layout.capacity(group)[node])
            count = min(int(vacancies[component, node]), int(layout.missing[group]), room)
            if count > 0:
                layout.add(group, int(node), count)
                layout.held[group, node] += count
                vacancies[component, node] -= count
    return layout


def _remaining(sequence: Sequence[int], layout: Layout) -> list[int]:
    """The sequence without the executors that have a place already (the first ones of each group)."""
    done = layout.placed.sum(axis=1)
    result: list[int] = []
    for group in sequence:
        if done[group] > 0:
            done[group] -= 1
        else:
            result.append(group)
    return result


def problem(outlook: Outlook, nodes: IntArray) -> Problem:
    """The outlook cut to some nodes, in an order that their names have no part in as long as they differ otherwise."""
    nodes = nodes[np.lexsort(_canonical(outlook, nodes))]
    grid = outlook.pool.grid
    codes = grid.codes[:, nodes]
    differs = codes[:, :, None] != codes[:, None, :]
    distance = np.tensordot(grid.steps, differs, axes=1)
    farthest = float(distance.max(initial=0.0))
    return Problem(
        nodes=nodes,
        places=codes,
        near=farthest - distance,
        weights=outlook.weights,
        pull=outlook.pull()[:, nodes] + _others(outlook, nodes),
        settled=outlook.crew.present[:, nodes],
        component=outlook.component,
        counts=outlook.counts,
        demand=outlook.demand,
        allowed=outlook.allowed[:, nodes],
        room=outlook.room[nodes],
        slack=outlook.slack,
        node_limit=outlook.node_limit[:, nodes],
        zone_limit=outlook.zone_limit,
        apart=outlook.apart,
        preference=outlook.preference[nodes],
    )


def _canonical(outlook: Outlook, nodes: IntArray) -> tuple[FloatArray | IntArray, ...]:
    """Sort keys, the last one first."""
    crew, grid = outlook.crew, outlook.pool.grid
    keys: list[FloatArray | IntArray] = [nodes]
    keys += list(crew.vacancies[:, nodes])
    keys += list(crew.present[:, nodes])
    keys += list(outlook.room[nodes].T)
    keys.append((outlook.allowed[:, nodes] * (1 + np.arange(len(outlook.groups)))[:, None] ** 2).sum(axis=0))
    keys.append(-outlook.preference[nodes])
    keys += [grid.codes[level][nodes] for level in range(grid.last - 1, -1, -1)]
    return tuple(keys)


def _others(outlook: Outlook, nodes: IntArray) -> FloatArray:
    """(C, K): cost towards executors that run on nodes which are not looked at."""
    grid = outlook.pool.grid
    there = outlook.crew.present.astype(np.float64)
    there[:, nodes] = 0.0
    result = np.zeros((len(there), len(nodes)))
    if not there.any():
        return result
    total = there.sum(axis=1)
    for level, step in enumerate(grid.steps):
        same = np.stack([np.bincount(grid.codes[level], weights=row, minlength=grid.sizes[level]) for row in there])
        result += step * (total[:, None] - same[:, grid.codes[level][nodes]])
    partners: FloatArray = outlook.weights @ result
    return partners
