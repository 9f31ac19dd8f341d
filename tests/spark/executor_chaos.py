"""Audited streams whose executors are killed and decommissioned at random, and a count of what came out of them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from ballast.spark.audit.ledger import read
from ballast.spark.audit.verdict import Verdict, verdicts
from tests.spark.audited_job import EXECUTORS, LEAKY, SOUND, TOPICS, USERS, committed
from tests.spark.session import PATHS
from tests.testbed.errors import log_tail
from tests.testbed.kafka import jars, kafka
from tests.testbed.waiting import wait_until

_PARTITIONS = 3
_RECORDS_AT_ONCE = 20
_PAUSE_SECONDS = (0.0, 4.0)
_PATIENCE_SECONDS = 240.0
_SIGNALS = {"killed": signal.SIGKILL, "decommissioned": signal.SIGPWR}
"""Spark on Kubernetes decommissions an executor by this signal too."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Of an output topic."""

    records: int
    """With those that were written twice."""
    batches_of: Mapping[int, frozenset[int]]
    """By id: the micro-batches that wrote it."""
    clicks_of: Mapping[int, int]
    """By user: the highest number of a click, which the state keeps."""


@dataclass(frozen=True, slots=True)
class Outcome:
    produced: int
    """Ids from 0."""
    troubles: Counter[str]
    """How many executors ended, by how."""
    verdicts: Mapping[str, list[Verdict]]
    """Of the ledger, by query."""
    counted: Mapping[str, Counted]

    def clicks_of_users(self) -> dict[int, int]:
        """As produced."""
        return dict(Counter(number % USERS for number in range(self.produced)))


def run(folder: Path, *, seconds: float, least: int, seed: int) -> Outcome:
    """At least so many troubles, and for so long. Raises TestbedError if the job does not go on after one of them."""
    with kafka(folder, racks=["a"]) as running:
        with KafkaAdminClient(bootstrap_servers=running.bootstrap) as admin:
            admin.create_topics({name: {"num_partitions": _PARTITIONS, "replication_factor": 1} for name in TOPICS})
            admin.wait_for_topics(list(TOPICS), timeout_ms=30_000)
        command = ["-m", "tests.spark.audited_job", running.bootstrap, str(jars("kafka-connector")), str(folder)]
        log = folder / "job.log"
        with log.open("wb") as words:
            job = subprocess.Popen(
                [sys.executable, *command], stdin=subprocess.PIPE, stdout=words, stderr=words,
                env={**os.environ, "PYTHONPATH": PATHS},
            )  # fmt: skip
        try:
            chaos = _Chaos(job, folder, running.bootstrap, random.Random(seed))
            chaos.go_on(seconds=seconds, least=least)
            job.communicate(b"end\n", timeout=_PATIENCE_SECONDS)
            assert job.returncode == 0, log_tail(log)
        finally:
            for process in psutil.Process(job.pid).children(recursive=True) if job.poll() is None else ():
                with suppress(psutil.NoSuchProcess):  # executors end by themselves, too
                    process.kill()
            job.kill()
            job.wait()
        counted = {name: _counted(running.bootstrap, name) for name in (SOUND, LEAKY)}
    found = defaultdict(list)
    for verdict in verdicts(read(folder / "ledger"), now_ms=time.time_ns() // 1_000_000, timeout_ms=0):
        found[verdict.query].append(verdict)
    return Outcome(chaos.produced, chaos.troubles, found, counted)


class _Chaos:
    def __init__(self, job: subprocess.Popen[bytes], folder: Path, bootstrap: str, random_: random.Random) -> None:
        self.produced, self.troubles = 0, Counter[str]()
        self._job, self._folder, self._random = job, folder, random_
        self._producer = KafkaProducer(bootstrap_servers=bootstrap)

    def go_on(self, *, seconds: float, least: int) -> None:
        self._await_commits(1)
        started = time.monotonic()
        while self.troubles.total() < least or time.monotonic() - started < seconds:
            self._strike()
            # The job has to come through, however short the pauses are.
            self._await_commits(2)
            self._produce_for(self._random.uniform(*_PAUSE_SECONDS))
        self._producer.close()

    def _produce_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds

        def over() -> bool:
            self._produce()
            return time.monotonic() > until

        wait_until(over, what="the end of a pause")

    def _strike(self) -> None:
        before = wait_until(self._all_there, what="all executors", timeout_seconds=_PATIENCE_SECONDS)
        kind = self._random.choice(list(_SIGNALS)) if self.troubles else "killed"
        victim = self._random.choice(sorted(before))
        before[victim].send_signal(_SIGNALS[kind])
        self.troubles[kind] += 1
        wait_until(
            lambda: self._all_there(but=victim), what=f"another executor after one was {kind}",
            timeout_seconds=_PATIENCE_SECONDS, explain=self._log,
        )  # fmt: skip

    def _all_there(self, but: str = "") -> dict[str, psutil.Process]:
        self._produce()
        there = dict(_executors(self._job.pid))
        return there if len(there) == EXECUTORS and but not in there else {}

    def _await_commits(self, number: int) -> None:
        """Micro-batches, from now on, of both queries."""
        before = {name: committed(self._folder, name) for name in (SOUND, LEAKY)}

        def there() -> bool:
            assert self._job.poll() is None, self._log()
            self._produce()
            return all(committed(self._folder, name) >= count + number for name, count in before.items())

        wait_until(there, what="more micro-batches", timeout_seconds=_PATIENCE_SECONDS, explain=self._log)

    def _produce(self) -> None:
        for _ in range(_RECORDS_AT_ONCE):
            self._producer.send("in", str(self.produced).encode(), partition=self.produced % _PARTITIONS)
            self.produced += 1
        self._producer.flush()

    def _log(self) -> str:
        return log_tail(self._folder / "job.log")


def _executors(driver: int) -> Iterator[tuple[str, psutil.Process]]:
    """Their ids and processes."""
    for process in psutil.Process(driver).children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:  # it has just ended
            continue
        if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in words:
            yield dict(pairwise(words))["--executor-id"], process


def _counted(bootstrap: str, topic: str) -> Counted:
    """By Kafka's own consumer, without Spark."""
    parts = [TopicPartition(topic, number) for number in range(_PARTITIONS)]
    records, batches, clicks = 0, defaultdict(set), Counter[int]()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    try:
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        ends = consumer.end_offsets(parts)
        while any(consumer.position(part) < ends[part] for part in parts):
            for found in consumer.poll(timeout_ms=500).values():
                for record in found:
                    value = json.loads(record.value)
                    records += 1
                    batches[value["id"]].add(value["batch"])
                    clicks[value["user"]] = max(clicks[value["user"]], value["number"])
    finally:
        consumer.close()
    return Counted(records, {number: frozenset(found) for number, found in batches.items()}, dict(clicks))
