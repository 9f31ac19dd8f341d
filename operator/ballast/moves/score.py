"""One score per node: the largest of its weighted resources, in percent of its own capacity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum, isfinite

from ballast.model import Executor, Node, NodeUsage, Phase, Policy, Snapshot, Weights


@dataclass(frozen=True, slots=True)
class Scores:
    """Measured scores of a pool."""

    by_node: Mapping[str, float]
    """Percent, 0…100 and above; nodes without fresh metrics are absent."""
    dropped: tuple[str, ...]
    """Weighted signals that no node of the pool had."""


def measured(snapshot: Snapshot, policy: Policy) -> Scores:
    """The scores of the pool; no node has one in a pass without metrics."""
    return scores(snapshot.nodes if snapshot.metrics.available else (), policy.weights)


def points_per_core(snapshot: Snapshot, policy: Policy) -> dict[str, float]:
    """By node, the points of score that a core of load makes there."""
    return {node.name: policy.weights.points_per_core(node.allocatable.cpu_cores) for node in snapshot.nodes}


def scores(nodes: Iterable[Node], weights: Weights) -> Scores:
    """The score of each node.

    A weighted signal that no node has drops out for the pool. A node that lacks a signal which others have is
    stale: its score would not be comparable.
    """
    pool = list(nodes)
    weighted = {name: weight for name, weight in _weights(weights).items() if weight > 0}
    figures_of = {node.name: _figures(node.usage, weighted) for node in pool}
    present = {signal for figures in figures_of.values() for signal in figures}
    by_node: dict[str, float] = {}
    for name, figures in figures_of.items():
        if present and present <= figures.keys():
            by_node[name] = 100.0 * max(weighted[signal] * ratio for signal, ratio in figures.items())
    return Scores(by_node, tuple(sorted(weighted.keys() - present)))


def _weights(weights: Weights) -> dict[str, float]:
    return {
        "cpu": weights.cpu,
        "memory": weights.memory,
        "networkReceive": weights.network_receive,
        "networkTransmit": weights.network_transmit,
    }


def _figures(usage: NodeUsage | None, weighted: Mapping[str, float]) -> dict[str, float]:
    if usage is None:
        return {}
    ratios = {
        "cpu": usage.cpu_ratio,
        "memory": usage.memory_ratio,
        "networkReceive": usage.network_receive_ratio,
        "networkTransmit": usage.network_transmit_ratio,
    }
    return {name: ratio for name, ratio in ratios.items() if name in weighted and ratio is not None and isfinite(ratio)}


# The load that travels with an executor.
#
# The driver hands tasks to whichever core is free, so what a move takes along is the executor's cores times its
# application's mean usage per core, not what this one executor happened to use.

Profile = tuple[str, str, str]
"""Namespace, application, resource profile."""


def profile_of(executor: Executor) -> Profile:
    return (executor.namespace, executor.application, executor.resource_profile)


@dataclass(frozen=True, slots=True)
class Loads:
    """Mean CPU use per core of each application and resource profile."""

    cores_per_core: Mapping[Profile, float]

    def known(self, executor: Executor) -> float | None:
        """CPU cores that the executor would use anywhere; None when its application has no fresh metrics."""
        mean = self.cores_per_core.get(profile_of(executor))
        return None if mean is None else mean * executor.cores

    def expected(self, executor: Executor) -> float:
        """The same for one that may be new: without metrics, what it requests."""
        known = self.known(executor)
        return executor.requests.cpu_cores if known is None else known


def loads(executors: Iterable[Executor]) -> Loads:
    """Means over the running executors with metrics; exact sums, so that their order does not matter."""
    used: dict[Profile, list[float]] = defaultdict(list)
    cores: dict[Profile, list[float]] = defaultdict(list)
    for executor in executors:
        usage = executor.usage
        if executor.phase is Phase.RUNNING and usage is not None and usage.cpu_cores is not None and executor.cores > 0:
            used[profile_of(executor)].append(usage.cpu_cores)
            cores[profile_of(executor)].append(executor.cores)
    return Loads({key: fsum(amounts) / fsum(cores[key]) for key, amounts in used.items()})
