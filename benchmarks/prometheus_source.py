"""Reading ten million points: the data source on Spark beside prometheus-api-client and pandas.

Both read the same range of the same Prometheus, which runs on the same cores, and work out the mean by pod. Rows per
second count from the first request on, with neither imports nor Spark's start; memory is that of all processes of the
reader, JVM included, pages that are shared counted once.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.report import Aim, Baseline, Result, machine, write
from benchmarks.source.span import START, STEP_SECONDS, STEPS, Outcome
from tests.spark.filled_prometheus import holding

SERIES = 160
"""With 66 000 points each: 10.6 million."""
SAMPLE_SECONDS = 60
"""Apart in Prometheus; each answers for four steps."""
LOOK_SECONDS = 0.2
FASTER = Aim(3.0, at_least=True, of_ratio=True)
SMALLER = Aim(0.25, of_ratio=True)


@dataclass(frozen=True, slots=True)
class Run:
    outcome: Outcome
    peak_bytes: int

    @property
    def rows_per_second(self) -> float:
        return self.outcome.rows / self.outcome.seconds


def data(series: int) -> Iterator[str]:
    chance = random.Random(1)
    yield "# TYPE load gauge\n"
    for pod in range(series):
        labels = (
            f'cluster="production-1",container="spark-kubernetes-executor",instance="10.0.{pod % 8}.17:10250"'
            f',job="kubelet",namespace="analytics",node="ip-10-0-{pod % 8}-17.internal",pod="clicks-exec-{pod}"'
        )
        for second in range(START, START + STEPS * STEP_SECONDS, SAMPLE_SECONDS):
            yield f"load{{{labels}}} {chance.random() * 16!r} {second}\n"
    yield "# EOF\n"


def run(module: str, *arguments: str) -> Run:
    process = subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.source.{module}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    peak, ended = [0], threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_SECONDS):
            peak[0] = max(peak[0], memory_bytes(process.pid))

    watcher = threading.Thread(target=look)
    watcher.start()
    told, complaints = process.communicate()
    ended.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{module} {' '.join(arguments)} failed:\n{complaints[-3000:]}")
    return Run(Outcome(**json.loads(told)), peak[0])


def memory_bytes(pid: int) -> int:
    """Of a process and all below it, each shared page counted once."""
    total = 0
    try:
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            total += process.memory_full_info().pss
    except psutil.NoSuchProcess:
        return 0
    return total


def compared(case: str, ours: Run, theirs: Run, *, judged: bool) -> Iterator[Result]:
    same = all(math.isclose(ours.outcome.means[pod], mean, rel_tol=1e-9) for pod, mean in theirs.outcome.means.items())
    if ours.outcome.rows != theirs.outcome.rows or not same:
        raise SystemExit(f"{case}: the two did not read the same")
    rate = Baseline("client", theirs.rows_per_second)
    yield Result(case, "read", ours.rows_per_second, "rows/s", rate, FASTER if judged else None)
    peak = Baseline("client", theirs.peak_bytes / 2**20)
    yield Result(case, "peak memory", ours.peak_bytes / 2**20, "MiB", peak, SMALLER if judged else None)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prometheus_source")
    parser.add_argument("--series", type=int, default=SERIES, help=f"of {STEPS} points each (default {SERIES})")
    series = parser.parse_args().series
    before = machine()
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="prometheus-source-") as folder, holding(data(series), Path(folder)) as own:
        clients = {way: run("client", own.url, way) for way in ("whole", "span")}
        for cores, shape in (("1", "columns"), ("2", "columns"), ("2", "map")):
            ours = run("reader", own.url, cores, shape)
            case = f"{ours.outcome.rows:,} rows, local[{cores}], labels as {shape}"
            results += compared(f"{case}, beside one frame", ours, clients["whole"], judged=shape == "columns")
            results += compared(f"{case}, beside a frame per span", ours, clients["span"], judged=False)
    write("prometheus-source", results, before=before)


if __name__ == "__main__":
    main()
