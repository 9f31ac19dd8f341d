"""How long one pass of `plan()` takes, how much memory it needs, how both grow; and what making a Snapshot takes.

The interpreter seeks reference cycles as rarely as `ballast run` has it do.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from ballast.controller.gateclock import GateClock
from ballast.controller.observe import Lists, Pool, observe
from ballast.kube.document import Page, parsed
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.model import (
    AvgShedderPolicy,
    Component,
    ConditionReason,
    Executor,
    ExecutorUsage,
    Memory,
    MetricsHealth,
    MovesMode,
    MovesPolicy,
    Node,
    NodeUsage,
    Phase,
    Placement,
    PlacementMode,
    PlacementPolicy,
    Policy,
    Resources,
    SheddingPolicy,
    Snapshot,
    Topology,
    Workload,
)
from ballast.planner.plan import plan, reservations
from ballast.runtime import planning_runtime
from ballast.simulation.ranking import Estimate
from benchmarks.listing.pages import executor, node, pages
from benchmarks.load.large_pools import CASES, ENFORCED
from benchmarks.report import Aim, Result, machine, write

T = TypeVar("T")

NOW = 1_000_000.0
GIB = float(1 << 30)
SIZES = ((100, 1_000), (1_000, 10_000), (5_000, 100_000))
RUNS = 5
"""Of each case that has an aim for CPU seconds."""
SET = 50
"""Executors of one topology."""
POLICY = Policy(
    "bench",
    placement=PlacementPolicy(mode=PlacementMode.ENFORCE),
    moves=MovesPolicy(mode=MovesMode.ENFORCE, max_concurrent=1000),
    shedding=SheddingPolicy(avg_shedder=AvgShedderPolicy()),
)


def pool(nodes: int, executors: int, *, gated_ratio: float, hot_ratio: float) -> Snapshot:
    """Zones of 5 racks of 20 nodes; topologies of fifty executors; some gated, some nodes over the high threshold."""
    per_node = executors // nodes
    all_nodes = tuple(_node(i, hot=i < nodes * hot_ratio, load=per_node) for i in range(nodes))
    all_executors = tuple(
        _executor(i, nodes, gated=i % 100 < 100 * gated_ratio, per_node=per_node) for i in range(executors)
    )
    topologies = tuple(
        Topology(f"team/t{i}", "team", f"t{i}", (Component("work", Workload.STREAMING, expected=SET),))
        for i in range((executors + SET - 1) // SET)
    )
    return Snapshot(
        taken_at=NOW,
        nodes=all_nodes,
        executors=all_executors,
        topologies=topologies,
        metrics=MetricsHealth(available=True, reason=ConditionReason.AVAILABLE),
    )


def _node(index: int, *, hot: bool, load: int) -> Node:
    name = f"node-{index:05d}"
    return Node(
        name,
        (f"z{index // 100 % 3}", f"r{index // 20}", name),
        Resources(2.0 * load, 4 * GIB * load, 250),
        requested=Resources(1.0 * load, GIB * load, load),
        labels={"kubernetes.io/hostname": name},
        usage=NodeUsage(cpu_ratio=0.95 if hot else 0.3 + (index % 17) / 100),
    )


def _executor(index: int, nodes: int, *, gated: bool, per_node: int) -> Executor:
    return Executor(
        namespace="team",
        name=f"e-{index}",
        uid=f"u-{index}",
        application=f"app-{index // SET}",
        executor_id=str(index),
        resource_profile="0",
        topology=f"team/t{index // SET}",
        component="work",
        phase=Phase.GATED if gated else Phase.RUNNING,
        created_at=NOW - 3600,
        node=None if gated else f"node-{index // per_node % nodes:05d}",
        requests=Resources(1.0, GIB, 1),
        last_gate_since=NOW - 5 if gated else None,
        running_since=None if gated else NOW - 3600,
        graceful=True,
        usage=None if gated else ExecutorUsage(cpu_cores=0.5, state_bytes=1e6),
    )


def everything_gated(snapshot: Snapshot) -> Snapshot:
    waiting = tuple(
        replace(e, phase=Phase.GATED, node=None, last_gate_since=NOW - 5, running_since=None, usage=None)
        for e in snapshot.executors
    )
    empty = tuple(replace(n, requested=Resources()) for n in snapshot.nodes)
    return replace(snapshot, executors=waiting, nodes=empty)


def measure(nodes: int, executors: int, *, first: bool) -> tuple[float, float, int]:
    """Median seconds of three passes, or those of a whole first placement; peak resident bytes, decisions."""
    snapshot = pool(nodes, executors, gated_ratio=0.01, hot_ratio=0.05)
    if first:
        seconds, placements = _placed(everything_gated(snapshot), POLICY)
        return sum(seconds), _peak_bytes(), len(placements)
    _, memory = plan(snapshot, POLICY, Memory(), NOW)
    times = []
    for i in range(3):
        at = NOW + 120.0 * (i + 1)
        later = replace(snapshot, taken_at=at)
        started = time.perf_counter()
        decided, memory = plan(later, POLICY, memory, at)
        times.append(time.perf_counter() - started)
    return sorted(times)[len(times) // 2], _peak_bytes(), len(decided.placements) + len(decided.moves)


def _peak_bytes() -> float:
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024


def measure_large(case: str) -> tuple[float, float, int, int]:
    """CPU seconds of all passes that place everything, and of the longest; executors left out, nodes without any."""
    snapshot = CASES[case]()
    seconds, placements = _placed(snapshot, ENFORCED)
    used = {placement.node for placement in placements if placement.node is not None}
    left_out = sum(placement.node is None for placement in placements)
    return sum(seconds), max(seconds), left_out, len(snapshot.nodes) - len(used)


def _placed(snapshot: Snapshot, policy: Policy) -> tuple[list[float], list[Placement]]:
    """CPU seconds of as many passes as it takes; what one has placed runs in the next."""
    seconds: list[float] = []
    found: list[Placement] = []
    memory = Memory()
    while len(found) < len(snapshot.executors):
        started = time.process_time()
        decided, memory = plan(snapshot, policy, memory, snapshot.taken_at)
        seconds.append(time.process_time() - started)
        found += decided.placements
        snapshot = _with(decided.placements, snapshot)
    return seconds, found


def _with(placements: Sequence[Placement], snapshot: Snapshot) -> Snapshot:
    taken = reservations({}, snapshot, placements)
    nodes = (replace(n, requested=n.requested.plus(taken[n.name])) if n.name in taken else n for n in snapshot.nodes)
    placed = {placement.uid: placement.node for placement in placements}
    executors = (
        replace(e, phase=Phase.RUNNING, node=placed[e.uid]) if e.uid in placed else e for e in snapshot.executors
    )
    return replace(snapshot, nodes=tuple(nodes), executors=tuple(executors))


def measure_listing(nodes: int, executors: int) -> tuple[float, float, float]:
    """From the API's JSON to the Snapshot: seconds, of them those that reading the JSON takes, and MiB of JSON."""
    per_node = executors // nodes
    listed = _Listed()

    def pod(number: int) -> dict[str, Any]:
        application, place = f"app-{number // SET}", f"node-{number // per_node % nodes:05d}"
        return executor(number, application=application, node=place, topology=f"t{number // SET}")

    pods = listed.read(pages(executors, pod), PodReader().read)
    machines = listed.read(pages(nodes, lambda number: node(number, name=f"node-{number:05d}")), NodeReader().read)
    started = time.perf_counter()
    clock = GateClock().after(pods, NOW)
    seen = observe(Lists(pods, machines, {"team": {}}), POLICY, pool=Pool(), topologies=(), clock=clock, now=NOW)
    joining = time.perf_counter() - started
    assert len(seen.snapshot.executors) == executors
    return listed.seconds + joining, listed.parsing_seconds, listed.size_bytes / 2**20


