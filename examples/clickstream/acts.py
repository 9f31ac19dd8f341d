"""What the example plays: clicks alone, the job as Spark and kube-scheduler run it, and the job near its brokers."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from kafka.admin import KafkaAdminClient

from examples.clickstream import topics
from examples.clickstream.cluster import Submission, executors
from examples.clickstream.topics import Clicks, Reader
from examples.clickstream.traffic import Watch
from examples.demo.screen import Screen
from examples.demo.streaming.batches import read_batches
from tests.testbed.errors import TestbedError
from tests.testbed.spark_driver import log
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

CLICKS_PER_SECOND = 200
LOOK_SECONDS = 30.0
STALL_SECONDS = 40.0
READS_ON = "it reads on"
RECOVERY_SECONDS = 30.0
MOST_BEHIND_SECONDS = 6.0
"""Three micro-batches: more, and the job does not keep up."""
_ALONE_SECONDS = 15.0
WARM_BATCHES = 5
_START_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Look:
    """What crossed zones and racks in a span of time, for each click that was sent in it."""

    zone_bytes_per_click: float
    rack_bytes_per_click: float
    behind_seconds: float = 0.0
    """At its end: of clicks that were sent and are not in the sink."""

    def __str__(self) -> str:
        return f"{self.zone_bytes_per_click:,.0f} bytes across zones and {self.rack_bytes_per_click:,.0f} across racks"


def total(admin: KafkaAdminClient, topic: str) -> int:
    """The records in the topic."""
    return sum(topics.ends(admin, topic).values())


def look(testbed: Testbed, clicks: Clicks, seconds: float) -> Look:
    """What happens in the next `seconds`."""
    crossed, sent = testbed.crossed(), clicks.sent
    time.sleep(seconds)
    found, count = testbed.crossed().since(crossed), clicks.sent - sent
    return Look(found.zones_bytes / count, found.racks_bytes / count)


@dataclass(frozen=True, slots=True)
class Played:
    """One run of the job. `delivered` is an independent count of the records in the sink, next to the ledger's."""

    executors_by_zone: Counter[str]
    looked: Look
    sent: int
    delivered: int
    distinct: int
    audit: str
    balanced: bool
    watch: Watch

    @property
    def near_zone(self) -> str:
        """Where most executors are."""
        return self.executors_by_zone.most_common(1)[0][0]

    @property
    def exact(self) -> bool:
        return self.balanced and self.sent == self.delivered == self.distinct


@dataclass(frozen=True, slots=True)
class Stage:
    """What all runs share."""

    testbed: Testbed
    screen: Screen
    bootstrap: str

    def clicks_alone(self) -> Look:
        """What Kafka's own replication of the clicks sends, whatever the job does."""
        topics.create(self.bootstrap, {"clicks-alone": 2})
        clicks = Clicks(self.bootstrap, "clicks-alone", per_second=CLICKS_PER_SECOND)
        with clicks.flowing():
            return look(self.testbed, clicks, _ALONE_SECONDS)

    def play(self, submission: Submission, *, stall: bool) -> Played:
        """The job from its start to its end. With `stall`, the near zone's reader pauses for a while."""
        source, sink = submission.topics
        topics.create(self.bootstrap, {source: 2, sink: 1})
        zones = topics.partitions_by_zone(self.bootstrap, sink)
        readers = {zone: Reader(self.bootstrap, sink, parts) for zone, parts in zones.items()}
        watch = Watch(self.testbed, self.bootstrap, sink, zones)
        clicks = Clicks(self.bootstrap, source, per_second=CLICKS_PER_SECOND)
        submission.submit(self.testbed)
        with ExitStack() as stack:
            for reader in readers.values():
                stack.enter_context(reader.reading())
            admin = stack.enter_context(KafkaAdminClient(bootstrap_servers=self.bootstrap))
            placed = self._started(submission)
            with clicks.flowing():

                def behind_seconds() -> float:
                    return (clicks.sent - total(admin, sink)) / CLICKS_PER_SECOND

                self.await_(submission, lambda: self.batches(submission) >= WARM_BATCHES, "the first batches end")
                self.await_(submission, lambda: behind_seconds() <= MOST_BEHIND_SECONDS, "the job has caught up")
                stack.enter_context(watch.running())
                looked = replace(look(self.testbed, clicks, LOOK_SECONDS), behind_seconds=behind_seconds())
                where = ", ".join(f"{count} in {zone}" for zone, count in sorted(placed.items()))
                self.screen.say(f"executors: {where}; each click sends {looked}")
                if stall:
                    self._stall(readers[placed.most_common(1)[0][0]], watch)
            self.await_(submission, lambda: total(admin, sink) >= clicks.sent, "all clicks are in the sink")
        self.end(submission)
        ids = topics.click_ids(self.bootstrap, sink)
        audit = self._audit(submission)
        found = Played(placed, looked, clicks.sent, len(ids), len(set(ids)), audit.stdout, audit.returncode == 0, watch)
        self.screen.say(f"{found.sent} clicks sent, {found.delivered} in the sink, {found.distinct} of them different")
        self.screen.say(f"$ ballast audit ledger\n{found.audit.rstrip()}")
        return found

    def _stall(self, near: Reader, watch: Watch) -> None:
        """The pause is long enough for lag to fill, and for weights to recover afterwards: both take seconds."""
        near.stalled.set()
        watch.mark("near reader stalls")
        self.screen.say("the near zone's reader stalls")
        time.sleep(STALL_SECONDS)
        near.stalled.clear()
        watch.mark(READS_ON)
        self.screen.say("the near zone's reader reads on")
        time.sleep(RECOVERY_SECONDS)

    def _started(self, submission: Submission) -> Counter[str]:
        """The executors by zone, once all run and the query has begun."""
        self.await_(submission, lambda: executors(self.testbed, submission.namespace), "all executors run")
        return executors(self.testbed, submission.namespace)

    @staticmethod
    def batches(submission: Submission) -> int:
        """How many micro-batches with records have ended."""
        return sum(batch.rows > 0 for batch in read_batches(submission.folder / "progress.jsonl"))

    def end(self, submission: Submission) -> None:
        """Has the job process what has arrived, read its sink back and end."""
        (submission.folder / "stop").touch()
        self.await_(submission, lambda: self._phase(submission) == "Succeeded", "the driver ends")

    def _audit(self, submission: Submission) -> subprocess.CompletedProcess[str]:
        program = Path(sys.prefix) / "bin" / "ballast"
        command = [str(program), "audit", str(submission.folder / "ledger")]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def _phase(self, submission: Submission) -> str:
        path = f"/api/v1/namespaces/{submission.namespace}/pods/driver"
        return str(self.testbed.api.get(path)["status"].get("phase"))

    def await_(self, submission: Submission, condition: Callable[[], object], what: str) -> None:
        """Raises TestbedError, with the driver's last words, if the driver fails or it takes minutes."""

        def unless_failed() -> object:
            return condition() or self._phase(submission) == "Failed"

        def last() -> str:
            return log(self.testbed, submission.namespace, "driver")[-4000:]

        wait_until(unless_failed, what=what, timeout_seconds=_START_SECONDS, poll_seconds=0.5, explain=last)
        if not condition():
            raise TestbedError(f"the driver failed before {what}:\n{last()}")
