"""What routing costs: the time of a job into a real Kafka, and choices per core-second next to plain Python and Storm.

Storm's is the real `LoadAwareShuffleGrouping.chooseTasks`, called in a Java loop on the same machine.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from kafka.admin import KafkaAdminClient
from pydantic import TypeAdapter

from ballast.grouping.place import Place
from ballast.spark.routing.chooser import Chooser, Reading, Target
from benchmarks.report import Aim, Baseline, Result, machine, write
from benchmarks.routed.job import KAFKA, RECORDS, THROWN_AWAY, TOPIC, Run
from benchmarks.routed.ways import NONE, PARTITIONS, PLAIN, ROUND_ROBIN, ROUTED
from tests.reference.storm.shuffle import Shuffle
from tests.spark.session import PATHS
from tests.testbed.kafka import jars, kafka

WARM_UP_ROUNDS = 2
ROUNDS = 9
JAVA = Path(__file__).parent / "routed" / "ChooseTasks.java"
CHOICES = 30_000_000
"""In a round of the loops; Spark hands a UDF ten thousand records at once."""
BATCH = 10_000
PLAIN_SHARE = 20
"""Plain Python makes so many times fewer choices a round."""


def runs() -> list[Run]:
    with tempfile.TemporaryDirectory() as folder, kafka(Path(folder), racks=["a", "b", "c"]) as brokers:
        with KafkaAdminClient(bootstrap_servers=brokers.bootstrap) as admin:
            admin.create_topics({TOPIC: {"num_partitions": PARTITIONS, "replication_factor": 1}})
            admin.wait_for_topics([TOPIC], timeout_ms=30_000)
        arguments = [brokers.bootstrap, str(jars("kafka-connector")), str(WARM_UP_ROUNDS + ROUNDS)]
        told = subprocess.run(
            [sys.executable, "-m", "benchmarks.routed.job", *arguments],
            env={**os.environ, "PYTHONPATH": PATHS},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
    found = [TypeAdapter(Run).validate_json(line) for line in told.splitlines()]
    return [run for run in found if run.round >= WARM_UP_ROUNDS]


def job_results(found: Sequence[Run]) -> list[Result]:
    def medians(sink: str, way: str) -> tuple[float, float]:
        mine = [run for run in found if (run.sink, run.way) == (sink, way)]
        return statistics.median(run.seconds for run in mine), statistics.median(run.cpu_seconds for run in mine)

    into_kafka = f"{RECORDS[KAFKA]:,} records into Kafka"
    (routed, _), (turns, _) = medians(KAFKA, ROUTED), medians(KAFKA, ROUND_ROBIN)
    low, high = _interval(found)
    (_, none), (_, chosen), (_, plain) = (medians(THROWN_AWAY, way) for way in (NONE, ROUTED, PLAIN))
    millions = RECORDS[THROWN_AWAY] / 1e6
    transported = f"in Spark, {RECORDS[THROWN_AWAY]:,} records thrown away"
    return [
        Result(into_kafka, "job time", routed, "s", Baseline("round robin", turns), Aim(1.1, of_ratio=True)),
        Result(into_kafka, "of round robin's, lower quartile", low, "ratio"),
        Result(into_kafka, "of round robin's, upper quartile", high, "ratio"),
        Result(
            transported,
            "added core-seconds",
            (chosen - none) / millions,
            "s/million",
            Baseline("plain UDF", (plain - none) / millions),
        ),
    ]


def _interval(found: Sequence[Run]) -> tuple[float, float]:
    """Quartiles of the ratio over rounds: the two runs of a round are next to each other."""
    by_round = {(run.round, run.way): run.seconds for run in found if run.sink == KAFKA}
    rounds = {number for number, _ in by_round}
    ratios = [by_round[number, ROUTED] / by_round[number, ROUND_ROBIN] for number in rounds]
    low, _, high = statistics.quantiles(ratios, n=4)
    return low, high


@dataclass(frozen=True, slots=True)
class _Targets:
    """Each on a node of its own."""

    count: int

    def read(self, at_seconds: float) -> Reading:  # noqa: ARG002 -- nothing changes
        return Reading([Target(number, Place(f"node-{number}")) for number in range(self.count)])


def ours() -> float:
    """Choices per core-second of what the UDF does with a batch of records."""
    chooser = Chooser(_Targets(PARTITIONS), Place("here"), background=ThreadPoolExecutor(1))
    free = pa.array(np.ones(BATCH, dtype=bool))

    def once() -> None:
        for _ in range(CHOICES // BATCH):
            pa.array(chooser.choose(int(free.to_numpy(zero_copy_only=False).sum())))

    return _per_core_second(CHOICES, once)


def plain_python() -> float:
    places = [target.place for target in _Targets(PARTITIONS).read(0.0).targets]
    shuffle = Shuffle(Place("here"), range(PARTITIONS), places, random=np.random.default_rng())

    def once() -> None:
        for _ in range(CHOICES // PLAIN_SHARE):
            shuffle.choose_one()

    return _per_core_second(CHOICES // PLAIN_SHARE, once)


def _per_core_second(choices: int, once: Callable[[], None]) -> float:
    rates = []
    for _ in range(ROUNDS):
        began = time.process_time()
        once()
        rates.append(choices / (time.process_time() - began))
    return statistics.median(rates)


def storm() -> float:
    classpath = f"{jars('storm')}/*"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["javac", "-d", folder, "-cp", classpath, str(JAVA)], check=True)
        loop = ["java", "-cp", f"{folder}:{classpath}", "ChooseTasks", str(PARTITIONS), str(CHOICES), str(ROUNDS)]
        told = subprocess.run(loop, check=True, capture_output=True, text=True).stdout
    rates = [float(line) for line in told.splitlines() if "[" not in line]
    return statistics.median(rates[1:])


def loop_results() -> list[Result]:
    case = f"choosing among {PARTITIONS} targets"
    rate, metric, unit = ours() / 1e6, "choices per core-second", "million"
    plain, javas = Baseline("plain Python", plain_python() / 1e6), Baseline("Storm in Java", storm() / 1e6)
    return [
        Result(case, metric, rate, unit, plain, Aim(10.0, at_least=True, of_ratio=True)),
        Result(case, metric, rate, unit, javas, Aim(1.0, at_least=True, of_ratio=True)),
    ]


if __name__ == "__main__":
    at_start = machine()
    write("routing", [*job_results(runs()), *loop_results()], before=at_start)
