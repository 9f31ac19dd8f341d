"""Nodes that make applications slow, and executors that are slow because they have more data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ballast.model import Executor, Phase, Policy, Snapshot
from ballast.moves.evidence import SKEWED_BYTES_RATIO, TaskTimes
from ballast.moves.score import measured


@dataclass(frozen=True, slots=True)
class SlowNode:
    node: str
    slowness: float
    """Median of its slow executors: seconds per task ÷ those of their application's fastest quarter, at equal bytes."""
    executors: int
    """How many are slow."""
    score: float | None
    pressure_ratio: float | None


@dataclass(frozen=True, slots=True)
class Skewed:
    """An executor whose tasks take longer because they have more bytes: a move would take the data along."""

    executor: str
    node: str
    slowness: float
    bytes_ratio: float


@dataclass(frozen=True, slots=True)
class Slowness:
    measured_executors: int
    nodes: tuple[SlowNode, ...]
    """The slowest first."""
    skewed: tuple[Skewed, ...]


def slowness(snapshot: Snapshot, policy: Policy) -> Slowness:
    """By the rule that moves go by: slow at equal bytes is `minSlowness` times the fastest quarter's seconds."""
    scores = measured(snapshot, policy).by_node
    nodes = {node.name: node for node in snapshot.nodes}
    times = TaskTimes(snapshot.executors, scores)
    slow: dict[str, list[float]] = defaultdict(list)
    skewed, known = [], 0
    for executor in snapshot.executors:
        if executor.phase is not Phase.RUNNING or executor.node not in nodes:
            continue
        found = times.evidence(executor, None, pressure_ratio=None)
        if found.slowness is None:
            continue
        known += 1
        ratio = found.skew if found.skew is not None else 1.0
        if found.slow(policy.moves):
            slow[executor.node].append(found.slowness / max(1.0, ratio))
        elif ratio > SKEWED_BYTES_RATIO and found.slowness >= policy.moves.min_slowness:
            skewed.append(Skewed(executor.key, executor.node, found.slowness, ratio))
    listed = []
    for name, values in slow.items():
        usage = nodes[name].usage
        pressure = usage.pressure_ratio if usage else None
        listed.append(SlowNode(name, median(values), len(values), scores.get(name), pressure))
    return Slowness(
        known,
        tuple(sorted(listed, key=lambda each: (-each.slowness, each.node))),
        tuple(sorted(skewed, key=lambda each: (-each.slowness, each.executor))),
    )


def running(executors: Sequence[Executor]) -> list[Executor]:
    """Those that are bound and run, or will."""
    return [each for each in executors if each.node is not None and each.phase in (Phase.RUNNING, Phase.PENDING)]
