"""Policy-days: days of a small pool, policies to run in them, and what a process tells of its runs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

from ballast.simulation.policies import Axis, candidates
from ballast.simulation.scenario import Scenario
from ballast.simulation.study import Document

NODES, EXECUTORS = 4, 12
POLICIES = 10
FIGURES = {"interval": "2m", "metrics": {"window": "4m", "maxAge": "6m"}, "moves": {"settle": "10m"}}


@dataclass(frozen=True, slots=True)
class Outcome:
    seconds: float
    """From the first task's start to the last result's being kept; neither imports nor Spark's start."""
    worker_bytes: int = 0
    """The most that any one of Spark's Python workers had for itself."""

    def tell(self) -> None:
        json.dump(asdict(self), sys.stdout)


def policies() -> dict[str, Document]:
    axes = [Axis.parse(f"shedding.avgShedder.lowThreshold={','.join(str(10 + 2 * i) for i in range(POLICIES))}")]
    return candidates(["AvgShedder"], axes, figures=FIGURES, baseline=False)


def day(number: int) -> Scenario:
    """A day with chances of its own."""
    noisy = {"kind": "Noise", "deviation": 0.3, "memory": "10m"}
    spec = {
        "duration": "24h",
        "seed": 1000 * number,
        "nodes": [{"name": "node", "count": NODES, "cores": 4}],
        "applications": [
            {
                "name": "job",
                "copies": 2,
                "executors": EXECUTORS // 2,
                "load": {"cores": 1.0, "vary": [noisy, {"kind": "Diurnal", "amplitude": 0.3}]},
                "runsOn": ["node"],
            }
        ],
        "metrics": {"scrapeInterval": "2m"},
    }
    return Scenario.parse({"metadata": {"name": f"day-{number}"}, "spec": spec})
