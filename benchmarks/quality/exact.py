"""The least possible cost of a small instance, by mixed-integer programming (HiGHS).

Counts per (component, node) in unary: u[c, k, p] says that place p holds at least k executors of component c. The
pairs of two components that share a place are Σ u·u, with one variable for each product.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np

from ballast.model import Resources
from benchmarks.quality.limits import limit, separate
from benchmarks.quality.model import INFEASIBLE, SOLVED, Model, solved
from tests.vectors.storm_instance import Instance


def least_cost(instance: Instance, *, seconds: float) -> float | None:
    """The optimum, None when it was not proved within the time."""
    model = Model()
    counts = _assignment(model, instance)
    constant = _savings(model, instance, counts)
    _pull(model, instance, counts)
    result = solved(model, seconds)
    return constant + float(result.fun) if result.status == SOLVED else None


def feasible(instance: Instance, *, seconds: float) -> bool | None:
    """Whether there is a placement of every executor; None when that was not decided within the time."""
    model = Model()
    _assignment(model, instance)
    return {SOLVED: True, INFEASIBLE: False}.get(solved(model, seconds).status)


_Counts = dict[tuple[str, str], dict[int, float]]
"""(component, node): the linear expression of its count."""


def _assignment(model: Model, instance: Instance) -> _Counts:
    sizes: dict[tuple[str, Resources], int] = defaultdict(int)
    for executor in instance.executors:
        sizes[executor.component, executor.requests] += 1
    counts: _Counts = defaultdict(dict)
    used: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for (component, requests), size in sizes.items():
        total: dict[int, float] = {}
        for node in instance.snapshot.nodes:
            variable = model.variable(integral=True)
            total[variable] = 1.0
            counts[component, node.name][variable] = 1.0
            for kind, amount in _amounts(requests).items():
                used[node.name, kind][variable] = amount
        model.row(total, size, size)
    for node in instance.snapshot.nodes:
        free = _amounts(node.free)
        for kind in ("cpu", "memory", "gpu"):
            model.row(used[node.name, kind], 0.0, max(0.0, free.get(kind, 0.0)) + 1e-6)
    by_topology = {(instance.snapshot.topologies[0].key, *place): terms for place, terms in counts.items()}
    limit(model, instance.snapshot, instance.policy, by_topology)
    separate(model, instance.snapshot, by_topology)
    return counts


def _amounts(resources: Resources) -> dict[str, float]:
    """In cores and gibibytes, so that the solver's tolerances mean the same for all."""
    extended = dict(resources.extended)
    memory = resources.memory_bytes / (1 << 30)
    return {"cpu": resources.cpu_cores, "memory": memory, "gpu": extended.get("gpu", 0.0)}


def _savings(model: Model, instance: Instance, counts: _Counts) -> float:
    """Add what sharing a place saves; returns the cost of sharing none."""
    levels = instance.policy.levels.ordered
    steps = [
        here.distance - nearer for here, nearer in zip(levels, [*(x.distance for x in levels[1:]), 0.0], strict=True)
    ]
    sizes: dict[str, int] = defaultdict(int)
    for executor in instance.executors:
        sizes[executor.component] += 1
    pairs: dict[tuple[str, str], float] = defaultdict(float)
    for stream in instance.snapshot.topologies[0].streams:
        rate = stream.bytes_per_second or 0.0
        if stream.source not in sizes or stream.target not in sizes:
            continue
        pairs[min(stream.source, stream.target), max(stream.source, stream.target)] += rate
    for level, step in enumerate(steps):
        if step <= 0:
            continue
        places: dict[tuple[str | None, ...], list[str]] = defaultdict(list)
        for node in instance.snapshot.nodes:
            places[node.location[: level + 1]].append(node.name)
        for members in places.values():
            unary = {name: _unary(model, counts, name, size, members) for name, size in sizes.items()}
            for (one, other), rate in pairs.items():
                _products(model, unary[one], unary[other], -step * rate / (sizes[one] * sizes[other]))
    return sum(rate * levels[0].distance for rate in pairs.values())


def _pull(model: Model, instance: Instance, counts: _Counts) -> None:
    """Add what the traffic of each executor with the fixed ends costs on each node."""
    locations = {node.name: node.location for node in instance.snapshot.nodes}
    for component, anchor, rate in instance.pulls():
        for node, location in locations.items():
            for variable in counts[component, node]:
                model.costs[variable] += rate * instance.policy.levels.distance(location, anchor)


def _unary(model: Model, counts: _Counts, component: str, size: int, nodes: list[str]) -> list[int]:
    steps = [model.variable(integral=True) for _ in range(size)]
    for step in steps:
        model.row({step: 1.0}, 0.0, 1.0)
    for larger, smaller in pairwise(steps):
        model.row({larger: 1.0, smaller: -1.0}, 0.0, np.inf)
    terms = dict.fromkeys(steps, 1.0)
    for node in nodes:
        terms.update({variable: -value for variable, value in counts[component, node].items()})
    model.row(terms, 0.0, 0.0)
    return steps


def _products(model: Model, ones: list[int], others: list[int], cost: float) -> None:
    if ones is others:
        # Of n executors n² pairs, themselves included: 1 + 3 + … + (2n − 1).
        for position, one in enumerate(ones):
            model.costs[one] += cost * (2 * position + 1)
        return
    for one in ones:
        for other in others:
            both = model.variable(cost, integral=False)
            model.row({both: 1.0, one: -1.0}, -np.inf, 0.0)
            model.row({both: 1.0, other: -1.0}, -np.inf, 0.0)
