"""How long `ballast report` takes for many applications: from a snapshot file to text, JSON and page.

Called so because `report` is what every benchmark writes with.
"""

from __future__ import annotations

import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from ballast.cli.situation import Situation, dump
from ballast.model import (
    ConditionReason,
    Executor,
    ExecutorUsage,
    Memory,
    MetricsHealth,
    Node,
    NodeUsage,
    Policy,
    Resources,
    Snapshot,
)
from ballast.model.executor import Phase
from benchmarks.report import Aim, Result, machine, write

NOW = 1_000_000.0
GIB = float(1 << 30)
EACH = 10
"""Executors of one application."""
SEED = 7
APPLICATIONS = (100, 500)
RUNS = 3


def pool(applications: int) -> Snapshot:
    """Three zones of racks of twenty nodes; half of the room is taken; executors anywhere, as by free requests."""
    random_ = random.Random(SEED)
    nodes = [_node(index) for index in range(applications)]
    executors = [
        _executor(number, nodes[random_.randrange(len(nodes))].name, random_.uniform(0.5, 20.0) * 2**20)
        for number in range(applications * EACH)
    ]
    asked = {node.name: 0 for node in nodes}
    for executor in executors:
        asked[executor.node or ""] += 1
    filled = (replace(node, requested=Resources(asked[node.name], GIB * asked[node.name], asked[node.name]))
              for node in nodes)  # fmt: skip
    return Snapshot(
        NOW, tuple(filled), tuple(executors), metrics=MetricsHealth(available=True, reason=ConditionReason.AVAILABLE)
    )


def _node(index: int) -> Node:
    name, zone = f"node-{index:05d}", f"z{index % 3}"
    return Node(
        name,
        (zone, f"{zone}-r{index // 60}", name),
        Resources(32.0, 128 * GIB, 110),
        labels={"kubernetes.io/hostname": name, "eks.amazonaws.com/nodegroup": "spark"},
        usage=NodeUsage(cpu_ratio=0.95 if index % 20 == 0 else 0.4 + index % 13 / 100, pressure_ratio=0.05),
    )


def _executor(number: int, node: str, rate: float) -> Executor:
    application = f"app-{number // EACH:04d}"
    return Executor(
        namespace=f"team-{number // EACH % 20}",
        name=f"{application}-exec-{number % EACH}",
        uid=f"u-{number}",
        application=application,
        executor_id=str(number % EACH),
        resource_profile="0",
        topology=f"team-{number // EACH % 20}/{application}",
        component=application,
        phase=Phase.RUNNING,
        created_at=NOW - 7200,
        running_since=NOW - 7200,
        node=node,
        requests=Resources(1.0, GIB, 1),
        graceful=True,
        usage=ExecutorUsage(
            cpu_cores=0.5,
            task_seconds=1.0 + number % 7 / 10,
            task_bytes=1e6,
            state_bytes=1e6,
            shuffle_read_bytes_per_second=rate,
            shuffle_write_bytes_per_second=rate,
        ),
    )


def measure(applications: int, form: str) -> tuple[float, float]:
    """Medians of the whole command, start of Python included: CPU seconds and seconds."""
    with tempfile.TemporaryDirectory() as folder:
        file, page = Path(folder) / "snapshot.json", Path(folder) / "report.html"
        file.write_text(dump(Situation(Policy("bench"), Memory(), pool(applications)), as_json=True), encoding="utf-8")
        command = [sys.executable, "-m", "ballast", "report", "-f", str(file), "-o", form, "--report", str(page)]
        seconds, cpu_seconds = [], []
        for _ in range(RUNS):
            started, used = time.perf_counter(), _children_cpu_seconds()
            subprocess.run(command, check=True, capture_output=True)
            seconds.append(time.perf_counter() - started)
            cpu_seconds.append(_children_cpu_seconds() - used)
        assert f"app-{applications - 1:04d}" in page.read_text(encoding="utf-8")
    return statistics.median(cpu_seconds), statistics.median(seconds)


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run() -> list[Result]:
    """The aim is for seconds of wall time: run it on a machine that does nothing else."""
    results: list[Result] = []
    for applications in APPLICATIONS:
        case = f"{applications} applications, {applications * EACH} executors, {applications} nodes"
        aim = Aim(10.0) if applications == APPLICATIONS[-1] else None
        for form in ("table", "json"):
            cpu_seconds, seconds = measure(applications, form)
            results += [
                Result(case, f"page and {form}: seconds", seconds, "s", aim=aim),
                Result(case, f"page and {form}: CPU seconds", cpu_seconds, "s"),
            ]
    return results


if __name__ == "__main__":
    at_start = machine()
    write("application-report", run(), before=at_start)
