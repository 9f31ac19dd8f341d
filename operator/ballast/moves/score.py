"""One score per node: the largest of its weighted resources, in percent of its own capacity.

The ledger (`projected`) adds what the metrics do not show yet: load on its way from one node to another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite

from ballast.model import Executor, Move, Node, NodeUsage, Phase, Policy, Snapshot, Weights
from ballast.moves.loads import Loads, Profile, profile_of


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
    values_of = {node.name: _metrics(node.usage, weighted) for node in pool}
    present = {signal for values in values_of.values() for signal in values}
    by_node: dict[str, float] = {}
    for name, values in values_of.items():
        if present and present <= values.keys():
            by_node[name] = 100.0 * max(weighted[signal] * ratio for signal, ratio in values.items())
    return Scores(by_node, tuple(sorted(weighted.keys() - present)))


def _weights(weights: Weights) -> dict[str, float]:
    return {
        "cpu": weights.cpu,
        "memory": weights.memory,
        "networkReceive": weights.network_receive,
        "networkTransmit": weights.network_transmit,
    }


def _metrics(usage: NodeUsage | None, weighted: Mapping[str, float]) -> dict[str, float]:
    if usage is None:
        return {}
    ratios = {
        "cpu": usage.cpu_ratio,
        "memory": usage.memory_ratio,
        "networkReceive": usage.network_receive_ratio,
        "networkTransmit": usage.network_transmit_ratio,
    }
    return {name: ratio for name, ratio in ratios.items() if name in weighted and ratio is not None and isfinite(ratio)}


def astray(snapshot: Snapshot, policy: Policy, loads: Loads) -> dict[str, float]:
    """By node, points of score by which its executors use more (or less) than their applications do in the mean."""
    points = points_per_core(snapshot, policy)
    return {node: cores * points[node] for node, cores in loads.astray(snapshot.executors).items()}


def foreign(snapshot: Snapshot, policy: Policy) -> dict[str, float]:
    """By node, points of its measured score that its executors don't make."""
    points = points_per_core(snapshot, policy)
    used: dict[str, list[float]] = defaultdict(list)
    for executor in snapshot.executors:
        if executor.node in points and executor.usage is not None and executor.usage.cpu_cores is not None:
            used[executor.node].append(executor.usage.cpu_cores * points[executor.node])
    return {name: max(0.0, score - fsum(used[name])) for name, score in measured(snapshot, policy).by_node.items()}


def projected(snapshot: Snapshot, policy: Policy, loads: Loads, measured: Mapping[str, float]) -> dict[str, float]:
    """Measured scores (percent) plus what is arriving minus what is leaving.

    The CPU weight applies as it does to the measured score; a node without a measured score has no projected one.
    """
    points = points_per_core(snapshot, policy)
    cores = _unseen_cores(snapshot, policy, loads)
    return {name: max(0.0, score + cores.get(name, 0.0) * points.get(name, 0.0)) for name, score in measured.items()}


def _unseen_cores(snapshot: Snapshot, policy: Policy, loads: Loads) -> dict[str, float]:
    cores: dict[str, float] = defaultdict(float)
    now, window = snapshot.taken_at, policy.window_seconds
    # A move by hand predicts nothing that counts: its replacement is a newcomer as any other.
    counted = {move.replacement_uid for move in snapshot.moves if _reaches(move) and not move.by_hand}
    whole = {node.name: node.allocatable.cpu_cores for node in snapshot.nodes}
    for move in snapshot.moves:
        _count_move(cores, move, now=now, window_seconds=window)
    newcomers: dict[Profile, list[tuple[Executor, float]]] = defaultdict(list)
    for executor in snapshot.executors:
        if executor.uid not in counted:
            unseen = _newcomers_cores(executor, loads, now=now, window_seconds=window)
            # An executor that claims more task slots than its node has cores still brings no more than the whole node.
            expected = min(unseen, whole.get(executor.node or "", 0.0))
            if expected:
                newcomers[profile_of(executor)].append((executor, expected))
    for profile, members in newcomers.items():
        share = _counted_share(members, loads.used_cores.get(profile, 0.0))
        for executor, expected in members:
            cores[executor.node or ""] += expected * share
    return cores


def _counted_share(newcomers: Sequence[tuple[Executor, float]], used_cores: float) -> float:
    """Newcomers of one profile, with the cores that each is expected to use: how much of that counts.

    Together they bring no more than they request, or than the profile's measured executors use (`used_cores`).
    Otherwise pods that request nothing could make any node look full, and be created again and again.
    """
    requested = fsum(executor.requests.cpu_cores for executor, _ in newcomers)
    return min(1.0, max(requested, used_cores) / fsum(expected for _, expected in newcomers))


def _count_move(cores: dict[str, float], move: Move, *, now: float, window_seconds: float) -> None:
    """The source shows the loss once its executor has gone, the target the gain once the replacement runs."""
    if _reaches(move):
        cores[move.target] += move.load_cores * _unseen_share(move.arrived_at, now, window_seconds)
    left_at = move.arrived_at if move.left_at is None else move.left_at
    if move.phase.traveling or left_at is not None:
        cores[move.source] -= move.load_cores * _unseen_share(left_at, now, window_seconds)


def _reaches(move: Move) -> bool:
    """Whether its load counts for its target; what became of one that failed is an executor like any other."""
    return move.phase.traveling or move.arrived_at is not None


def _unseen_share(since: float | None, now: float, window_seconds: float) -> float:
    """Of what has happened then; all of what has not happened yet, or only by a clock that is ahead."""
    return 1.0 if since is None else min(1.0, max(0.0, 1.0 - (now - since) / window_seconds))


STARTING_SECONDS = 900.0
"""After which a pod that does not run yet brings no load any more: its image may never come."""


def _newcomers_cores(executor: Executor, loads: Loads, *, now: float, window_seconds: float) -> float:
    if executor.node is None or executor.phase not in (Phase.PENDING, Phase.RUNNING):
        return 0.0
    if executor.phase is Phase.PENDING and now - executor.created_at > STARTING_SECONDS:
        return 0.0
    unseen = _unseen_share(executor.running_since, now, window_seconds)
    return loads.expected(executor) * unseen if unseen > 0 else 0.0
