"""Small placement problems drawn at random, and what is true of them, worked out the long way."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.problem import Layout, Problem

DISTANCES = (10.0, 3.0, 1.0)
"""Between zones, racks and nodes."""
SLACK = np.array([1e-6, 1e-6])


def a_problem(seed: int, **changes: Any) -> Problem:
    """Six nodes in two zones and four racks, two components, the first of them with two templates.

    The second kind of room may be overdrawn; the second component asks for none of it.
    """
    random = default_rng(seed)
    places = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 3], [0, 1, 2, 3, 4, 5]])
    distance = distances(places)
    drawn: dict[str, Any] = {
        "nodes": np.arange(6),
        "places": places,
        "near": distance.max() - distance,
        "weights": _weights(random),
        "pull": random.uniform(0.0, 60.0, (2, 6)),
        "settled": random.integers(0, 2, (2, 6)),
        "component": np.array([0, 0, 1]),
        "counts": random.integers(3, 7, 3),
        "demand": np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 0.0]]),
        "allowed": random.random((3, 6)) < 0.9,
        "room": np.stack([random.integers(2, 11, 6), random.integers(-1, 11, 6)], axis=1).astype(np.float64),
        "slack": SLACK,
        "node_limit": random.integers(1, 6, (2, 6)),
        "zone_limit": random.integers(4, 10, (2, 2)),
        "apart": (),
        "preference": random.random(6),
    }
    return Problem(**{**drawn, **changes})


def kept_apart(seed: int) -> Problem:
    """The same where the two components share no node, rack or zone."""
    return a_problem(seed, settled=np.zeros((2, 6), dtype=np.int64), apart=((seed % 3, np.array([0, 1])),))


def distances(places: IntArray) -> FloatArray:
    """Between every two nodes: of the farthest level in which they differ."""
    result = np.zeros((places.shape[1], places.shape[1]))
    for level in reversed(range(len(places))):
        result[places[level][:, None] != places[level][None, :]] = DISTANCES[level]
    return result


def _weights(random: Generator) -> FloatArray:
    drawn = random.uniform(0.0, 3.0, (2, 2)) * random.integers(0, 2, (2, 2))
    return drawn + drawn.T


def filled(problem: Problem, seed: int) -> Layout:
    """Executors put at random where they may go."""
    random, layout = default_rng(seed), Layout(problem)
    for group in random.permutation(np.repeat(np.arange(len(problem.counts)), problem.counts)):
        nodes = np.flatnonzero(layout.open(int(group)))
        if len(nodes):
            layout.add(int(group), int(random.choice(nodes)))
    return layout


def cost(problem: Problem, placed: IntArray) -> float:
    """Σ weight × distance over pairs with at least one that was placed, and the pull of each of those."""
    apart, new = distances(problem.places), _by_component(problem, placed)
    ends = [(c, k, True) for c, k in np.argwhere(new) for _ in range(new[c, k])]
    ends += [(c, k, False) for c, k in np.argwhere(problem.settled) for _ in range(problem.settled[c, k])]
    pairs = (
        float(problem.weights[one[0], other[0]] * apart[one[1], other[1]])
        for one, other in combinations(ends, 2)
        if one[2] or other[2]
    )
    return sum(pairs) + float((problem.pull * new).sum())


def valid(problem: Problem, placed: IntArray) -> bool:
    """Whether all limits hold."""
    new = _by_component(problem, placed)
    used = placed.T @ problem.demand
    return bool(
        (placed >= 0).all()
        and not placed[~problem.allowed].any()
        and ((used <= problem.room + problem.slack) | (used == 0)).all()
        and (new <= problem.node_limit).all()
        and all((new[:, problem.places[0] == zone].sum(axis=1) <= problem.zone_limit[:, zone]).all() for zone in (0, 1))
        and all(
            _keeps_apart(problem.places[level], (new + problem.settled)[members]) for level, members in problem.apart
        )
    )


def _keeps_apart(places: IntArray, present: IntArray) -> bool:
    return all((present[:, places == place].any(axis=1)).sum() <= 1 for place in set(places.tolist()))


def _by_component(problem: Problem, placed: IntArray) -> IntArray:
    new = np.zeros_like(problem.settled)
    np.add.at(new, problem.component, placed)
    return new


def shifted(placed: IntArray, *steps: tuple[int, int, int, int]) -> IntArray:
    """With so many of a group taken from one node to another: group, from, to, count."""
    after = placed.copy()
    for group, source, target, count in steps:
        after[group, source] -= count
        after[group, target] += count
    return after
