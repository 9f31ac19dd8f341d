"""A lower bound of an instance's cost: what each executor must be apart from, whatever the others do."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ballast.model import Executor, Resources
from tests.vectors.storm_instance import Instance


def lower_bound(instance: Instance) -> float:
    """Half the sum over executors of the least cost towards their partners.

    Next to an executor, a place holds at most as many partners as fit, by the smallest requests, into what the place
    has; those that don't fit are one level farther off at least.
    """
    nodes = instance.snapshot.nodes
    levels = instance.policy.levels.ordered
    partners = _partners(instance)
    kinds = {(e.component, e.requests): e for e in instance.executors}
    tally: dict[tuple[str, Resources], int] = defaultdict(int)
    for executor in instance.executors:
        tally[executor.component, executor.requests] += 1
    total = 0.0
    for key, executor in kinds.items():
        cost = 0.0
        for level in range(len(levels)):
            nearer = levels[level + 1].distance if level + 1 < len(levels) else 0.0
            places: dict[tuple[str | None, ...], Resources] = {}
            for node in nodes:
                prefix = node.location[: level + 1]
                places[prefix] = places.get(prefix, Resources()).plus(_positive(node.free))
            missing = min((_left_out(executor, partners, instance, room) for room in places.values()), default=0.0)
            cost += (levels[level].distance - nearer) * missing
        total += tally[key] * cost
    return total / 2.0


def _positive(resources: Resources) -> Resources:
    cpu, memory, pods = resources.cpu_cores, resources.memory_bytes, resources.pods
    return Resources(max(0.0, cpu), max(0.0, memory), max(0.0, pods), extended=resources.extended)


def _partners(instance: Instance) -> dict[str, dict[str, float]]:
    """Weight of a pair, by component and partner component."""
    sizes: dict[str, int] = defaultdict(int)
    for executor in instance.executors:
        sizes[executor.component] += 1
    weights: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for stream in instance.snapshot.topologies[0].streams:
        each = (stream.bytes_per_second or 0.0) / (sizes[stream.source] * sizes[stream.target])
        weights[stream.source][stream.target] += each
        weights[stream.target][stream.source] += each
    return weights


def _left_out(executor: Executor, partners: dict[str, dict[str, float]], instance: Instance, room: Resources) -> float:
    """Least weight of partners that are not in a place of this room with the executor; inf when it does not fit."""
    if not executor.requests.fits_in(room):
        return float("inf")
    left = room.minus(executor.requests)
    weights = partners.get(executor.component, {})
    candidates = [(weights[e.component], e.requests) for e in instance.executors if weights.get(e.component)]
    if not candidates:
        return 0.0
    everything = sum(weight for weight, _ in candidates)
    return everything - min(
        _best_sum(candidates, [request.cpu_cores for _, request in candidates], left.cpu_cores),
        _best_sum(candidates, [request.memory_bytes for _, request in candidates], left.memory_bytes),
    )


def _best_sum(candidates: list[tuple[float, Resources]], amounts: list[float], room: float) -> float:
    """Largest weight that fits by one resource, the last one in part."""
    weights = np.array([weight for weight, _ in candidates])
    sizes = np.maximum(np.array(amounts), 1e-12)
    order = np.argsort(-weights / sizes, kind="stable")
    filled = np.cumsum(sizes[order])
    whole = filled <= room + 1e-9
    best = float(weights[order][whole].sum())
    if not whole.all():
        first = int(np.argmin(whole))
        before = float(filled[first - 1]) if first else 0.0
        best += float(weights[order][first]) * max(0.0, room - before) / float(sizes[order][first])
    return best
