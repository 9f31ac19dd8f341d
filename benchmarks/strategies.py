"""What one pass of every shedding and placement strategy takes on growing pools, and a choice of receivers.

Seconds are those of the processor, which other work on the machine hardly changes. Each case runs in a process of
its own, so that peaks don't add up, and seeks reference cycles as rarely as `ballast run` does.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random
from statistics import median
from time import process_time

import numpy as np
from pydantic import TypeAdapter

from ballast.api.policy_placement import PlacementStrategy
from ballast.grouping.place import Place
from ballast.model import Memory, PlacementPolicy, Policy, Snapshot
from ballast.placement.placing import place
from ballast.planner.plan import remembered
from ballast.runtime import planning_runtime
from ballast.shedding.avg_shedder_usage import UsageMemory, UsageSettings, avg_shedder_usage
from ballast.shedding.load import ExecutorLoad, NodeLoad, PoolLoad, UsageExecutor, UsageNode, UsagePool
from ballast.shedding.strategies import STRATEGIES, shed
from benchmarks.planner import everything_gated, pool
from benchmarks.report import Aim, Baseline, Result, machine, write
from tests.reference.storm.shuffle import Loads, Shuffle

SIZES = ((100, 10), (1000, 10), (5000, 20))
"""Nodes, and executors on each."""
SHEDDERS = ("AvgShedderUsage", *STRATEGIES)
PLACEMENTS = tuple(map(str, PlacementStrategy))
CORES = 16.0
PASSES = 16
STATUS_BYTES = 64 * 1024
MOST_GROWTH = 1.3
SETTINGS = UsageSettings(max_moves=20, max_moves_per_node=4)
TARGETS = (10, 1000)
CHOSEN = 1_000_000

Pass = Callable[[str, float], str]
"""From the state of the pass before, and the time, to the state after."""


def usage_pool(nodes: int, executors: int) -> UsagePool:
    random = Random(1)

    def node(index: int) -> UsageNode:
        score = random.uniform(40.0, 100.0)
        share = score / 100.0 * CORES / executors
        loads = tuple(UsageExecutor(f"ns/e{index}-{i}", share * random.uniform(0.5, 1.5)) for i in range(executors))
        return UsageNode(f"ip-10-0-{index // 250}-{index % 250}.internal", score, CORES, executors=loads)

    return UsagePool(tuple(node(index) for index in range(nodes)))


def pool_load(usage: UsagePool) -> PoolLoad:
    return PoolLoad.of(
        NodeLoad(
            node.name,
            node.score,
            node.score * 1e3,
            node.score * 1e6,
            executors=tuple(
                ExecutorLoad(each.name, (each.load_cores or 0.0) * 1e3, (each.load_cores or 0.0) * 1e7)
                for each in node.executors
            ),
        )
        for node in usage.nodes
    )


def shedding_pass(name: str, nodes: int, executors: int) -> Pass:
    usage = usage_pool(nodes, executors)
    if name != "AvgShedderUsage":
        load = pool_load(usage)
        return lambda state, _: shed(name, load, None, state).state
    memories = TypeAdapter(UsageMemory)

    def by_usage(state: str, now: float) -> str:
        memory = memories.validate_json(state) if state else UsageMemory()
        return memories.dump_json(avg_shedder_usage(usage, SETTINGS, memory, now_seconds=now).memory).decode()

    return by_usage


def measure_shedding(name: str, nodes: int, executors: int) -> tuple[float, float, float, float]:
    """Median and least seconds of a pass, peak resident bytes, bytes of state."""
    one_pass, state, durations = shedding_pass(name, nodes, executors), "", []
    for index in range(PASSES):
        start = process_time()
        state = one_pass(state, 60.0 * index)
        durations.append(process_time() - start)
    return median(durations), min(durations), peak(), float(len(state))


def measure_placing(name: str, nodes: int, executors: int) -> tuple[float, float, float, float]:
    """Median and least seconds of placing every executor of an empty pool, peak resident bytes, executors placed."""
    return _placed(name, everything_gated(_full(nodes, executors)), Memory())


def measure_returning(name: str, nodes: int, executors: int) -> tuple[float, float, float, float]:
    """The same where a memory tells where each was before."""
    running = _full(nodes, executors)
    return _placed(name, everything_gated(running), Memory(placements=remembered(running, Memory())))


def _full(nodes: int, executors: int) -> Snapshot:
    return pool(nodes, nodes * executors, gated_ratio=0.0, hot_ratio=0.05)


def _placed(name: str, snapshot: Snapshot, memory: Memory) -> tuple[float, float, float, float]:
    policy = Policy("bench", placement=PlacementPolicy(strategy=name))
    scores = {node.name: 30.0 + index % 17 for index, node in enumerate(snapshot.nodes)}
    durations, placed = [], 0
    for _ in range(3 if len(snapshot.nodes) <= SIZES[0][0] else 1):
        start = process_time()
        found = place(snapshot, policy, memory, gated=snapshot.executors, scores=scores)
        durations.append(process_time() - start)
        placed = sum(placement.node is not None for placement in found.placements)
    return median(durations), min(durations), peak(), float(placed)


MEASURES = {"shedding": measure_shedding, "placing": measure_placing, "returning": measure_returning}


def peak() -> float:
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024


def apart(what: str, name: str, nodes: int, executors: int) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.strategies", what, name, str(nodes), str(executors)]
    return [float(word) for word in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]


def run() -> list[Result]:
    return [*_shedding(), *_placing(), *_returning(), *_choosing()]


def _shedding() -> Iterator[Result]:
    for name in SHEDDERS:
        fastest = []
        for nodes, executors in SIZES:
            case = f"{name}, {nodes} nodes, {nodes * executors} executors"
            seconds, least, memory, state = apart("shedding", name, nodes, executors)
            fastest.append(least)
            yield Result(case, "pass, median", seconds, "s", aim=Aim(2.0))
            yield Result(case, "peak resident memory", memory / 1e6, "MB")
            yield Result(case, "state", state, "bytes", aim=Aim(STATUS_BYTES) if nodes <= 1000 else None)
        yield from _growth(name, fastest)


def _placing() -> Iterator[Result]:
    for name in PLACEMENTS:
        fastest = []
        for nodes, executors in SIZES:
            case = f"{name}, {nodes * executors} executors on {nodes} empty nodes"
            measured = apart("placing", name, nodes, executors)
            fastest.append(measured[1])
            yield from _of_placing(case, measured, wanted=nodes * executors)
        yield from _growth(name, fastest)


def _returning() -> Iterator[Result]:
    nodes, executors = SIZES[1]
    case = f"Proximity, {nodes * executors} executors back to where they were on {nodes} nodes"
    yield from _of_placing(case, apart("returning", "Proximity", nodes, executors), wanted=nodes * executors)


def _of_placing(case: str, measured: Sequence[float], *, wanted: int) -> Iterator[Result]:
    seconds, _, memory, placed = measured
    yield Result(case, "placing all, median", seconds, "s")
    yield Result(case, "peak resident memory", memory / 1e6, "MB")
    yield Result(case, "placed", placed, "executors", aim=Aim(wanted, at_least=True))


def _growth(name: str, fastest: Sequence[float]) -> Iterator[Result]:
    for (before, after), (small, large) in zip(pairwise(fastest), pairwise(SIZES), strict=True):
        more = (large[0] * large[1]) / (small[0] * small[1])
        case = f"{name}, {small[0]} to {large[0]} nodes, {more:g} times the executors"
        yield Result(case, "growth, 1 = linear", after / before / more, "×", aim=Aim(MOST_GROWTH))


def _choosing() -> Iterator[Result]:
    for targets in TARGETS:
        shuffle = Shuffle(
            Place("n0", "p", "r0", "z0"),
            range(targets),
            [Place(f"n{i % 50}", f"p{i}", f"r{i % 10}", f"z{i % 3}") for i in range(targets)],
            random=np.random.default_rng(1),
        )
        shuffle.refresh(Loads({target: (target % 10) / 20 for target in range(targets)}))
        start = process_time()
        shuffle.choose(CHOSEN)
        at_once = CHOSEN / (process_time() - start)
        start = process_time()
        for _ in range(CHOSEN // 10):
            shuffle.choose_one()
        one_by_one = Baseline("one by one", CHOSEN / 10 / (process_time() - start))
        yield Result(f"shuffle among {targets} targets", f"choose({CHOSEN})", at_once, "targets/s", one_by_one)


def main(arguments: Sequence[str]) -> None:
    if arguments:
        what, name, nodes, executors = arguments
        with planning_runtime():
            print(*MEASURES[what](name, int(nodes), int(executors)))
    else:
        at_start = machine()
        write("strategies", run(), before=at_start)


if __name__ == "__main__":
    main(sys.argv[1:])
