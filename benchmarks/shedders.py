"""Time, memory and state of one pass of every shedding strategy on growing pools."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random
from statistics import median
from time import perf_counter

from pydantic import TypeAdapter

from ballast.shedding.avg_shedder_usage import UsageMemory, UsageSettings, avg_shedder_usage
from ballast.shedding.load import ExecutorLoad, NodeLoad, PoolLoad
from ballast.shedding.strategies import STRATEGIES, shed
from ballast.shedding.usage_load import UsageExecutor, UsageNode, UsagePool
from benchmarks.report import Aim, Result, machine, write

SIZES = ((100, 10), (1000, 10), (5000, 20))
"""Nodes, and executors on each."""
CORES = 16.0
PASSES = 16
STATUS_BYTES = 64 * 1024
SETTINGS = UsageSettings(max_moves=20, max_moves_per_node=4)

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


def pool_load(pool: UsagePool) -> PoolLoad:
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
        for node in pool.nodes
    )


def passes(pool: UsagePool) -> Iterator[tuple[str, Pass]]:
    memories = TypeAdapter(UsageMemory)
    load = pool_load(pool)

    def usage(state: str, now: float) -> str:
        memory = memories.validate_json(state) if state else UsageMemory()
        return memories.dump_json(avg_shedder_usage(pool, SETTINGS, memory, now_seconds=now).memory).decode()

    def by_name(name: str) -> Pass:
        return lambda state, _: shed(name, load, {}, state).state

    yield "AvgShedder, Usage", usage
    for name in STRATEGIES:
        yield (f"{name}, Traffic" if name == "AvgShedder" else name), by_name(name)


def run() -> Iterator[Result]:
    seconds: dict[str, list[float]] = {}
    for nodes, executors in SIZES:
        for name, one_pass in passes(usage_pool(nodes, executors)):
            durations, state = _timed(one_pass)
            seconds.setdefault(name, []).append(min(durations))
            case = f"{name}, {nodes} nodes, {nodes * executors} executors"
            yield Result(case, "pass, median", median(durations), "s", aim=Aim(2.0))
            yield Result(case, "peak memory of a pass", _peak(one_pass, state) / 1e6, "MB")
            fits = Aim(STATUS_BYTES) if nodes <= 1000 else None
            yield Result(case, "state", float(len(state)), "bytes", aim=fits)
    for name, found in seconds.items():
        for (before, after), (small, large) in zip(pairwise(found), pairwise(SIZES), strict=True):
            case = f"{name}, {small[0]} to {large[0]} nodes"
            yield Result(case, "growth of the fastest pass", after / before, "factor")


def _timed(one_pass: Pass) -> tuple[list[float], str]:
    state, durations = "", []
    for index in range(PASSES):
        start = perf_counter()
        state = one_pass(state, 60.0 * index)
        durations.append(perf_counter() - start)
    return durations, state


def _peak(one_pass: Pass, state: str) -> int:
    tracemalloc.start()
    one_pass(state, 60.0 * PASSES)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


if __name__ == "__main__":
    at_start = machine()
    write("shedders", list(run()), before=at_start)
