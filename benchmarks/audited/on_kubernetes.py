"""The clickstream example's job on a real control plane, while its executors are killed, deleted and moved."""

from __future__ import annotations

import random
import signal
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import psutil
from rich.console import Console

from ballast.spark.audit.ledger import read
from ballast.spark.audit.verdict import Verdict, verdicts
from examples.clickstream import topics
from examples.clickstream.__main__ import add_ballast
from examples.clickstream.acts import CLICKS_PER_SECOND, WARM_BATCHES, Stage
from examples.clickstream.cluster import EXECUTORS, LABELS, NAMESPACE, Submission, brokers, nodes
from examples.clickstream.topics import Clicks
from examples.demo.screen import Screen
from tests.spark.executor_chaos import Counted
from tests.testbed.testbed import Testbed

_PAUSE_SECONDS = (0.0, 4.0)
_KINDS = ("killed", "decommissioned", "moved")
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_SETTINGS = {
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.kubernetes.executor.terminationGracePeriodSeconds": "60s",
    # As many executors may end as it takes.
    "spark.executor.maxNumFailures": "1000",
    "spark.task.maxFailures": "100",
    "spark.stage.maxConsecutiveAttempts": "100",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    produced: int
    """Ids from 0."""
    troubles: Counter[str]
    elsewhere: int
    """Of those that were moved, the ones whose replacement is on another node."""
    verdicts: list[Verdict]
    counted: Counted

    def clicks_of_users(self) -> dict[int, int]:
        """As produced."""
        return dict(Counter(topics.user(number) for number in range(self.produced)))


def run(*, seconds: float, seed: int) -> Outcome:
    """Raises TestbedError if the job does not go on after an executor has ended."""
    testbed = Testbed()
    with tempfile.TemporaryDirectory(prefix="ballast-chaos-") as name, testbed.up(nodes=nodes(), network=True):
        folder = Path(name)
        folder.chmod(0o755)
        with brokers(testbed, folder) as kafka, Screen(Console(stderr=True)) as screen:
            add_ballast(testbed)
            submission = Submission(NAMESPACE, folder / "job", kafka.bootstrap, labels=LABELS, settings=_SETTINGS)
            chaos = _Chaos(Stage(testbed, screen, kafka.bootstrap), submission, random.Random(seed))
            produced = chaos.play(seconds)
            counted = _counted(kafka.bootstrap, submission.topics[1])
        found = verdicts(read(submission.folder / "ledger"), now_ms=time.time_ns() // 1_000_000, timeout_ms=0)
        return Outcome(produced, chaos.troubles, chaos.elsewhere, list(found), counted)


@dataclass(slots=True)
class _Chaos:
    stage: Stage
    submission: Submission
    random_: random.Random
    troubles: Counter[str] = field(default_factory=Counter)
    elsewhere: int = 0

    def play(self, seconds: float) -> int:
        """How many clicks were sent."""
        source, sink = self.submission.topics
        topics.create(self.stage.bootstrap, {source: 2, sink: 1})
        clicks = Clicks(self.stage.bootstrap, source, per_second=CLICKS_PER_SECOND)
        self.submission.submit(self.stage.testbed)
        with ExitStack() as stack:
            self._await(lambda: len(self._nodes()) == EXECUTORS, "all executors run")
            stack.enter_context(clicks.flowing())
            self._await_batches(WARM_BATCHES)
            started = time.monotonic()
            while time.monotonic() - started < seconds:
                self._strike()
                # The job has to come through, however short the pauses are.
                self._await_batches(2)
                time.sleep(self.random_.uniform(*_PAUSE_SECONDS))
        self.stage.end(self.submission)
        return clicks.sent

    def _strike(self) -> None:
        before = self._nodes()
        kind, victim = self.random_.choice(_KINDS), self.random_.choice(sorted(before))
        self.stage.screen.say(f"{victim} on {before[victim]} is {kind}")
        self.troubles[kind] += 1
        if kind == "killed":
            self._process(victim).send_signal(signal.SIGKILL)
            self._await_replacement(victim)
        elif kind == "decommissioned":
            self._delete(victim)
            self._await_replacement(victim)
        else:
            with self._cordoned(before[victim]):
                self._delete(victim)
                self._await_replacement(victim)
                new = self._nodes().keys() - before.keys()
                self.elsewhere += all(self._nodes().get(pod) != before[victim] for pod in new)

    def _process(self, pod: str) -> psutil.Process:
        for process in psutil.process_iter():
            try:
                words = dict(pairwise(process.cmdline()))
            except psutil.Error:  # it has just ended
                continue
            if process.name() == "java" and words.get("--podName") == pod:
                return process
        raise RuntimeError(f"no process runs {pod}")

    def _delete(self, pod: str) -> None:
        """Its grace period lets Spark decommission it, as the eviction by a move does."""
        self.stage.testbed.kubectl("delete", "pod", pod, "-n", NAMESPACE, "--wait=false")

    @contextmanager
    def _cordoned(self, node: str) -> Iterator[None]:
        self.stage.testbed.kubectl("cordon", node)
        try:
            yield
        finally:
            self.stage.testbed.kubectl("uncordon", node)

    def _await_replacement(self, victim: str) -> None:
        self._await(lambda: len(found := self._nodes()) == EXECUTORS and victim not in found, "another executor runs")

    def _nodes(self) -> Mapping[str, str]:
        """By executor that runs, and is not about to end."""
        pods = self.stage.testbed.api.get(f"{_PODS}?labelSelector=spark-role%3Dexecutor")["items"]
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in pods
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        }

    def _await_batches(self, number: int) -> None:
        before = self.stage.batches(self.submission)
        self._await(lambda: self.stage.batches(self.submission) >= before + number, "more micro-batches end")

    def _await(self, condition: Callable[[], object], what: str) -> None:
        self.stage.await_(self.submission, condition, what)


def _counted(bootstrap: str, topic: str) -> Counted:
    """By Kafka's own consumer, without Spark."""
    number, batches, clicks = 0, defaultdict(set), Counter[int]()
    for record in topics.records(bootstrap, topic):
        number += 1
        batches[record["click_id"]].add(record["batch"])
        clicks[record["user"]] = max(clicks[record["user"]], record["nth"])
    return Counted(number, {each: frozenset(found) for each, found in batches.items()}, dict(clicks))
