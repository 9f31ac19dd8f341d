"""The closed loop on a real Kafka: records, readers and the offsets that their group commits are real, time is not.

A second has passed when all that belongs to it has happened, so what waits does not depend on how fast the machine is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient, OffsetSpec

from ballast.grouping.place import Place
from ballast.spark.routing import KafkaTopic
from ballast.spark.routing.chooser import Chooser, Reading
from ballast.spark.routing.executors import Counted
from ballast.spark.routing.kafka import client_of
from benchmarks.routed.loop import OURS, ROUND_ROBIN, STORM, STORMS_LAG_AT_FULL, Outcome, RoundRobin
from tests.reference.storm.shuffle import Loads, RemoteLoad, Shuffle

PARTITIONS = 6
RECORDS_PER_SECOND = 100.0
"""What the reader of a partition handles, on average."""
STEP_SECONDS = 0.5
_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class Case:
    """`busy`: what comes in, as a share of what all readers handle. They commit every `commit_seconds`."""

    senders: str
    """The zone of each, which is the `broker.rack` of its near partitions."""
    busy: float
    commit_seconds: float
    seconds: float
    speeds: tuple[float, ...] = (1.0,)
    """Repeated over the partitions."""
    seed: int = 0


class Rule(Protocol):
    def choose(self, n: int) -> npt.NDArray[np.int32]: ...

    def look(self) -> None:
        """A second has passed."""


class AtOnce(Executor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(eq=False)
class ReadOnce:
    """One reading a second for all senders, as each would have made it."""

    topic: KafkaTopic
    at_seconds: float | None = None
    last: Reading = field(default_factory=lambda: Reading(()))

    def read(self, at_seconds: float) -> Reading:
        if self.at_seconds != at_seconds:
            self.at_seconds, self.last = at_seconds, self.topic.read(at_seconds)
        return self.last


@dataclass
class Ours:
    """The chooser of a Python worker, as `with_partition` uses it."""

    chooser: Chooser
    senders: Counted

    def choose(self, n: int) -> npt.NDArray[np.int32]:
        return self.chooser.choose(n, self.senders)

    def look(self) -> None:
        """The chooser looks by itself."""


@dataclass
class Storm:
    shuffle: Shuffle
    lags: Callable[[], Mapping[int, int]]

    def choose(self, n: int) -> npt.NDArray[np.int32]:
        return self.shuffle.choose(n)

    def look(self) -> None:
        full = {part: min(lag / STORMS_LAG_AT_FULL, 1.0) for part, lag in self.lags().items()}
        self.shuffle.refresh(Loads(remote={part: RemoteLoad(load) for part, load in full.items()}))


@dataclass
class Turns:
    rule: RoundRobin

    def choose(self, n: int) -> npt.NDArray[np.int32]:
        return self.rule.choose(n)

    def look(self) -> None:
        """It needs no lag."""


@dataclass
class Readers:
    """One consumer of the group for all partitions; each is handled at its own speed."""

    consumer: KafkaConsumer
    parts: Sequence[TopicPartition]
    came: npt.NDArray[np.float64]
    done: npt.NDArray[np.float64]

    def handle(self, sent: int, could: npt.NDArray[np.float64]) -> None:
        """Reads what was sent, and handles as much of it as could be in a step."""
        while self.came.sum() < sent:
            for part, records in self.consumer.poll(timeout_ms=_TIMEOUT_MS).items():
                self.came[part.partition] += len(records)
        self.done += np.minimum(could, self.came - self.done)

    def commit(self, due: npt.NDArray[np.bool_]) -> None:
        offsets = {
            self.parts[part]: OffsetAndMetadata(int(self.done[part]), "", -1) for part in np.flatnonzero(due).tolist()
        }
        if offsets:
            self.consumer.commit(offsets)

    @property
    def waiting(self) -> float:
        return float((self.came - self.done).sum())


def run(bootstrap: str, case: Case, rule: str, *, name: str) -> Outcome:
    """A topic and a group of their own, both called `name`."""
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        # Kafka itself would spread the leaders by chance.
        brokers = sorted(broker["broker_id"] for broker in admin.describe_cluster()["brokers"])
        assignments = {partition: [brokers[partition % len(brokers)]] for partition in range(PARTITIONS)}
        admin.create_topics({name: {"assignments": assignments}})
        admin.wait_for_topics([name], timeout_ms=_TIMEOUT_MS)
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5)
    try:
        with _readers(bootstrap, name) as readers:
            return _closed(case, rule, KafkaTopic(bootstrap, name, group=name), producer, readers)
    finally:
        producer.close()


@contextmanager
def _readers(bootstrap: str, name: str) -> Iterator[Readers]:
    parts = [TopicPartition(name, part) for part in range(PARTITIONS)]
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=name, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    try:
        consumer.assign(parts)
        readers = Readers(consumer, parts, np.zeros(PARTITIONS), np.zeros(PARTITIONS))
        readers.commit(np.ones(PARTITIONS, dtype=bool))
        yield readers
    finally:
        consumer.close()


def _closed(case: Case, rule: str, topic: KafkaTopic, producer: KafkaProducer, readers: Readers) -> Outcome:
    random, clock = np.random.default_rng(case.seed), Clock()
    senders = _senders(case, rule, topic, clock, random)
    zones = [target.place.zone if target.place else None for target in topic.read(clock.now).targets]
    near = np.array([[zone == own for zone in zones] for own in case.senders])
    speeds = np.resize(np.array(case.speeds), PARTITIONS)
    speeds = speeds / speeds.mean() * RECORDS_PER_SECOND
    phases = random.random(PARTITIONS) * case.commit_seconds
    each_second = case.busy * speeds.sum() / len(senders)
    owed, sent, stayed, waited, steps = 0.0, 0, 0, 0.0, round(case.seconds / STEP_SECONDS)
    for step in range(steps):
        clock.now = step * STEP_SECONDS
        if step % 2 == 0:
            owed += each_second
            count, owed = int(owed), owed % 1.0
            for number, sender in enumerate(senders):
                sender.look()
                counts = np.bincount(sender.choose(count), minlength=PARTITIONS)
                stayed += int(counts[near[number]].sum())
                for part in np.repeat(np.arange(PARTITIONS), counts).tolist():
                    producer.send(topic.topic, value=b"", partition=part)
            sent += count * len(senders)
            producer.flush()
        readers.handle(sent, random.poisson(speeds * STEP_SECONDS).astype(float))
        waited += readers.waiting
        rounds = np.floor((clock.now + phases) / case.commit_seconds)
        readers.commit(rounds > np.floor((clock.now - STEP_SECONDS + phases) / case.commit_seconds))
    return Outcome(waited / steps, stayed / sent)


def _senders(case: Case, rule: str, topic: KafkaTopic, clock: Clock, random: np.random.Generator) -> list[Rule]:
    if rule == ROUND_ROBIN:
        return [Turns(RoundRobin(PARTITIONS, int(random.integers(PARTITIONS)))) for _ in case.senders]
    places = [Place(f"executor-{number}", zone=zone) for number, zone in enumerate(case.senders)]
    if rule == STORM:
        targets = [target.place for target in topic.read(clock.now).targets]
        return [
            Storm(Shuffle(each, range(PARTITIONS), targets, random=random), lambda: _lags(topic)) for each in places
        ]
    assert rule == OURS
    told, source = Counted(tuple(Counter(case.senders).items())), ReadOnce(topic)
    return [Ours(Chooser(source, each, background=AtOnce(), clock=clock, random=random), told) for each in places]


def _lags(topic: KafkaTopic) -> dict[int, int]:
    """As far behind as the group's commits are."""
    admin = client_of(topic.bootstrap, topic.options)
    asked = [TopicPartition(topic.topic, part) for part in range(PARTITIONS)]
    committed = admin.list_group_offsets({topic.group: asked})[topic.group]
    ends = admin.list_partition_offsets(dict.fromkeys(asked, OffsetSpec.LATEST), timeout_ms=_TIMEOUT_MS)
    return {part.partition: end.offset - max(committed[part].offset, 0) for part, end in ends.items()}