class _Listed:
    """Reads lists as the operator does, page by page; making the pages is not counted."""

    def __init__(self) -> None:
        self.seconds = self.parsing_seconds = 0.0
        self.size_bytes = 0

    def read(self, found: Iterator[bytes], read: Callable[[dict[str, Any]], T]) -> list[T]:
        values: list[T] = []
        for page in found:
            started = time.perf_counter()
            items = [parsed(raw) for raw in msgspec.json.decode(page, type=Page).items or ()]
            self.parsing_seconds += time.perf_counter() - started
            values += [read(item) for item in items]
            self.seconds += time.perf_counter() - started
            self.size_bytes += len(page)
        return values


def _apart(*words: object) -> list[float]:
    """In its own process, so that peaks don't add up."""
    command = [sys.executable, "-m", "benchmarks.planner", *map(str, words)]
    return [float(word) for word in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]


def run() -> list[Result]:
    return [*_planning(), *_large(), *_listing()]


def _large() -> list[Result]:
    results: list[Result] = []
    for case in CASES:
        runs = [_apart("large", case) for _ in range(RUNS)]
        longest, (total, _, left_out, empty) = Estimate.of([each[1] for each in runs]), runs[0]
        results += [
            Result(f"all at once: {case}", "CPU seconds of all passes", total, "s"),
            Result(f"all at once: {case}", "CPU seconds of the longest", longest.mean, "s"),
            Result(f"all at once: {case}", "… upper end of a 95 % interval", longest.high, "s", aim=Aim(2.0)),
            Result(f"all at once: {case}", "left out", left_out, "executors", aim=Aim(0)),
            Result(f"all at once: {case}", "nodes without an executor", empty, "nodes"),
        ]
    return results


def _listing() -> list[Result]:
    results: list[Result] = []
    for nodes, executors in SIZES:
        case = f"Snapshot {nodes} × {executors}"
        seconds, parsing, size = _apart(nodes, executors, "listing")
        results += [
            Result(case, "seconds", seconds, "s"),
            Result(case, "of them parsing JSON", parsing, "s"),
            Result(case, "size of the JSON", size, "MiB"),
        ]
    return results


def _planning() -> list[Result]:
    results: list[Result] = []
    for first, aims in ((False, {1_000: 1.0, 5_000: 5.0}), (True, {1_000: 10.0, 5_000: 50.0})):
        before: tuple[int, float] | None = None
        for nodes, executors in SIZES:
            case = f"{'first placement' if first else 'pass'} {nodes} × {executors}"
            seconds, peak, decisions = _apart(nodes, executors, "first" if first else "pass")
            results += [
                Result(case, "seconds", seconds, "s", aim=Aim(aims[nodes]) if nodes in aims else None),
                Result(case, "peak memory", peak / 2**20, "MiB"),
                Result(case, "decisions", decisions, "1"),
            ]
            if before is not None:
                growth = (seconds / before[1]) / (executors / before[0])
                results.append(Result(case, "growth, 1 = linear", growth, "×", aim=Aim(1.3)))
            before = (executors, seconds)
    return results


if __name__ == "__main__":
    if sys.argv[1:2] == ["large"]:
        with planning_runtime():
            print(*measure_large(sys.argv[2]))
    elif len(sys.argv) > 1:
        size = int(sys.argv[1]), int(sys.argv[2])
        with planning_runtime():
            measured = (
                measure_listing(*size) if sys.argv[3] == "listing" else measure(*size, first=sys.argv[3] == "first")
            )
        print(*measured)
    else:
        at_start = machine()
        write("planner", run(), before=at_start)
