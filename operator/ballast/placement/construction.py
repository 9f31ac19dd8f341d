"""A first layout: one executor after the other to where it costs least, in the order of proximity needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.problem import Layout, Problem

_TIE = 1e-7
"""How much preference weighs beside the largest possible difference in cost."""


def construct(layout: Layout, sequence: Sequence[int], *, tightest: bool = False) -> None:
    """Place groups in the order of `sequence` (one entry per executor); those that fit nowhere stay missing.

    `tightest`: between equals, and before cost, the node that is left with the least room, which wastes least.
    """
    scale = layout.problem.scale
    full: set[int] = set()
    position = 0
    while position < len(sequence):
        group = sequence[position]
        run = _run_length(sequence, position)
        position += run
        if group not in full and not _place_run(layout, group, run, scale=scale, tightest=tightest):
            full.add(group)


def _run_length(sequence: Sequence[int], position: int) -> int:
    end = position + 1
    while end < len(sequence) and sequence[end] == sequence[position]:
        end += 1
    return end - position


def _place_run(layout: Layout, group: int, run: int, *, scale: float, tightest: bool) -> bool:
    component = int(layout.problem.component[group])
    attracts = layout.problem.weights[component, component] > 0
    while run:
        node = best_node(layout, group, scale=scale, tightest=tightest)
        if node is None:
            return False
        # An executor that draws its own kind stays the best place for the next one until it is full.
        count = min(run, layout.more_at(group, node)) if attracts else 1
        layout.add(group, node, count=count)
        run -= count
    return True


def best_node(layout: Layout, group: int, *, scale: float, tightest: bool = False) -> int | None:
    """The node that costs least for one more of the group, None when none can take it."""
    candidates = np.flatnonzero(layout.open(group))
    if not len(candidates):
        return None
    problem = layout.problem
    if tightest:
        value = -left_over(layout, group, candidates)
    else:
        value = layout.benefit[int(problem.component[group])][candidates]
        liking = problem.preference[candidates] + left_over(layout, group, candidates)
        value = value + (_TIE * scale) * liking
    return int(candidates[int(np.argmax(value))])


def left_over(layout: Layout, group: int, candidates: IntArray) -> FloatArray:
    """Share of the largest node's room that would remain, summed over the kinds that the set asks for."""
    problem = layout.problem
    asked = problem.asked
    remaining = layout.room[candidates][:, asked] - problem.demand[group][asked]
    result: FloatArray = np.minimum(remaining / problem.largest_room, 1.0).sum(axis=1)
    return result


def hardest_first(problem: Problem) -> list[int]:
    """A sequence that places what fits in few places before what fits in many."""
    ease = [_ease(problem, group) for group in range(len(problem.counts))]
    order = sorted(range(len(problem.counts)), key=lambda group: (ease[group], group))
    return [group for group in order for _ in range(int(problem.counts[group]))]


def _ease(problem: Problem, group: int) -> float:
    demand = problem.demand[group]
    total = np.maximum(np.where(problem.allowed[group][:, None], problem.room, 0.0).sum(axis=0), 1e-9)
    return -float((demand / total).max(initial=0.0))
