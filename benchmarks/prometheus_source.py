"""Reading ten million points: the data source on Spark, compared with prometheus-api-client and pandas.

Both read the same range of the same Prometheus, ask at most 11 000 steps at once, and work out the mean by pod of rows
that hold time, value and all labels; their means must agree. Each reader is its own process, kept with all that it
starts to one or two cores; Prometheus runs next to it on whichever cores the machine has. The client asks one span
after the other, as it does by itself, and gets them compressed, which it asks for; the data source asks for them plain.

Rows per second count from the first request on, with neither imports nor Spark's start, but with the start of Spark's
Python workers and of its first query; a second read in the same session is also shown, without an aim. Memory is that
of all processes of the reader, JVM included, pages that are shared counted once.

Judged is the client as its documentation has it: one frame of all the answers. Also shown are a frame for each answer,
which needs less memory, the same without compression, and what Prometheus alone takes to answer. The data source reads
partitions of 24 hours, to which it was tuned. That memory is bounded by one of them is judged by the largest of Spark's
Python workers, over all of the range, and over half of it.
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
from benchmarks.source.span import PARTITION_SPAN, START, STEP_SECONDS, STEPS, Outcome
from tests.spark.filled_prometheus import holding

SERIES = 160
"""With 66 000 points each: 10.6 million."""
SAMPLE_SECONDS = 60
"""Apart in Prometheus; each answers for four steps."""
LOOK_SECONDS = 0.3
BESIDE = {"whole": "one frame", "span": "a frame per span", "plain": "a frame per span, plain"}
FASTER = Aim(3.0, at_least=True, of_ratio=True)
SMALLER = Aim(0.25, of_ratio=True)
BOUNDED = Aim(1.1, of_ratio=True)


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
    """Of a process and all below it, each shared page counted once; of a lone process, all pages it holds.

    Telling which pages are shared stops a process of many gigabytes for long enough to slow it down.
    """
    try:
        own = psutil.Process(pid)
        below = own.children(recursive=True)
        if not below:
            return int(own.memory_info().rss)
        return sum(process.memory_full_info().pss for process in (own, *below))
    except psutil.NoSuchProcess:
        return 0


def compared(case: str, ours: Run, way: str, theirs: Run, *, cores: int) -> Iterator[Result]:
    """With aims next to one frame where both have all the labels as columns; the aim of speed is for two cores."""
    same = all(math.isclose(ours.outcome.means[pod], mean, rel_tol=1e-9) for pod, mean in theirs.outcome.means.items())
    if ours.outcome.rows != theirs.outcome.rows or not same:
        raise SystemExit(f"{case}: the two did not read the same")
    judged = way == "whole" and "columns" in case
    case = f"{case}, beside {BESIDE[way]}"
    rate = Baseline("client", theirs.rows_per_second)
    yield Result(case, "read", ours.rows_per_second, "rows/s", rate, FASTER if judged and cores == 2 else None)
    if ours.outcome.again_seconds:
        yield Result(case, "read again", ours.outcome.rows / ours.outcome.again_seconds, "rows/s", rate)
    peak = Baseline("client", theirs.peak_bytes / 2**20)
    yield Result(case, "peak memory", ours.peak_bytes / 2**20, "MiB", peak, SMALLER if judged else None)


def on_cores(url: str, cores: int) -> Iterator[Result]:
    ways = ("whole", "span", "plain") if cores == 2 else ("whole", "span")
    clients = {way: run("client", url, str(cores), way) for way in ways}
    for shape in ("columns", "map", "pod") if cores == 2 else ("columns",):
        ours = run("reader", url, str(cores), shape)
        case = f"{ours.outcome.rows:,} rows by {PARTITION_SPAN}, {cores} core{'s' * (cores > 1)}, labels as {shape}"
        for way, theirs in clients.items() if shape == "columns" else [("whole", clients["whole"])]:
            yield from compared(case, ours, way, theirs, cores=cores)


def as_the_range_grows(url: str) -> Result:
    half, whole = (run("worker", url, str(steps)).outcome for steps in (STEPS // 2, STEPS))
    base = Baseline(f"{half.rows:,} rows", half.worker_bytes / 2**20)
    case = f"{whole.rows:,} rows by {PARTITION_SPAN}, 2 cores, labels as columns"
    return Result(case, "memory per task", whole.worker_bytes / 2**20, "MiB", base, BOUNDED)


def answers(url: str, rows: int) -> Iterator[Result]:
    for encoding in ("identity", "gzip"):
        seconds = run("answers", url, encoding).outcome.seconds
        yield Result(f"Prometheus alone, {encoding}", "answers", rows / seconds, "rows/s")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prometheus_source")
    parser.add_argument("--series", type=int, default=SERIES, help=f"of {STEPS} points each (default {SERIES})")
    series = parser.parse_args().series
    before = machine()
    with tempfile.TemporaryDirectory(prefix="prometheus-source-") as folder, holding(data(series), Path(folder)) as own:
        beside = [*answers(own.url, series * STEPS), *on_cores(own.url, 1), *on_cores(own.url, 2)]
        results = [*beside, as_the_range_grows(own.url)]
    write("prometheus-source", results, before=before)


if __name__ == "__main__":
    main()
