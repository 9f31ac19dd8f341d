"""`python -m benchmarks.study.without_spark PROCESSES RUNS`: the same policy-days in plain processes."""

from __future__ import annotations

import math
import multiprocessing
import sys
from time import perf_counter

from ballast.api import BalancingPolicy
from ballast.runtime import planning_runtime
from ballast.simulation.replay import ScenarioTrial
from ballast.simulation.study import Case
from benchmarks.study.days import POLICIES, Outcome, day, policies


def one(number: int) -> int:
    name, document = list(policies().items())[number % POLICIES]
    trial = ScenarioTrial(day(number // POLICIES))
    with planning_runtime():
        return len(trial.run(BalancingPolicy.parse(document), Case(name, "day", 1000 * (number // POLICIES))).moves)


def main() -> None:
    processes, count = (int(text) for text in sys.argv[1:])
    with multiprocessing.Pool(processes) as pool:
        pool.map(math.sqrt, range(processes))
        began = perf_counter()
        pool.map(one, range(count), chunksize=1)
        Outcome(perf_counter() - began).tell()


if __name__ == "__main__":
    main()
