"""Recordings: short ones by hand, and what a simulated run would have left in a history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ballast.model import Memory, Phase, Plan, Policy, Snapshot
from ballast.model.arrays import FloatArray
from ballast.planner.plan import plan
from ballast.simulation.engine import EPOCH, simulate
from ballast.simulation.recording import RecordedExecutor, RecordedNode, Recording
from ballast.simulation.scenario import Scenario
from ballast.simulation.trace import Trace

GIB = float(1 << 30)


def node(name: str, cores: float = 4.0) -> RecordedNode:
    return RecordedNode(name, cores, 16 * GIB, cores)


def executor(number: int, at: int, first: int = 0, last: int = 9, **changes: Any) -> RecordedExecutor:
    """Of the application `app`, on the node of that index."""
    return replace(RecordedExecutor("team", f"clicks-exec-{number}", "app", at, first, last, 1.0, GIB), **changes)


def recording(
    executors: Iterable[RecordedExecutor] = (),
    *,
    steps: int = 10,
    nodes: tuple[RecordedNode, ...] = (node("n1"), node("n2")),
    cpu: Mapping[int, float] | None = None,
    **changes: Any,
) -> Recording:
    """Every executor uses a core, unless `cpu` says what by its number; a node what its executors use."""
    members = tuple(executors)
    executor_cpu = np.full((steps, len(members)), np.nan)
    node_cpu = np.zeros((steps, len(nodes)))
    for index, each in enumerate(members):
        used = (cpu or {}).get(int(each.name.rsplit("-", 1)[1]), 1.0)
        executor_cpu[each.first : each.last + 1, index] = used
        node_cpu[each.first : each.last + 1, each.node] += used
    settings: dict[str, Any] = {
        "pool": "streaming",
        "start": EPOCH,
        "step_seconds": 60.0,
        "nodes": nodes,
        "executors": members,
        "present": np.ones((steps, len(nodes)), dtype=bool),
        "node_cpu": node_cpu,
        "node_memory": np.full((steps, len(nodes)), GIB),
        "scores": np.full((steps, len(nodes)), np.nan),
        "executor_cpu": executor_cpu,
        "executor_memory": np.where(np.isfinite(executor_cpu), GIB, np.nan),
        "cordoned": np.zeros((steps, len(nodes)), dtype=bool),
    }
    return Recording(**{**settings, **changes})


class Witness:
    """The planner, and what it was shown."""

    def __init__(self) -> None:
        self.seen: list[Snapshot] = []

    def __call__(self, snapshot: Snapshot, policy: Policy, memory: Memory, now: float) -> tuple[Plan, Memory]:
        self.seen.append(snapshot)
        return plan(snapshot, policy, memory, now)


def recorded(scenario: Scenario, policy: Policy) -> tuple[Trace, Recording, Snapshot]:
    """A run, what a history of it would hold (what the planner was shown in the passes at its interval), and the
    snapshot that a user would have taken at the end. A history tells of executors from when they are bound.
    """
    witness = Witness()
    trace = simulate(scenario, policy, planner=witness)
    every = policy.interval_seconds
    steps = int(trace.duration_seconds / every + 1e-9) + 1
    seen = {round((each.taken_at - EPOCH) / every): each for each in witness.seen if _on_grid(each, every)}
    names = trace.nodes
    present = np.zeros((steps, len(names)), dtype=bool)
    cordoned = np.zeros((steps, len(names)), dtype=bool)
    node_cpu, memory, executor_cpu = (np.full((steps, len(names)), np.nan) for _ in range(3))
    sizes: dict[str, RecordedNode] = {}
    found: dict[str, RecordedExecutor] = {}
    figures: dict[str, FloatArray] = {}
    arrived = {move.executor.rsplit(".", 1)[0] + f".{int(move.executor.rsplit('.', 1)[1]) + 1}" for move in trace.moves}
    for step, snapshot in sorted(seen.items()):
        for each in snapshot.nodes:
            index, size = names.index(each.name), each.allocatable
            present[step, index], cordoned[step, index] = each.ready, each.ready and not each.open
            sizes[each.name] = RecordedNode(each.name, size.cpu_cores, size.memory_bytes, size.cpu_cores)
            if each.ready and each.usage is not None and each.usage.cpu_ratio is not None:
                node_cpu[step, index] = each.usage.cpu_ratio * size.cpu_cores
        for pod in snapshot.executors:
            if pod.phase is Phase.ENDED or pod.node is None:
                continue
            known = found.get(pod.name) or RecordedExecutor(
                pod.namespace, pod.name, pod.application, names.index(pod.node), step, step, pod.requests.cpu_cores,
                pod.requests.memory_bytes, moved=pod.key in arrived,
            )  # fmt: skip
            found[pod.name] = replace(known, last=step)
            figures.setdefault(pod.name, np.full(steps, np.nan))
            if pod.usage is not None and pod.usage.cpu_cores is not None:
                figures[pod.name][step] = pod.usage.cpu_cores
    executor_cpu = np.stack([figures[name] for name in found], axis=1) if found else np.zeros((steps, 0))
    history = Recording(
        pool=scenario.name,
        start=EPOCH,
        step_seconds=every,
        nodes=tuple(sizes[name] for name in names),
        executors=tuple(found.values()),
        present=present,
        node_cpu=node_cpu,
        node_memory=memory,
        scores=np.full(node_cpu.shape, np.nan),
        executor_cpu=executor_cpu,
        executor_memory=np.full(executor_cpu.shape, np.nan),
        cordoned=cordoned,
    )
    return trace, history, witness.seen[-1]


def _on_grid(snapshot: Snapshot, every: float) -> bool:
    time = snapshot.taken_at - EPOCH
    return abs(time - round(time / every) * every) < 1e-6
