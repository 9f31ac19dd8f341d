"""What the audit adds to the time of a streaming job: the same job with it and without, by turns in one Spark.

All jobs read clicks from a real Kafka and write to it. One counts them in Spark alone, where a record takes the least
time, and one numbers them by state in Python. The counting job is audited by Kafka's partition and offset, and by a
text of 40 characters, which only the audit makes Spark read. The interval is of the median of the pairs' ratios.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from kafka.admin import KafkaAdminClient

from benchmarks.audited.clicks import BY_POSITION, BY_TEXT, NUMBERED
from benchmarks.audited.runs import BATCHES
from benchmarks.report import Aim, Baseline, Result, machine, write
from tests.testbed.kafka import jars, kafka

PAIRS = 10
RECORDS = {BY_POSITION: 2_000_000, BY_TEXT: 2_000_000, NUMBERED: 200_000}
PARTITIONS = 4
MOST_PERCENT = 5.0
RESAMPLES = 2000


def measured(job: str, *, pairs: int) -> list[Result]:
    with tempfile.TemporaryDirectory() as folder, kafka(Path(folder), racks=["a"]) as running:
        with KafkaAdminClient(bootstrap_servers=running.bootstrap) as admin:
            admin.create_topics(
                {name: {"num_partitions": PARTITIONS, "replication_factor": 1} for name in ("in", "out")}
            )
            admin.wait_for_topics(["in", "out"], timeout_ms=30_000)
        command = [running.bootstrap, str(jars("kafka-connector")), job, str(pairs), str(RECORDS[job])]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.audited.runs", *command], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(f"{job} failed:\n{done.stderr[-3000:]}")
    return results(job, json.loads(done.stdout.splitlines()[-1]))


def results(job: str, pairs: Sequence[Sequence[dict[str, float]]]) -> list[Result]:
    case = f"{RECORDS[job]:,} clicks in {BATCHES} micro-batches, {job}"
    found = []
    for kind, what in (("seconds", "time"), ("cpu_seconds", "CPU time of Spark")):
        plain, audited = ([pair[which][kind] for pair in pairs] for which in (0, 1))
        ratios = [after / before for before, after in zip(plain, audited, strict=True)]
        low, high = interval(ratios)
        base = Baseline("without", median(plain))
        aim = Aim(MOST_PERCENT) if kind == "seconds" and job != BY_TEXT else None
        found += [
            Result(case, f"{what} with audit", median(audited), "s", base),
            Result(case, f"audit's share of the {what}", percent(median(ratios)), "%", aim=aim),
            Result(case, f"… 95 % interval from ({what})", percent(low), "%"),
            Result(case, f"… 95 % interval to ({what})", percent(high), "%"),
        ]
    return found


def percent(ratio: float) -> float:
    return 100.0 * (ratio - 1.0)


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Of the median, by the bootstrap."""
    random_ = random.Random(0)
    medians = sorted(median(random_.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return medians[round(0.025 * RESAMPLES)], medians[round(0.975 * RESAMPLES) - 1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"of each job (default {PAIRS})")
    parser.add_argument("--only", nargs="+", choices=list(RECORDS), default=list(RECORDS))
    asked = parser.parse_args()
    before = machine()
    write("audit", [result for job in asked.only for result in measured(job, pairs=asked.pairs)], before=before)


if __name__ == "__main__":
    main()
