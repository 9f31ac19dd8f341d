"""Steps and passes that the simulator gets through in a second of CPU, how that grows, and the planner's share.

The interpreter seeks reference cycles as rarely as `ballast simulate` has it do.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ballast.model import Memory, Plan, Policy, Snapshot
from ballast.planner.plan import plan
from ballast.runtime import planning_runtime
from ballast.simulation.engine import simulate
from ballast.simulation.policies import from_name
from ballast.simulation.scenario import Scenario
from benchmarks.report import Aim, Result, machine, write

SIZES = ((6, 60), (100, 20), (1000, 5), (5000, 5))
"""Nodes, minutes to simulate."""
PER_NODE = 10
"""Executors."""
SET = 50
"""Executors of one application."""


def world(nodes: int, minutes: int) -> Scenario:
    """Every executor and every node's neighbor has its own load; some nodes get hot enough to be looked at."""
    executors = nodes * PER_NODE
    noisy = {"kind": "Noise", "deviation": 0.3}
    spec = {
        "duration": f"{minutes}m",
        "nodes": [
            {
                "name": "node",
                "count": nodes,
                "cores": 20,
                "zones": ["a", "b", "c"],
                "neighbor": {"cores": 4, "vary": [noisy]},
            }
        ],
        "applications": [
            {
                "name": "job",
                "copies": max(1, executors // SET),
                "executors": min(SET, executors),
                "load": {"cores": 1, "vary": [noisy, {"kind": "Diurnal", "amplitude": 0.2}]},
                "runsOn": ["node"],
            }
        ],
    }
    return Scenario.parse({"metadata": {"name": f"{nodes} nodes"}, "spec": spec})


@dataclass(slots=True)
class Watched:
    """The operator's planner, with a stopwatch."""

    seconds: float = 0.0
    passes: int = 0

    def __call__(self, snapshot: Snapshot, policy: Policy, memory: Memory, now: float) -> tuple[Plan, Memory]:
        started = time.process_time()
        decided = plan(snapshot, policy, memory, now)
        self.seconds += time.process_time() - started
        self.passes += 1
        return decided


def run() -> list[Result]:
    results: list[Result] = []
    before: tuple[int, float] | None = None
    for nodes, minutes in SIZES:
        scenario = world(nodes, minutes)
        policy, planner = from_name("AvgShedder", scenario), Watched()
        started = time.process_time()
        steps: list[float] = []
        with planning_runtime():
            simulate(scenario, policy, planner=planner, progress=steps.append)
        total = time.process_time() - started
        seconds, share = total / planner.passes, planner.seconds / total
        case = f"{nodes} nodes × {nodes * PER_NODE} executors"
        results += [
            Result(case, "steps per second of CPU", len(steps) / total, "1/s"),
            Result(case, "passes per second of CPU", 1.0 / seconds, "1/s"),
            Result(case, "share of the planner", share, "ratio", aim=Aim(0.5, at_least=True)),
        ]
        if before is not None:
            growth = (seconds / before[1]) / (nodes / before[0])
            results.append(Result(case, "growth, 1 = linear", growth, "×", aim=Aim(1.3)))
        before = (nodes, seconds)
    return results


if __name__ == "__main__":
    at_start = machine()
    write("simulator", run(), before=at_start)
